"""What participations that have ended have spent and sent, as the history and the audit take it."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import NOT_CUT
from fedsim.network.contracts import Links
from fedsim.per_client import Values
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
        some = slice(None) if part is None else part
        size = plan.client.size
        demand, none = plan.notes.get(EnergyDemand), np.zeros(size)
        return cls(
            plan.client[some],
            plan.draw,
            plan.links,
            plan.start_s,
            now_s,
            (_some(plan.bits[0], some), _some(plan.bits[1], some)),
            ended_s[some],
            plan.spent_s[:, some],
            np.add.reduce(plan.queue_s, axis=0)[some],
            plan.sent_bits[:, some],
            plan.outcome[some],
            plan.cut_in[some],
            (plan.compute_s * plan.work)[some],
            plan.columns.get("emptied", np.zeros(size, dtype=bool))[some],
            plan.columns.get("energy_j", none)[some],
            plan.columns.get("left_j", none)[some],
            demand if demand is None or part is None else demand.of(part),
        )


def _some(values: Values, some: IntArray | slice) -> Values:
    return values[some] if isinstance(values, np.ndarray) else values
