"""Other people's training code on fedsim's clock: `Testbed`."""

from fedsim.bridges.testbed import Arrival as Arrival, RoundResult as RoundResult, Testbed as Testbed
