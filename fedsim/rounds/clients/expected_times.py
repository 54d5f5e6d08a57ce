"""Mean durations of participations: for oracles, and as features that clients declare."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import ComputeTimes
from fedsim.network import Links
from fedsim.rounds.clients.workload import Workload

_YEAR_S: Final = 365 * 86_400.0


@dataclass(frozen=True)
class ExpectedTimes:
    """Mean durations of the phases of each of the K clients, `inf` where a link carries nothing, and their samples."""

    downlink_s: FloatArray
    compute_s: FloatArray
    uplink_s: FloatArray
    samples: IntArray

    @classmethod
    def of(cls, links: Links, compute: ComputeTimes, workload: Workload) -> Self:
        """Return the mean durations of every client for the whole local work and a whole model in each direction."""
        return cls(
            links.expected_downlink_s(workload.down_bits),
            compute.expected_s(workload.samples),
            links.expected_uplink_s(workload.up_bits),
            workload.learner.samples,
        )

    @property
    def duration_s(self) -> FloatArray:
        """Mean duration of a whole participation of every client; an oracle may know it."""
        return self.downlink_s + self.compute_s + self.uplink_s

    @property
    def features(self) -> FloatArray:
        """Features that clients declare, shape (K, 4): the three mean durations in seconds, and the samples.

        Durations above a year, infinite ones included, are declared as a year, so that all numbers are finite.
        """
        times_s = [np.minimum(column, _YEAR_S) for column in (self.downlink_s, self.compute_s, self.uplink_s)]
        return np.stack([*times_s, self.samples.astype(np.float64)], axis=1)
