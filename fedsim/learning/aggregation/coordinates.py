"""Robust rules for each coordinate by itself: the median and the trimmed mean."""

import math
from collections.abc import Callable
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, Vector
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
