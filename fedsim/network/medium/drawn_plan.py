"""The rates of a shared spectrum until its transfers change: of one fading block, or of several ahead."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.medium.drawn_jobs import Rows
from fedsim.network.medium.queued import SAME_INSTANT_ULPS
from fedsim.network.topology.block_shares import BlocksAhead

_NEAR: Final = 1e-3


@dataclass(slots=True)
class BlockPlan:
    """Rates until the end of the present block, while the transfers present stay the same."""

    since_s: float
    rows: Rows
    rate_bps: FloatArray
    part: FloatArray
    length_s: float
    busy: float
    first_s: float = 0.0

    def passed(self, now_s: float) -> tuple[int, float]:
        return 0, now_s - self.since_s

    def carried(self, now_s: float) -> tuple[FloatArray, FloatArray]:
        passed_s = now_s - self.since_s
        return self.rate_bps * passed_s, self.part * passed_s

    def present_rate_bps(self, now_s: float) -> FloatArray:
        return self.rate_bps

    def busy_s(self, now_s: float) -> float:
        return self.busy * (now_s - self.since_s)

    def ends(self, now_s: float) -> bool:
        left_s = self.first_s - (now_s - self.since_s)
        return left_s <= max(_NEAR * self.first_s, 2 * SAME_INSTANT_ULPS * math.ulp(now_s))

    def next_end(self, left: FloatArray) -> float:
        with np.errstate(divide="ignore"):
            first_s = float(np.minimum.reduce(left / self.rate_bps, initial=math.inf))
        self.first_s = first_s
        return first_s if first_s <= self.length_s else math.inf


class BlocksPlan(BlocksAhead):
    """Rates for some blocks ahead, while the transfers present stay the same."""

    __slots__ = ()

    def busy_s(self, now_s: float) -> float:
        """Return the seconds for which the whole band was in use."""
        block, rest_s = self.passed(now_s)
        used = self.part.sum(axis=1)
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return float(used[:block] @ length_s + used[block] * rest_s)

    def ends(self, now_s: float) -> bool:
        return True

    def next_end(self, left: FloatArray) -> float:
        """Return the seconds from `since_s` until the first end; `inf` if none ends within the blocks."""
        return float(self.after_s(left).min(initial=math.inf))


Plan = BlockPlan | BlocksPlan
