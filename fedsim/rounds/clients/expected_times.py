"""What participations take on average: for oracles, and for what clients declare about themselves."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fedsim.devices import ComputeTimes
from fedsim.network import Links
from fedsim.rounds.clients.assignment import Workload

_YEAR_S: Final = 365 * 86_400.0


@dataclass(frozen=True)
class ExpectedTimes:
    """What participations take on average, for each of the K clients, and how much data they train on.

    Attributes
    ----------
    downlink_s, compute_s, uplink_s : expected seconds, shape (K,); `inf` where a link carries nothing
    samples : shape (K,)
    """

    downlink_s: NDArray[np.float64]
    compute_s: NDArray[np.float64]
    uplink_s: NDArray[np.float64]
    samples: NDArray[np.int64]

    @classmethod
    def of(cls, links: Links, compute: ComputeTimes, task: Workload) -> Self:
        """Return the profile of every client for the whole local work and a whole model in each direction."""
        everyone = np.arange(task.learner.samples.size, dtype=np.int64)
        return cls(
            links.expected_downlink_s(task.down_bits),
            compute.expected_s(task.samples(everyone)),
            links.expected_uplink_s(task.up_bits),
            task.learner.samples,
        )

    @property
    def duration_s(self) -> NDArray[np.float64]:
        """The mean time of a whole participation of every client, shape (K,): what an oracle may know."""
        return self.downlink_s + self.compute_s + self.uplink_s

    @property
    def features(self) -> NDArray[np.float64]:
        """What clients declare about themselves, shape (K, 4): the three times and the samples.

        Times beyond a year, and those that never end, are declared as a year, so that all numbers are finite.
        """
        columns = [self.downlink_s, self.compute_s, self.uplink_s, self.samples.astype(np.float64)]
        return np.stack([np.minimum(column, _YEAR_S) for column in columns[:3]] + columns[3:], axis=1)
