"""Norms of updates of which only some elements are sent, by the number of bits.

Amiri and Gunduz, "Machine learning at the wireless edge: distributed stochastic gradient descent over-the-air", IEEE
Transactions on Signal Processing 2020, the digital scheme: of the q greatest and the q smallest elements those of the
mean that is farther from 0 are sent, all with this mean.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln

from fedsim.arrays import FloatArray, IntArray

MEAN_BITS: Final = 33.0
"""Bits of the mean: 32, and one for the choice between the greatest and the smallest elements."""
_STEPS: Final = 4
"""Steps of q per factor of two."""


class SparseNorms:
    """The norms of clients' last updates after the scheme, over the norms of the whole updates, for all steps of q."""

    def __init__(self) -> None:
        self._share: dict[int, FloatArray] = {}
        self._elements: dict[int, int] = {}

    def learn(self, client: int, update: FloatArray) -> None:
        """Remember a client's update, shape (d,)."""
        whole = float(np.linalg.norm(update))
        norms = norms_of(update)
        self._share[client] = norms / whole if whole > 0 else np.zeros(norms.size)
        self._elements[client] = update.size

    def share(self, client: IntArray, bits: FloatArray) -> FloatArray:
        """Return the share of the norm that each client's bits carry, shape (n,); 1 for clients without an update."""
        share = np.ones(client.size)
        for place, one in enumerate(client.tolist()):
            if one in self._share:
                step = int(np.searchsorted(bits_of(self._elements[one]), bits[place], side="right")) - 1
                share[place] = self._share[one][step] if step >= 0 else 0.0
        return share


@lru_cache(maxsize=16)
def steps_of(elements: int) -> IntArray:
    """Return the numbers q of elements that are considered for d of them, ascending: at most d / 2, at least 1."""
    most = max(elements // 2, 1)
    powers = 2.0 ** (np.arange(_STEPS * int(np.ceil(np.log2(most))) + 1) / _STEPS)
    return np.unique(np.minimum(np.append(np.floor(powers), most), most).astype(np.int64))


@lru_cache(maxsize=16)
def bits_of(elements: int) -> FloatArray:
    """Return the bits of each step of q, ``log2 C(d, q) + 33``, ascending."""
    q = steps_of(elements)
    chosen = gammaln(elements + 1.0) - gammaln(q + 1.0) - gammaln(elements - q + 1.0)
    return np.asarray(chosen / np.log(2.0) + MEAN_BITS)


def norms_of(update: FloatArray) -> FloatArray:
    """Return the norm of what is sent of an update for each step of q, ``sqrt(q)`` times the mean that is sent."""
    q = steps_of(update.size)
    rising = np.sort(np.asarray(update, dtype=np.float64))
    smallest, greatest = np.cumsum(rising)[q - 1], np.cumsum(rising[::-1])[q - 1]
    return np.asarray(np.maximum(np.maximum(greatest, -smallest), 0.0) / np.sqrt(q))
