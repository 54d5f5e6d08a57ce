"""Comings and goings like those of the FLASH trace, drawn from its published statistics instead of the trace.

FLASH: Yang, Wang, Xu, Chen, Bian, Liu and Liu, "Characterizing impacts of heterogeneity in federated learning
upon large-scale smartphone data", WWW 2021. The quantiles below are those of its 1,000-user sample under the rule
screen locked, charging and on WiFi.

Streams: ``availability-fraction`` and ``availability-start`` by client; ``availability-sojourn`` by (client,
number); ``availability-residual`` by client.
"""

from typing import Annotated, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsim.devices.base import BoolArray, FloatArray, IntArray
from fedsim.devices.diurnal import FLASH_SHARES, DailyClock, arrival_rates
from fedsim.devices.onoff import Renewal
from fedsim.parts import Part
from fedsim.streams import Streams

_STEPS: Final = (*np.linspace(0.0, 0.95, 20).tolist(), 0.99, 1.0)
# The sample's longest session, 200,000 s, is one of 13,295; the last number is such that the mean is 2,054 s.
_SESSION_S: Final = (
    *(1, 3, 9, 10, 10, 11, 21, 41, 73, 118, 181, 273, 392, 579, 826, 1210, 1750, 2700, 4530, 10600),
    *(30540, 58000),
)
_GAP_S: Final = (
    *(1, 1, 4, 10, 25, 45, 77, 132, 207, 327, 512, 793, 1340, 2250, 4020, 7450, 13800, 25600, 42100, 69000),
    *(149200, 467000),
)
_FRACTION: Final = (
    *(0.0, 0.00019, 0.00114, 0.0041, 0.0080, 0.0125, 0.0182, 0.0259, 0.036, 0.0432, 0.0547, 0.0684, 0.0809),
    *(0.0965, 0.113, 0.131, 0.159, 0.199, 0.255, 0.324, 0.468, 0.784),
)
# About the mean time left of a session under way; that long the share online holds on to what it was.
_HOLDS_S: Final = 7000.0


class QuantileLaw:
    """A law of times given by some of its quantiles, log-uniform between them.

    Parameters
    ----------
    levels : ascending, from 0 to 1
    values_s : ascending, > 0
    """

    def __init__(self, levels: ArrayLike, values_s: ArrayLike) -> None:
        self._levels, self._values_s = np.asarray(levels, dtype=np.float64), np.asarray(values_s, dtype=np.float64)
        low, high = self._values_s[:-1], self._values_s[1:]
        ratio = np.log(high / low)
        # The mean of a log-uniform law on [a, b] is (b - a) / ln(b / a).
        means = np.where(ratio > 0, (high - low) / np.where(ratio > 0, ratio, 1.0), low)
        parts = np.diff(self._levels) * means
        self.mean_s = float(parts.sum())
        self._weights = np.concatenate([[0.0], np.cumsum(parts) / self.mean_s])

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the distribution function at u in (0, 1)."""
        return np.exp(np.interp(u, self._levels, np.log(self._values_s)))

    def residual(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return what is left of the sojourn that covers a random instant, from two uniform numbers.

        An instant meets a sojourn with probability proportional to its length, which makes a log-uniform piece
        uniform, and lies anywhere within it.
        """
        return np.asarray(np.interp(u, self._weights, self._values_s) * v)


class Flash(Part):
    """Sessions, gaps and shares of time online like those of the FLASH trace's users.

    A share of the clients never comes. Each other one draws the share of time that it is online from the sample's
    quantiles over users, and alternates sessions, drawn from the sample's quantiles over sessions, with gaps,
    drawn from its quantiles over gaps and stretched by one factor per client so that the client's share of time
    comes out. Gaps pass faster at the hours of the day at which the sample's share online rises. The process starts
    at midnight as if it had always gone on without hours.

    Quantiles of sessions and of shares are thus the sample's; gaps are longer than in the sample, which cannot
    hold those that go on beyond its end; a client's sessions are independent of one another and of the client,
    while in the sample some users' are all short; and the share online by hour swings by 1.7 instead of 2.1.

    Attributes
    ----------
    never_share : share of the clients that are never there; 0.29 in the sample
    diurnal : whether gaps follow the hours of the day
    """

    may_leave: ClassVar[bool] = True

    never_share: Annotated[float, Field(ge=0, le=1)] = 0.29
    diurnal: bool = True

    def build(self, clients: int, streams: Streams) -> Renewal:
        """Return who is there in one run with this many clients."""
        return Renewal(clients, FlashSojourns(self, clients, streams))


class FlashSojourns:
    """The sojourns of a `Flash` law.

    Attributes
    ----------
    fraction : long-run share of time that each client is there, shape (K,)
    """

    def __init__(self, law: Flash, clients: int, streams: Streams) -> None:
        self._streams = streams
        self._session, self._gap = QuantileLaw(_STEPS, _SESSION_S), QuantileLaw(_STEPS, _GAP_S)
        u = streams.uniform("availability-fraction", np.arange(clients))
        level = (u - law.never_share) / max(1.0 - law.never_share, np.finfo(float).tiny)
        self.fraction = np.where(level > 0, np.interp(level, _STEPS, _FRACTION), 0.0)
        with np.errstate(divide="ignore"):
            self._stretch = self._session.mean_s * (1 / self.fraction - 1) / self._gap.mean_s
        rates = arrival_rates(np.array(FLASH_SHARES), _HOLDS_S) if law.diurnal else np.ones(24)
        self._clock = DailyClock(rates / rates.mean())

    def starts_on(self, client: IntArray) -> BoolArray:
        """Return a stationary state."""
        return self._streams.uniform("availability-start", client) < self.fraction[client]

    def end_s(self, client: IntArray, number: IntArray, on: BoolArray, from_s: FloatArray) -> FloatArray:
        """Return the end of a session, or of a gap on the clock of the day."""
        u = self._streams.uniform("availability-sojourn", client, number)
        v = self._streams.uniform("availability-residual", client)
        first = number == 0
        session_s = np.where(first, self._session.residual(u, v), self._session.quantile(u))
        gap_s = np.where(first, self._gap.residual(u, v), self._gap.quantile(u)) * self._stretch[client]
        returns_s = self._clock.instant_s(self._clock.shows(from_s) + gap_s)
        return np.where(on, from_s + session_s, returns_s)
