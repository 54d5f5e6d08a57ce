"""Sharing rules as NumPy arithmetic over fading blocks: who has which part of the band, or of the time, in each block.

A `BandRule` gives each transfer a part of the band that changes with the transfers present only; a `TimeRule` gives
the whole band to one or several transfers in turn, block by block. `fedsim.network.medium.drawn` holds the clock.
"""

import math
from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.medium.drawn_jobs import Jobs, Rows
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.makespan_split import MakespanSplit

_LEAST_BPS: Final = 1e-200


class BandRule(ABC):
    """A rule that divides the band."""

    @abstractmethod
    def split(self, jobs: Jobs) -> FloatArray:
        """Return the part of the band of each transfer present, shape (n,); at most 1 in all."""


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
        """Return the part of the time of each block that a transfer has, shape (blocks, m); at most 1 in all.

        Parameters
        ----------
        jobs : transfers present, of which `rows` share the time
        gain, rate_bps : fading gain, and rate with the whole band, of each in each block, shape (blocks, m)
        length_s : of the blocks, shape (blocks,)
        """

    def went_on(self, jobs: Jobs, block: int, passed_s: float) -> None:
        """Learn that time has passed as planned: some whole blocks, and seconds of the next; by default nothing.

        Parameters
        ----------
        jobs : as in the last call of `turns`
        block : number of whole blocks of that call
        passed_s : seconds of the block after them
        """
        return


class EqualBand(BandRule):
    """Equal parts of the band."""

    def __init__(self, channel: Channel) -> None:
        pass

    def split(self, jobs: Jobs) -> FloatArray:
        """Return the n-th part for each."""
        return np.full(jobs.n, 1.0 / jobs.n)


class MakespanBand(BandRule):
    """Parts of the band with which all transfers would end at the same instant at their mean rates.

    The split is computed anew from what is left when a transfer joins or leaves.

    Parameters
    ----------
    channel : radio of the clients
    """

    def __init__(self, channel: Channel) -> None:
        self._split = MakespanSplit(channel)

    def split(self, jobs: Jobs) -> FloatArray:
        """Return the parts that end together."""
        n = jobs.n
        return self._split.shares(jobs.left[:n], jobs.snr[:n], jobs.densest[:n])


class FirstComeTime(TimeRule):
    """The whole band for one transfer at a time, in the order of joining."""

    def __init__(self, channel: Channel) -> None:
        pass

    def rows(self, jobs: Jobs) -> Rows:
        """Return the transfer that has joined first."""
        return np.array([int(np.argmin(jobs.order[: jobs.n]))])

    def waits(self, jobs: Jobs) -> bool:
        """Return whether one is present."""
        return jobs.n > 0

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        """Return all of the time."""
        return np.ones_like(rate_bps)


class BestGainTime(TimeRule):
    """Each block for the transfer whose gain is the largest against its own mean; equal ones share it."""

    def __init__(self, channel: Channel) -> None:
        pass

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        """Return all of the time for the largest gain."""
        best = np.asarray(gain == gain.max(axis=1, keepdims=True), dtype=np.float64)
        return np.asarray(best / best.sum(axis=1, keepdims=True))


class FairTime(TimeRule):
    """The scheduler that serves the largest ratio of the present rate to the average rate: proportionally fair.

    The average forgets exponentially over a window. Within a block, where rates are constant, the ratios of those that
    are served fall until they equal the next one's; in the limit of short slots the time of a block is divided like
    water over the levels ``average / rate``. Over a window that is long against fading and the number of clients, the
    sum of the logarithms of their rates is the largest possible (Kelly, 1997; Viswanath, Tse and Laroia, "Opportunistic
    beamforming using dumb antennas", IEEE Trans. Information Theory 48(6), 2002).

    Parameters
    ----------
    channel : radio of the clients
    window_s : time over which the average forgets all but 1/e
    """

    def __init__(self, channel: Channel, window_s: float) -> None:
        self._bandwidth_hz, self._window_s = channel.bandwidth_hz, window_s
        self._before_bps: list[FloatArray] = []
        self._served_bps: list[FloatArray] = []

    def turns(self, jobs: Jobs, gain: FloatArray, rate_bps: FloatArray, length_s: FloatArray) -> FloatArray:
        """Return the water over the levels, block by block."""
        n, parts = jobs.n, np.zeros_like(rate_bps)
        average = jobs.average_bps[:n]
        fresh = average == 0.0
        average[fresh] = jobs.efficiency[:n][fresh] * self._bandwidth_hz / n
        self._before_bps, self._served_bps = [], []
        for block, seconds in enumerate(length_s.tolist()):
            rate = rate_bps[block]
            kept, new = math.exp(-seconds / self._window_s), -math.expm1(-seconds / self._window_s)
            level = np.divide(kept * average, rate, out=np.full(n, math.inf), where=rate > 0)
            part = _water(level, new)
            self._before_bps.append(average)
            served = part * rate
            self._served_bps.append(served)
            average = np.maximum(kept * average + new * served, _LEAST_BPS)
            parts[block] = part
        return parts

    def went_on(self, jobs: Jobs, block: int, passed_s: float) -> None:
        """Bring the averages up to date."""
        kept = math.exp(-passed_s / self._window_s)
        average = kept * self._before_bps[block] + (1.0 - kept) * self._served_bps[block]
        jobs.average_bps[: average.size] = np.maximum(average, _LEAST_BPS)


def _water(level: FloatArray, amount: float) -> FloatArray:
    """Return the parts x >= 0 of one in all for which ``level + amount * x`` is the same wherever x > 0.

    A level of `inf` has nothing; where all have, nothing is given.

    Parameters
    ----------
    level : >= 0, shape (n,)
    amount : of all water, in (0, 1]
    """
    parts = np.zeros(level.size)
    lowest = level.min()
    if lowest == math.inf:
        return parts
    low = np.flatnonzero(level <= lowest + amount)
    order = np.sort(level[low])
    surface = (np.cumsum(order) + amount) / np.arange(1, order.size + 1)
    # The surface is above as many levels as it is computed from.
    count = int(np.count_nonzero(surface > order))
    parts[low] = np.maximum(0.0, surface[max(count, 1) - 1] - level[low])
    if not parts.any():
        # The water is finer than the rounding of the levels.
        parts[int(np.argmin(level))] = 1.0
    return np.asarray(parts / parts.sum())
