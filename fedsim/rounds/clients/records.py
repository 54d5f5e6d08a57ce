"""What participations that have ended have spent and sent, as the history and the audit take it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, PHASES, UPLINK
from fedsim.network.contracts import Links
from fedsim.per_client import Values, at


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

    def of(self, part: IntArray) -> "ParticipationRecords":
        demand = None if self.demand is None else self.demand.of(part)
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
            demand=demand,
        )


def shares_done(
    spent_s: FloatArray,
    cut_in: NDArray[np.int8],
    sent_bits: FloatArray,
    planned_compute_s: FloatArray,
    bits: tuple[Values, Values],
) -> FloatArray:
    """Return the share of each phase's bits or work that participations have done, shape (3, m)."""
    done: FloatArray = ((cut_in == NOT_CUT) | (cut_in > np.arange(len(PHASES))[:, None])).astype(np.float64)
    cut = (cut_in == COMPUTE) & (planned_compute_s > 0)
    done[COMPUTE, cut] = spent_s[COMPUTE, cut] / planned_compute_s[cut]
    for phase, sent, whole in zip((DOWNLINK, UPLINK), sent_bits, bits, strict=True):
        if np.all(np.greater(whole, 0)):
            done[phase] = sent / whole
    return done
