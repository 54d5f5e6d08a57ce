"""The clock of a scenario for any training code: rounds are played one by one."""

from fedsim.bridges.testbed.columns import (
    Arrival as Arrival,
    Participations as Participations,
    RoundResult as RoundResult,
)
from fedsim.bridges.testbed.outside_run import OPEN_END as OPEN_END
from fedsim.bridges.testbed.testbed import Testbed as Testbed
