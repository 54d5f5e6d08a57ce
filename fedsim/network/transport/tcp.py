"""How long TCP takes to deliver a message: slow start, the first loss, and the rate that losses allow.

Cardwell, Savage and Anderson, "Modeling TCP latency", IEEE INFOCOM 2000, with the steady state of Padhye, Firoiu,
Towsley and Kurose, "Modeling TCP throughput: a simple model and its empirical validation", ACM SIGCOMM 1998. Windows
and messages are counted in segments. Names follow the papers: b segments are acknowledged together, so that the window
grows by the factor gamma = 1 + 1/b in each round trip of slow start.

The papers' model forgets the window that slow start has reached before the first loss: after it the steady state begins
at once. Where losses are rare and windows large, the window of slow start is far above the steady one, and messages of
some thousand segments arrive sooner than the model says (`tests/benchmarks/tcp_latency.py`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray

_BACKOFFS: Final = (1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True)
class TcpPath:
    """A connection over one path."""

    loss: float
    first_window: float
    per_ack: int
    timeout_s: float

    @property
    def growth(self) -> float:
        """Factor gamma by which the window grows in a round trip of slow start."""
        return 1.0 + 1.0 / self.per_ack

    def slow_start_segments(self, segments: FloatArray) -> FloatArray:
        """Return the expected number of segments that are sent before the first loss, that one included; equation 5."""
        if self.loss == 0:
            return segments
        lossless = np.exp(segments * np.log1p(-self.loss))
        return np.asarray(np.minimum((1.0 - lossless) * (1.0 - self.loss) / self.loss + 1.0, segments))

    def slow_start_s(self, segments: FloatArray, window: FloatArray, rtt_s: FloatArray) -> FloatArray:
        """Return the time in slow start, equation 15, and the same where a window is reached and not exceeded."""
        first, growth = np.minimum(self.first_window, window), self.growth
        free = np.log(segments * (growth - 1.0) / first + 1.0)
        left = segments - (growth * window - first) / (growth - 1.0)
        bounded = np.log(window / first) + (1.0 + left / window) * np.log(growth)
        return np.asarray(rtt_s * np.where(left <= 0, free, bounded) / np.log(growth))

    def latency_s(self, segments: ArrayLike, window: ArrayLike, rtt_s: ArrayLike) -> FloatArray:
        """Return the expected time to deliver messages over an open connection: equation 25 without delayed acks."""
        d, most, rtt = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (segments, window, rtt_s)))
        slow = self.slow_start_segments(d)
        took = self.slow_start_s(slow, most, rtt)
        if self.loss == 0:
            return took
        growth = self.growth
        first = np.minimum(self.first_window, most)
        reached = np.minimum(slow * (growth - 1.0) / growth + first / growth, most)
        timeout = self.timeout_share(reached)
        lost = 1.0 - np.exp(d * np.log1p(-self.loss))
        recovery_s = lost * (timeout * self.timeouts_s() + (1.0 - timeout) * rtt)
        return np.asarray(took + recovery_s + (d - slow) / self.steady_rate(most, rtt))

    def timeout_share(self, window: ArrayLike) -> FloatArray:
        """Return Q(p, w), the probability that a loss in a window of w segments leads to a timeout; equation 17."""
        w, kept = np.asarray(window, dtype=np.float64), 1.0 - self.loss
        if self.loss == 0:
            return np.minimum(1.0, 3.0 / w)
        three = 1.0 - kept**3
        share = (1.0 + kept**3 * (1.0 - kept ** (np.maximum(w, 3.0) - 3.0))) * three / (1.0 - kept**w)
        return np.where(w <= 3.0, 1.0, np.minimum(1.0, share))

    def timeouts_s(self) -> float:
        """Return the expected duration of a sequence of timeouts, ``G(p) T0 / (1 - p)``; equations 18 and 19."""
        factor = sum(weight * self.loss**k for k, weight in enumerate(_BACKOFFS))
        return factor * self.timeout_s / (1.0 - self.loss)

    def steady_rate(self, window: ArrayLike, rtt_s: ArrayLike) -> FloatArray:
        """Return the rate in segments per second that losses and a window allow; equations 21 to 23."""
        most, rtt, p, b = (
            np.asarray(window, dtype=np.float64),
            np.asarray(rtt_s, dtype=np.float64),
            self.loss,
            self.per_ack,
        )
        if p == 0:
            return np.asarray(most / rtt)
        offset = (2.0 + b) / (3.0 * b)
        free = offset + np.sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + offset**2)
        kept, mean = np.minimum(free, most), (1.0 - p) / p
        timeout = self.timeout_share(kept)
        rounds = np.where(free < most, b / 2.0 * free + 1.0, b / 8.0 * most + mean / most + 2.0)
        rate = (mean + kept / 2.0 + timeout) / (rtt * rounds + timeout * self.timeouts_s())
        return np.asarray(np.minimum(rate, most / rtt))
