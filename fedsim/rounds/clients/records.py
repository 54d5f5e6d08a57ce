"""What participations that have ended have spent and sent, as the history and its checks take it."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import NOT_CUT
from fedsim.network.contracts import Links
from fedsim.per_client import Values, at
from fedsim.rounds.plan import Plan


class ParticipationRecords(NamedTuple):
    """What m clients of one cohort have spent and sent; the columns are those of `Participations`."""

    client: IntArray
    draw: int
    links: Links | None
    start_s: float
    now_s: float
    bits: tuple[Values, Values]
    ended_s: FloatArray
    spent_s: FloatArray
    queue_s: FloatArray
    sent_bits: FloatArray
    outcome: NDArray[np.int8]
    cut_in: NDArray[np.int8]
    planned_compute_s: FloatArray
    emptied: BoolArray
    energy_j: FloatArray
    left_j: FloatArray
    demand: EnergyDemand | None

    @property
    def arrived(self) -> BoolArray:
        """Whether each update has arrived, in time or not."""
        arrived: BoolArray = self.cut_in == NOT_CUT
        return arrived

    @classmethod
    def of_plan(cls, plan: Plan, ended_s: FloatArray, now_s: float, part: IntArray | None) -> Self:
        """Return the records of members of a cohort that have ended, of all where no part is given."""
        demand, columns = plan.notes.get(EnergyDemand), plan.columns
        none = columns["energy_j"] if columns else np.zeros(plan.client.size)
        found = cls(
            plan.client,
            plan.draw,
            plan.links,
            plan.start_s,
            now_s,
            (plan.bits[0], plan.bits[1]),
            ended_s,
            plan.spent_s,
            np.add.reduce(plan.queue_s, axis=0),
            plan.sent_bits,
            plan.outcome,
            plan.cut_in,
            plan.compute_s * plan.work,
            columns.get("emptied", none),
            columns.get("energy_j", none),
            columns.get("left_j", none),
            demand,
        )
        return found if part is None else found.of(part)

    def of(self, part: IntArray) -> Self:
        """Return the records of some of the members."""
        return self._replace(
            client=self.client[part],
            bits=(at(self.bits[0], part), at(self.bits[1], part)),
            ended_s=self.ended_s[part],
            spent_s=self.spent_s[:, part],
            queue_s=self.queue_s[part],
            sent_bits=self.sent_bits[:, part],
            outcome=self.outcome[part],
            cut_in=self.cut_in[part],
            planned_compute_s=self.planned_compute_s[part],
            emptied=self.emptied[part],
            energy_j=self.energy_j[part],
            left_j=self.left_j[part],
            demand=None if self.demand is None else self.demand.of(part),
        )
