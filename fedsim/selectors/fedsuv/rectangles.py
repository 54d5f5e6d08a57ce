"""FedSUV's rectangles in the plane of validity and utility, and the eliminations they imply (equations 6 to 10)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray

WhenDisjoint = Literal["restart", "collapse"]


@dataclass(frozen=True)
class Bounds:
    """Lower and upper bounds of validity and utility; arrays have shape (n,), one element per client."""

    validity_low: FloatArray
    validity_high: FloatArray
    utility_low: FloatArray
    utility_high: FloatArray


class Rectangles:
    """R_t(x) of every client (8), starting as the whole plane."""

    def __init__(self, clients: int, when_disjoint: WhenDisjoint) -> None:
        self.when_disjoint = when_disjoint
        self._low = np.full((2, clients), -np.inf)
        self._high = np.full((2, clients), np.inf)

    def intersect(self, client: IntArray, new: Bounds) -> Bounds:
        """Intersect the rectangles of these clients with new ones, and return the results."""
        new_low = np.stack([new.validity_low, new.utility_low])
        new_high = np.stack([new.validity_high, new.utility_high])
        old_low, old_high = self._low[:, client], self._high[:, client]
        low, high = np.maximum(old_low, new_low), np.minimum(old_high, new_high)
        apart = low > high
        if self.when_disjoint == "restart":
            low, high = np.where(apart, new_low, low), np.where(apart, new_high, high)
        else:
            end = np.where(new_low > old_high, old_high, old_low)
            low, high = np.where(apart, end, low), np.where(apart, end, high)
        self._low[:, client], self._high[:, client] = low, high
        return Bounds(low[0], high[0], low[1], high[1])

    def of(self, client: IntArray) -> Bounds:
        low, high = self._low[:, client], self._high[:, client]
        return Bounds(low[0], high[0], low[1], high[1])


def diagonal(bounds: Bounds, utility_scale: float) -> FloatArray:
    """Return w_t(x) (10), the length of each rectangle's diagonal with utilities over ``utility_scale``, shape (n,)."""
    return np.hypot(
        bounds.validity_high - bounds.validity_low, (bounds.utility_high - bounds.utility_low) / utility_scale
    )


def eliminated(validity_low: FloatArray, validity_high: FloatArray) -> BoolArray:
    """Return the mask of E_t (7): clients whose upper bound does not exceed the greatest lower bound, shape (n,)."""
    if not validity_low.size:
        return np.zeros(0, dtype=np.bool_)
    best = int(np.argmax(validity_low))
    out: BoolArray = validity_high <= validity_low[best]
    out[best] = False
    return out


def dominated(bounds: Bounds) -> BoolArray:
    """Return the mask of dominated clients, ``max R(x) <= min R(x')`` for another x', shape (n,).

    One inequality must be strict, so that one of several exactly equal clients remains; by Definition 1 of the paper
    they would dominate each other. O(n log n).
    """
    order = np.argsort(-bounds.validity_low)
    falling = -bounds.validity_low[order]
    best = np.concatenate([[-np.inf], np.maximum.accumulate(bounds.utility_low[order])])
    as_valid = best[np.searchsorted(falling, -bounds.validity_high, side="right")]
    more_valid = best[np.searchsorted(falling, -bounds.validity_high, side="left")]
    return np.asarray((as_valid > bounds.utility_high) | (more_valid >= bounds.utility_high))
