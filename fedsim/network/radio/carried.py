"""Bits that a transfer has carried over fading blocks some time after its start."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray

_ELEMENTS: Final = 2**13
"""Gains drawn at once, few enough for a core's cache."""


class Blocks(NamedTuple):
    """The rates of one direction of all clients' links."""

    rate_bps: Callable[[IntArray, IntArray], FloatArray]
    mean_bps: FloatArray
    coherence_s: float
    most: int
    last_s: float

    def carried_bits(self, client: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
        carried: FloatArray = self.mean_bps[client] * elapsed_s
        counted = np.flatnonzero((start_s < self.last_s) & (elapsed_s > 0))
        if np.isinf(self.coherence_s):
            carried[counted] = self.rate_bps(client[counted], np.zeros_like(counted)) * elapsed_s[counted]
            return carried
        if counted.size == 1:
            carried[counted] = self._integral(client[counted], start_s[counted], elapsed_s[counted])
            return carried
        # Integrals over about equally many blocks are done together, so that few gains are drawn in vain.
        counted = counted[np.argsort(elapsed_s[counted], kind="stable")]
        blocks = np.minimum(elapsed_s[counted] / self.coherence_s + 2, self.most)
        for part in np.split(counted, np.flatnonzero(np.diff(np.cumsum(blocks) // _ELEMENTS)) + 1):
            if part.size:
                carried[part] = self._integral(client[part], start_s[part], elapsed_s[part])
        return carried

    def _integral(self, client: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
        coherence_s = self.coherence_s
        first = np.floor(start_s / coherence_s).astype(np.int64)
        first_s = np.minimum(np.maximum((first + 1) * coherence_s - start_s, 0.0), coherence_s)
        most = int(min(np.ceil(elapsed_s.max() / coherence_s) + 1, self.most))
        carried, length = np.zeros(client.size), max(1, _ELEMENTS // client.size)
        for passed in range(0, most, length):
            number = np.arange(passed, min(passed + length, most))
            begins_s = np.where(number == 0, 0.0, first_s[:, None] + (number - 1) * coherence_s)
            ends_s = np.minimum(first_s[:, None] + number * coherence_s, elapsed_s[:, None])
            total = self.rate_bps(client[:, None], first[:, None] + number) * np.maximum(ends_s - begins_s, 0.0)
            total[:, 0] += carried
            # A sequential sum, as that of a transfer's duration.
            carried = np.add.accumulate(total, axis=1)[:, -1]
        rest_s = np.maximum(elapsed_s - (first_s + (most - 1) * coherence_s), 0.0) if most == self.most else 0.0
        return np.asarray(carried + self.mean_bps[client] * rest_s)
