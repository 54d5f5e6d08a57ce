"""Bits of messages whose numbers are coded as long as they are rare, expected before there is any message.

A size must be known before the training, since the seconds of a transfer depend on it. So it is the expected length of
an arithmetic code, which Elias codes and zstd come near, and no measured one.
"""

import math
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray

Coding = Literal["fixed", "entropy"]
"""Lengths of numbers in a message: the same for each, or short ones for frequent values."""

BitsPerNumber = Annotated[float, Field(gt=0)]

_MOST_LEVELS = 100_000
"""Levels whose shares are summed; a finer law has the entropy of its density."""


@lru_cache(maxsize=4096)
def bits_of_levels(deviation: float, levels: int) -> float:
    """Return the entropy of a sign and a level, in bits, of a normal number that is rounded at random without bias.

    Of all laws of that standard deviation, counted in levels, the normal one needs most where levels are fine. Numbers
    beyond the norm have the greatest level.
    """
    from scipy.special import ndtr  # runs without this coding need not load SciPy

    most = int(min(levels, 12 * deviation + 2))
    if most > _MOST_LEVELS:
        return 0.5 * math.log2(2 * math.pi * math.e * deviation**2)
    # The second integral of the law of the size: its second differences are the shares of the levels.
    x = np.maximum(np.arange(-1.0, most + 2), 0.0)
    fallen = -np.expm1(-np.square(x / deviation) / 2)
    integral = x * (2 * ndtr(x / deviation) - 1) - deviation * math.sqrt(2 / math.pi) * fallen
    share = np.clip(np.diff(integral, 2), 0.0, None)
    share[-1] += max(0.0, 1 - share.sum())
    there = share[share > 0]
    return float(-(there * np.log2(there)).sum() + 1 - share[0])


def bits_of_places(count: int, size: int) -> float:
    """Return the bits that say which ``count`` of ``size`` numbers are sent: the logarithm of the number of subsets."""
    subsets = math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)
    return subsets / math.log(2)


def entropy_of(message: FloatArray) -> float:
    """Return the bits a number that an arithmetic code of a message with few values takes."""
    _, counts = np.unique(message, return_counts=True)
    share = counts / max(1, message.size)
    return float(-(share * np.log2(share)).sum())
