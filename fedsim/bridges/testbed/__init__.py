"""The clock of a scenario for any training code: rounds are played one by one."""

from fedsim.bridges.testbed.columns import Arrival, Participations, RoundResult
from fedsim.bridges.testbed.outside_run import OPEN_END
from fedsim.bridges.testbed.testbed import Testbed

__all__ = ["OPEN_END", "Arrival", "Participations", "RoundResult", "Testbed"]
