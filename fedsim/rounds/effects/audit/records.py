"""What participations that have ended have spent and sent, as the audit takes it, and how it refuses one of them."""

from collections.abc import Callable

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.errors import AuditError
from fedsim.history.outcomes import DOWNLINK, NOT_CUT, UPLINK
from fedsim.network.contracts import Links
from fedsim.rounds.plan import Plan


class Records:
    """What m clients of one cohort have spent and sent; arrays have one column or element for each of them."""

    def __init__(self, plan: Plan, members: IntArray, links: Links, now_s: float) -> None:
        self._plan, self._members = plan, members
        self.draw, self.links, self.start_s, self.now_s = plan.draw, links, plan.start_s, now_s
        self.client, self.ended_s = plan.client[members], plan.end_s[members]
        self.bits = plan.bits_of(DOWNLINK, members), plan.bits_of(UPLINK, members)
        self.spent_s = plan.spent_s[:, members]
        self.queue_s: FloatArray = np.add.reduce(plan.queue_s[:, members], axis=0)
        self.on_air_s, self.sent_bits = plan.on_air_s[:, members], plan.sent_bits[:, members]
        self.outcome, self.cut_in = plan.outcome[members], plan.cut_in[members]
        self.planned_compute_s = (plan.compute_s * plan.work)[members]

    @property
    def arrived(self) -> BoolArray:
        """Whether each update has arrived, in time or not."""
        arrived: BoolArray = self.cut_in == NOT_CUT
        return arrived

    @property
    def demand(self) -> EnergyDemand:
        demand: EnergyDemand = self._plan.notes[EnergyDemand]
        return demand.of(self._members)

    @property
    def energy_j(self) -> FloatArray:
        return self._plan.columns["energy_j"][self._members]

    @property
    def left_j(self) -> FloatArray:
        return self._plan.columns["left_j"][self._members]

    @property
    def emptied(self) -> BoolArray:
        return self._plan.columns["emptied"][self._members]


def refuse(broken: str, wrong: BoolArray, number: int, records: Records, told: Callable[[int], str]) -> None:
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise AuditError(f"round {number}, client {records.client[i]}: {broken}: {told(i)}")
