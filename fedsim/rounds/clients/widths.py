"""Which width of the model each client of a cohort trains: known before the download, so that bits and work shrink."""

from functools import cached_property

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import ComputeTimes
from fedsim.learning.models.channels import Widths
from fedsim.network import Links
from fedsim.rounds.workload import Workload


class WidthChoice:
    """Gives each client the width that it was given, or else the largest one that fits the deadline.

    A width fits if the mean durations of its download, its work and its upload add up to no more than the time left. A
    client that no width fits gets the smallest. On a shared medium the mean durations are those of a client that has it
    to itself.
    """

    def __init__(self, widths: Widths, links: Links, compute: ComputeTimes, workload: Workload) -> None:
        self._widths, self._links, self._compute, self._workload = widths, links, compute, workload

    def levels(self, client: IntArray, limit_s: float) -> IntArray:
        """Return the place of each client's width among those of the learner."""
        if self._widths.given is not None:
            return self._widths.given[client]
        if limit_s == np.inf:
            return np.zeros(client.size, dtype=np.int64)
        fits = self._duration_s[:, client] <= limit_s
        fits[-1] = True
        return np.asarray(fits.argmax(axis=0), dtype=np.int64)

    @cached_property
    def _duration_s(self) -> FloatArray:
        """Mean duration of a participation of each client with each width, shape (L, K)."""
        whole = self._workload.samples
        return np.stack(
            [
                self._links.expected_downlink_s(down)
                + self._compute.expected_s(whole * flops)
                + self._links.expected_uplink_s(up)
                for down, up, flops in zip(
                    self._workload.down_sizes.tolist(),
                    self._workload.up_sizes.tolist(),
                    self._widths.flops.tolist(),
                    strict=True,
                )
            ]
        )
