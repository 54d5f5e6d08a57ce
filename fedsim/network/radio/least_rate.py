"""What a sender carries to several receivers at once, at the rate of the least efficient link of each fading block."""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.radio.channel import MOST_BLOCKS, Channel

_FIRST: Final = 32
_AT_ONCE: Final = 2**14
_MOST_GAINS: Final = 2**22
_LAST_BLOCK: Final = 2.0**52


class Pace(Protocol):
    """The bits of a message by time, in seconds from its beginning."""

    def time_s(self, bits: float) -> float: ...

    def bits(self, time_s: float) -> float: ...


@dataclass(frozen=True)
class ConstantPace:
    rate_bps: float

    def time_s(self, bits: float) -> float:
        if bits <= 0:
            return 0.0
        return bits / self.rate_bps if self.rate_bps > 0 else math.inf

    def bits(self, time_s: float) -> float:
        return self.rate_bps * time_s


class LeastRate:
    """The integral over time of the least rate of several clients, exact over their fading blocks."""

    def __init__(self, channel: Channel, client: IntArray, start_s: float) -> None:
        self._channel, self._client = channel, np.unique(client)
        self._coherence_s = channel.fading.coherence_s
        self._most = max(1, min(MOST_BLOCKS, _MOST_GAINS // self._client.size))
        self._rate, self._ends_s, self._carried = np.empty(0), np.zeros(1), np.zeros(1)
        self._beyond_bps: float | None = None
        if math.isinf(self._coherence_s):
            self._beyond_bps = float(channel.rate_bps(self._client, 0).min())
        elif start_s >= _LAST_BLOCK * self._coherence_s:
            self._beyond_bps = float(channel.ergodic_rate_bps[self._client].min())
        else:
            self._first = math.floor(start_s / self._coherence_s)
            left_s = (self._first + 1) * self._coherence_s - start_s
            self._first_s = min(max(left_s, 0.0), self._coherence_s)

    def time_s(self, bits: float) -> float:
        if bits <= 0:
            return 0.0
        while self._beyond_bps is None and self._carried[-1] < bits:
            self._draw()
        if self._beyond_bps is not None and self._carried[-1] < bits:
            return float(self._ends_s[-1]) + ConstantPace(self._beyond_bps).time_s(bits - float(self._carried[-1]))
        block = int(np.searchsorted(self._carried, bits)) - 1
        within_s = (bits - self._carried[block]) / self._rate[block]
        return float(min(self._ends_s[block] + within_s, self._ends_s[block + 1]))

    def bits(self, time_s: float) -> float:
        while self._beyond_bps is None and self._ends_s[-1] < time_s:
            self._draw()
        if self._beyond_bps is not None and self._ends_s[-1] <= time_s:
            return float(self._carried[-1] + self._beyond_bps * (time_s - self._ends_s[-1]))
        return float(np.interp(time_s, self._ends_s, self._carried))

    def _draw(self) -> None:
        """Draw the least rates of further blocks, twice as many each time."""
        drawn = self._rate.size
        count = min(max(_FIRST, drawn), max(_FIRST, _AT_ONCE // self._client.size), self._most - drawn)
        blocks = self._first + np.arange(drawn, drawn + count)
        rate: FloatArray = self._channel.rate_bps(self._client[:, None], blocks).min(axis=0)
        lasts_s = np.full(count, self._coherence_s)
        if drawn == 0:
            lasts_s[0] = self._first_s
        self._rate = np.append(self._rate, rate)
        # Sequential sums: the result does not depend on where one drawing ends and the next begins.
        ends_s = self._first_s + np.arange(drawn, drawn + count) * self._coherence_s
        carried = np.cumsum(np.append(self._carried[-1:], rate * lasts_s))[1:]
        self._ends_s, self._carried = np.append(self._ends_s, ends_s), np.append(self._carried, carried)
        if self._rate.size >= self._most:
            self._beyond_bps = float(self._carried[-1] / self._ends_s[-1])
