"""What some members of a cohort have spent and sent by the end of their participations, as plain columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray
from fedsim.devices import EnergyDemand
from fedsim.rounds.clients.participation import Participations


@dataclass(frozen=True)
class ParticipationRecords:
    """One column for each thing that is known of m members, in the words of `Participations`.

    Attributes
    ----------
    client : ids, shape (m,)
    start_s, now_s : when their participations began, and when the statement was made
    bits : sizes of the message down and of the message up
    draw : what they drew from their batteries; None where energy is not looked at
    """

    client: NDArray[np.int64]
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
    emptied: NDArray[np.bool_]
    energy_j: FloatArray
    left_j: FloatArray
    draw: EnergyDemand | None

    @classmethod
    def of(cls, there: Participations, client: NDArray[np.int64], members: NDArray[np.int64]) -> Self:
        """Return what is known now of some members, who have ended, of a cohort of these clients."""
        draw = there.draw
        if draw is not None:
            draw = EnergyDemand(
                draw.client[members], draw.charge_j[members], draw.cost_j[:, members], draw.samples[members]
            )
        return cls(
            client=client[members],
            start_s=there.start_s,
            now_s=there.env.now,
            bits=there.bits,
            ended_s=there.ended_s[members],
            spent_s=there.spent_s[:, members],
            queue_s=there.queue_s[members],
            sent_bits=there.sent_bits[:, members],
            outcome=there.outcome[members],
            cut_in=there.cut_in[members],
            planned_compute_s=there.planned_compute_s[members],
            emptied=there.emptied[members],
            energy_j=there.energy_j[members],
            left_j=there.left_j[members],
            draw=draw,
        )

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Whose answer has arrived, in time or not, shape (m,)."""
        return self.cut_in < 0
