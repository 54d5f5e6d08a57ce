"""Rules that withstand wrong updates: the median, the trimmed mean, and updates that have the nearest neighbours."""

import math
from collections.abc import Callable
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.aggregation.contracts import Aggregator, Updates

_AT_ONCE: Final = 2**20
"""Numbers that are sorted at a time."""
_ROUNDING: Final = 1e-9


class Median(Aggregator):
    """The median of each coordinate (Yin et al., ICML 2018, definition 1); weights are not read.

    Yin, Chen, Ramchandran and Bartlett, "Byzantine-robust distributed learning: Towards optimal statistical rates". Of
    an even number of updates it is the mean of the two in the middle. It needs three updates, as that of fewer is their
    mean, and holds 4 n d bytes for n updates of d numbers. Buffers of batch normalisation have medians too.
    """

    @property
    def least_updates(self) -> int:
        return 3

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        cut = (len(updates) - 1) // 2
        return _middle_means(updates, cut)


class TrimmedMean(Aggregator):
    """The mean of each coordinate without its smallest and its largest numbers; weights are not read.

    Yin et al., ICML 2018, definition 2: of n numbers ``floor(share n)`` are left out at each end. It withstands that
    many wrong updates. At least one is left out at each end: it needs ``ceil(1 / share)`` updates. It holds 4 n d bytes
    for n updates of d numbers. Buffers of batch normalisation are trimmed too.

    Attributes
    ----------
    share : float in [0.001, 0.5)
        The paper's beta.
    """

    share: Annotated[float, Field(ge=0.001, lt=0.5)] = 0.1

    @property
    def least_updates(self) -> int:
        return math.ceil(1 / self.share - _ROUNDING)

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        # A product such as 0.29 * 100 is a little below its whole number.
        return _middle_means(updates, math.floor(self.share * len(updates) + _ROUNDING))


def _middle_means(updates: Updates, cut: int) -> Vector:
    """Return the mean of each column without its ``cut`` smallest and largest numbers."""
    count = len(updates)
    low, high = cut, count - cut

    def middle(columns: Updates) -> FloatArray:
        rows = np.partition(np.ascontiguousarray(columns.T), (low, high - 1), axis=1)
        return np.asarray(rows[:, low:high].mean(axis=1, dtype=np.float64))

    return _by_columns(updates, middle)


def _by_columns(updates: Updates, rule: Callable[[Updates], FloatArray]) -> Vector:
    """Apply a rule to a few columns at a time, so that sorting needs little memory."""
    size = updates.shape[1]
    found = np.empty(size, dtype=np.float32)
    step = max(1, _AT_ONCE // len(updates))
    for start in range(0, size, step):
        found[start : start + step] = rule(updates[:, start : start + step])
    return found


class Krum(Aggregator):
    """The one update whose nearest neighbours are nearest; weights are not read.

    Blanchard, El Mhamdi, Guerraoui and Stainer, "Machine learning with adversaries: Byzantine tolerant gradient
    descent", NeurIPS 2017. Of n updates, f of which may be wrong, the score of one is the sum of its squared distances
    to the ``n - f - 2`` nearest others. The smallest score wins, of equal ones the first. It needs ``2 f + 3`` updates.
    Distances are those of parameters; buffers of batch normalisation are those of the winner. It holds 4 n d bytes for
    n updates of d numbers, and takes n (n - 1) / 2 distances.

    Attributes
    ----------
    byzantine : int >= 0
        f, how many updates of an aggregation may be wrong.
    """

    byzantine: Annotated[int, Field(ge=0, le=10**6)]

    @property
    def least_updates(self) -> int:
        return 2 * self.byzantine + 3

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        return np.array(updates[_best(updates[:, :parameters], self.byzantine)[0]])


class MultiKrum(Krum):
    """The mean of the updates with the best scores of Krum; weights are not read.

    Blanchard et al., NeurIPS 2017, section 4: scores are computed once, and the m updates with the smallest ones are
    averaged, each alike. With m of 1 it is Krum, with m of n the plain mean. It needs ``2 f + 3`` updates, and m. It
    holds 4 n d bytes for n updates of d numbers.

    Attributes
    ----------
    byzantine : int >= 0
        f, how many updates of an aggregation may be wrong.
    averaged : int >= 1
        m, how many updates are averaged.
    """

    averaged: Annotated[int, Field(ge=1, le=10**6)]

    @property
    def least_updates(self) -> int:
        return max(super().least_updates, self.averaged)

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        best = np.sort(_best(updates[:, :parameters], self.byzantine)[: self.averaged])
        total = np.zeros(updates.shape[1])
        for place in best.tolist():
            total += updates[place]
        return np.asarray(total / best.size, dtype=np.float32)


def _best(vectors: Updates, byzantine: int) -> IntArray:
    """Return the indices of vectors by ascending score, shape (n,)."""
    count = len(vectors)
    squares = np.zeros((count, count))
    for one in range(count):
        for other in range(one + 1, count):
            # Differences in float64: products of nearly equal vectors would lose all digits.
            apart = vectors[one].astype(np.float64) - vectors[other]
            squares[one, other] = squares[other, one] = apart @ apart
    # A number that is not finite is as far as can be.
    squares[~np.isfinite(squares)] = np.inf
    np.fill_diagonal(squares, np.inf)
    nearest = np.sort(squares, axis=1)[:, : count - byzantine - 2]
    return np.argsort(nearest.sum(axis=1), kind="stable")
