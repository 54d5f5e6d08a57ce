"""The allocation of probabilities of E3CS: in proportion to weights, between a fairness quota and 1."""

from typing import NamedTuple

import numpy as np

from fedsim.arrays import BoolArray, FloatArray


class Allocated(NamedTuple):
    """Probabilities of selection (n,), and which of them were cut to 1 (n,)."""

    chance: FloatArray
    overflown: BoolArray


def prob_alloc(size: int, quota: float, log_weight: FloatArray) -> Allocated:
    """Return ``quota + (size - n quota) w'_i / sum of w'``, where ``w' = min(w, c)`` and no probability is above 1.

    c is such that the cut clients have the probability 1 exactly. With j of them, those of the greatest weights, the
    others have ``quota + (size - n quota - j (1 - quota)) w_i / R``, where R is the sum of their weights; j is the
    smallest number with which none of these is above 1.
    """
    n = log_weight.size
    room = size - n * quota
    if room <= 1e-12 * size:
        return Allocated(np.full(n, size / n), np.zeros(n, dtype=np.bool_))
    weight = np.exp(log_weight - log_weight.max())
    order = np.argsort(-weight, kind="stable")
    falling = weight[order]
    rest = np.append(np.cumsum(falling[::-1])[::-1], 0.0)
    cut, places = (n, 0.0) if size == n else (0, room)
    # The greatest of the others would be above 1: ``quota + places w / R > 1``.
    while cut < size and places * falling[cut] > (1.0 - quota) * rest[cut]:
        cut += 1
        places = max(room - cut * (1.0 - quota), 0.0)
    chance, overflown = np.ones(n), np.zeros(n, dtype=np.bool_)
    overflown[order[:cut]] = True
    others = order[cut:]
    chance[others] = quota + places * (weight[others] / rest[cut] if rest[cut] > 0 else 1.0 / max(others.size, 1))
    return Allocated(np.minimum(chance, 1.0), overflown)
