"""Sharing rules as arithmetic over fading blocks: who has which part of the band, or of the time, in each block."""

import math
from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.medium.drawn_jobs import Jobs, Rows
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.makespan_split import MakespanSplit

_LEAST_BPS: Final = 1e-200
_WHOLE: Final = np.ones(1)
_NONE: Final = np.zeros(0, dtype=np.int64)


class BandRule(ABC):
    """A rule that divides the band."""

    @abstractmethod
    def split(self, jobs: Jobs) -> FloatArray:
        """Return the part of the band of each transfer present until one comes or goes, shape (n,); 1 in all."""


class TimeRule(ABC):
    """A rule that gives the whole band to transfers in turn."""

    def rows(self, jobs: Jobs) -> Rows:
        """Return the transfers among which time is divided now; by default all that are present."""
        return slice(0, jobs.n)

    def waits(self, jobs: Jobs) -> bool:
        """Return whether a transfer that joins now waits and changes nothing for the others; by default not."""
        return False

    @abstractmethod
    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        """Return the part of the time of each block that a transfer has, shape (blocks, m); at most 1 in all."""

    def went_on(self, jobs: Jobs, block: int, passed_s: float) -> None:
        """Let time pass as planned: some whole blocks, and seconds of the next; by default nothing."""
        return


class EqualBand(BandRule):
    def __init__(self, channel: Channel) -> None:
        pass

    def split(self, jobs: Jobs) -> FloatArray:
        parts = np.empty(jobs.n)
        parts.fill(1.0 / jobs.n)
        return parts


class MakespanBand(BandRule):
    """Parts of the band with which all transfers would end at the same instant at their mean rates."""

    def __init__(self, channel: Channel) -> None:
        self._split = MakespanSplit(channel)

    def split(self, jobs: Jobs) -> FloatArray:
        n = jobs.n
        return self._split.shares(jobs.left[:n], jobs.snr[:n], jobs.densest[:n])


class FirstComeTime(TimeRule):
    """The whole band for one transfer at a time, in the order of joining."""

    def __init__(self, channel: Channel) -> None:
        pass

    def rows(self, jobs: Jobs) -> Rows:
        return np.array([int(np.argmin(jobs.order[: jobs.n]))])

    def waits(self, jobs: Jobs) -> bool:
        return jobs.n > 0

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        return np.ones_like(rate_bps)


class BestGainTime(TimeRule):
    """Each block for the transfer whose gain is the largest against its own mean; equal ones share it."""

    def __init__(self, channel: Channel) -> None:
        pass

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        best = np.asarray(gain == gain.max(axis=1, keepdims=True), dtype=np.float64)
        return np.asarray(best / best.sum(axis=1, keepdims=True))


class FairTime(TimeRule):
    """The scheduler that serves the largest ratio of the present rate to the average rate: proportionally fair.

    The average forgets exponentially over a window. Within a block, where rates are constant, the ratios of those that
    are served fall until they equal the next one's; in the limit of short slots the time of a block is divided like
    water over the levels ``average / rate``. Over a window that is long against fading and the number of clients, the
    sum of the logarithms of their rates is the largest possible (Kelly, 1997; Viswanath, Tse and Laroia, "Opportunistic
    beamforming using dumb antennas", IEEE Trans. Information Theory 48(6), 2002).
    """

    def __init__(self, channel: Channel, window_s: float) -> None:
        self._bandwidth_hz, self._window_s = channel.bandwidth_hz, window_s
        # Of each block of the last look: averages before it, which transfers are served, and their rates.
        self._before_bps: list[FloatArray] = []
        self._served: list[tuple[IntArray, FloatArray]] = []

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        parts, lasts_s = np.zeros_like(rate_bps), length_s.tolist()
        self._begin(jobs)
        for block, seconds in enumerate(lasts_s):
            if block:
                before_s = lasts_s[block - 1]
                self._before_bps.append(self._after(block - 1, before_s, -math.expm1(-before_s / self._window_s)))
            low, part = self._divide(rate_bps[block], seconds)
            parts[block, low] = part
        return parts

    def went_on(self, jobs: Jobs, block: int, passed_s: float) -> None:
        average = self._after(block, passed_s, 1.0 - math.exp(-passed_s / self._window_s))
        jobs.average_bps[: average.size] = average

    def _begin(self, jobs: Jobs) -> None:
        """Take the averages as they are now; that of a fresh transfer is its part of the time at its mean rate."""
        average = jobs.average_bps[: jobs.n]
        fresh = (average == 0.0).nonzero()[0]
        if fresh.size:
            average[fresh] = jobs.efficiency[fresh] * self._bandwidth_hz / jobs.n
        self._before_bps, self._served = [average], []

    def _divide(self, rate: FloatArray, seconds: float) -> tuple[IntArray, FloatArray]:
        level = np.empty(rate.size)
        level.fill(math.inf)
        average = self._before_bps[len(self._served)]
        np.divide(math.exp(-seconds / self._window_s) * average, rate, out=level, where=rate > 0)
        low, part = _water(level, -math.expm1(-seconds / self._window_s))
        self._served.append((low, part * rate[low]))
        return low, part

    def _after(self, block: int, seconds: float, new: float) -> FloatArray:
        low, served = self._served[block]
        average = math.exp(-seconds / self._window_s) * self._before_bps[block]
        average[low] += new * served
        return np.maximum(average, _LEAST_BPS, out=average)


def _water(level: FloatArray, amount: float) -> tuple[IntArray, FloatArray]:
    """Return the parts x > 0 of one in all for which ``level + amount * x`` is the same, and less than where x = 0."""
    lowest = np.minimum.reduce(level)
    if lowest == math.inf:
        return _NONE, np.zeros(0)
    low = (level <= lowest + amount).nonzero()[0]
    if low.size == 1:
        return low, _WHOLE
    levels = level[low]
    order = np.sort(levels)
    surface = (np.cumsum(order) + amount) / np.arange(1, order.size + 1)
    # The surface is above as many levels as it is computed from.
    count = int(np.count_nonzero(surface > order))
    parts = np.maximum(0.0, surface[max(count, 1) - 1] - levels)
    if not parts.any():
        # The water is finer than the rounding of the levels.
        parts[int(np.argmin(levels))] = 1.0
    given = parts.nonzero()[0]
    return low[given], parts[given] / parts.sum()
