"""What is known of a shared spectrum until its transfers change: rates of one fading block, or of several ahead."""

import math
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.medium.drawn_jobs import Rows


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Rates until the end of the present block, while the transfers present stay the same; methods as in `BlocksPlan`.

    Attributes
    ----------
    since_s : instant from which it holds
    rows : transfers that have any share, m of them
    rate_bps : of each, shape (m,)
    part : of the band or the time that each has, shape (m,)
    length_s : seconds from `since_s` until the end of the block
    """

    since_s: float
    rows: Rows
    rate_bps: FloatArray
    part: FloatArray
    length_s: float

    def passed(self, now_s: float) -> tuple[int, float]:
        """Return 0 and the seconds of this block."""
        return 0, now_s - self.since_s

    def carried(self, now_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the bits and the seconds of the whole band that each transfer has had, shapes (m,)."""
        passed_s = now_s - self.since_s
        return self.rate_bps * passed_s, self.part * passed_s

    def present_rate_bps(self, now_s: float) -> FloatArray:
        """Return the rates, shape (m,)."""
        return self.rate_bps

    def busy_s(self, now_s: float) -> float:
        """Return the seconds for which the whole band was in use."""
        return float(self.part.sum()) * (now_s - self.since_s)

    def next_end(self, left: FloatArray) -> float:
        """Return the seconds until the first end; `inf` if none ends within the block."""
        with np.errstate(divide="ignore"):
            first_s = float((left / self.rate_bps).min())
        return first_s if first_s <= self.length_s else math.inf


@dataclass(frozen=True, slots=True)
class BlocksPlan:
    """Rates for some blocks ahead, while the transfers present stay the same.

    Attributes
    ----------
    since_s : instant from which it holds
    rows : transfers that have any share, m of them
    rate_bps : of each in each block, shape (blocks, m)
    part : of the band or the time that each has, shape (blocks, m)
    ends_s : end of each block in seconds from `since_s`, shape (blocks,)
    sent_bits : of each by the end of each block, shape (blocks, m)
    """

    since_s: float
    rows: Rows
    rate_bps: FloatArray
    part: FloatArray
    ends_s: FloatArray
    sent_bits: FloatArray

    @property
    def length_s(self) -> float:
        """Seconds from `since_s` for which the plan knows rates."""
        return float(self.ends_s[-1])

    def passed(self, now_s: float) -> tuple[int, float]:
        """Return the number of whole blocks until an instant, and the seconds of the next one."""
        passed_s = now_s - self.since_s
        block = min(int(np.searchsorted(self.ends_s, passed_s, side="right")), self.ends_s.size - 1)
        return block, passed_s - (float(self.ends_s[block - 1]) if block else 0.0)

    def carried(self, now_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the bits and the seconds of the whole band that each transfer has had, shapes (m,)."""
        block, rest_s = self.passed(now_s)
        bits = self.rate_bps[block] * rest_s
        if block:
            bits += self.sent_bits[block - 1]
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return bits, length_s @ self.part[:block] + self.part[block] * rest_s

    def present_rate_bps(self, now_s: float) -> FloatArray:
        """Return the rates at an instant, shape (m,)."""
        present: FloatArray = self.rate_bps[self.passed(now_s)[0]]
        return present

    def busy_s(self, now_s: float) -> float:
        """Return the seconds for which the whole band was in use."""
        block, rest_s = self.passed(now_s)
        used = self.part.sum(axis=1)
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return float(used[:block] @ length_s + used[block] * rest_s)

    def next_end(self, left: FloatArray) -> float:
        """Return the seconds from `since_s` until the first end; `inf` if none ends within the blocks.

        Parameters
        ----------
        left : bits that are left of each transfer, shape (m,)
        """
        ending = np.flatnonzero(self.sent_bits[-1] >= left)
        if not ending.size:
            return math.inf
        sent, wanted = self.sent_bits[:, ending], left[ending]
        block = np.argmax(sent >= wanted, axis=0)
        each = np.arange(ending.size)
        before = np.where(block > 0, sent[block - 1, each], 0.0)
        begins_s = np.where(block > 0, self.ends_s[block - 1], 0.0)
        ends_s = begins_s + (wanted - before) / self.rate_bps[block, ending]
        return float(np.minimum(ends_s, self.ends_s[block]).min())
