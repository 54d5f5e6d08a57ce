"""Records of participations that have ended, as columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import NOT_CUT
from fedsim.rounds.clients.participation import Participations


@dataclass(frozen=True)
class ParticipationRecords:
    """What m clients of one cohort have spent and sent; the columns are those of `Participations`.

    Attributes
    ----------
    client : ids, shape (m,)
    start_s, now_s : start of the participations, and instant of the record
    bits : sizes of the message down and of the message up
    demand : energy that the clients drew from their batteries; None without energy
    """

    client: IntArray
    start_s: float
    now_s: float
    bits: tuple[float, float]
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

    @classmethod
    def of(cls, participations: Participations, client: IntArray, members: IntArray) -> Self:
        """Return the records of some clients of a cohort whose participations have ended.

        Parameters
        ----------
        participations : of the cohort
        client : ids of the whole cohort, shape (n,)
        members : positions of the clients to record, shape (m,)
        """
        demand = participations.demand
        if demand is not None:
            demand = EnergyDemand(
                demand.client[members], demand.charge_j[members], demand.cost_j[:, members], demand.samples[members]
            )
        return cls(
            client=client[members],
            start_s=participations.start_s,
            now_s=participations.env.now,
            bits=participations.bits,
            ended_s=participations.ended_s[members],
            spent_s=participations.spent_s[:, members],
            queue_s=participations.queue_s[members],
            sent_bits=participations.sent_bits[:, members],
            outcome=participations.outcome[members],
            cut_in=participations.cut_in[members],
            planned_compute_s=participations.planned_compute_s[members],
            emptied=participations.emptied[members],
            energy_j=participations.energy_j[members],
            left_j=participations.left_j[members],
            demand=demand,
        )

    @property
    def arrived(self) -> BoolArray:
        """Whether each answer has arrived, in time or not, shape (m,)."""
        arrived: BoolArray = self.cut_in == NOT_CUT
        return arrived
