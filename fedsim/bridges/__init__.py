"""Other people's training code on fedsim's clock: `Testbed`."""

from fedsim.bridges.testbed import Arrival, RoundResult, Testbed

__all__ = ["Arrival", "RoundResult", "Testbed"]
