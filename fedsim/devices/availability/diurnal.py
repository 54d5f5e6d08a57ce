"""Sessions that follow the hour of the day.

Streams of `Diurnal`: ``availability-zone`` and ``availability-start`` by client; ``availability-sojourn`` by
(client, number).
"""

from typing import Annotated, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.availability.on_off import Renewal, Sojourn
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import Hours

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S

# Share online of the 710 users of FLASH's trace that are ever eligible, by hour of the day.
FLASH_SHARES: Final = (
    *(0.105, 0.117, 0.129, 0.135, 0.137, 0.134, 0.122, 0.111, 0.101, 0.089, 0.077, 0.070),
    *(0.069, 0.064, 0.067, 0.070, 0.076, 0.080, 0.089, 0.077, 0.069, 0.073, 0.087, 0.098),
)

Share = Annotated[float, Field(gt=0, lt=1)]


class DailyClocks:
    """Clocks that run at a given rate in each hour of the day, the same every day.

    Hour h, from half past h to half past h + 1, has the rate ``rates[clock, h]``: rates that belong to the middle of
    an hour and the next one hold between the two.
    """

    def __init__(self, rates: ArrayLike) -> None:
        self._rates = np.asarray(rates, dtype=np.float64)
        self._reading = np.concatenate(
            [np.zeros((len(self._rates), 1)), np.cumsum(self._rates * HOUR_S, axis=1)], axis=1
        )

    def later_s(self, clock: IntArray, time_s: FloatArray, advance: FloatArray) -> FloatArray:
        """Return the instants at which the clocks have advanced by given amounts."""
        finite = np.isfinite(time_s) & np.isfinite(advance)
        day, rest_s = np.divmod(np.where(finite, time_s, 0.0) - HOUR_S / 2, DAY_S)
        hour = np.minimum(rest_s // HOUR_S, 23).astype(np.int64)
        begun_s = rest_s - hour * HOUR_S
        reading = self._reading[clock, hour] + begun_s * self._rates[clock, hour] + np.where(finite, advance, 0.0)
        days, reading = np.divmod(reading, self._reading[clock, -1])
        hour = self._hour(clock, reading)
        within_s = np.minimum((reading - self._reading[clock, hour]) / self._rates[clock, hour], HOUR_S)
        later_s = (day + days) * DAY_S + HOUR_S / 2 + hour * HOUR_S + within_s
        # The sums above round; time must not go back.
        return np.where(finite, np.maximum(later_s, time_s), np.inf)

    def _hour(self, clock: IntArray, reading: FloatArray) -> IntArray:
        """Return the last hour of the day at whose beginning each clock shows at most a number."""
        hour = np.zeros(reading.size, dtype=np.int64)
        for step in (16, 8, 4, 2, 1):
            ahead = np.minimum(hour + step, 23)
            hour = np.where(self._reading[clock, ahead] <= reading, ahead, hour)
        return hour


def arrival_rates(shares: FloatArray, mean_session_s: float) -> FloatArray:
    """Return the arrival rate of absent clients per second between the middles of each hour and the next, shape (24,).

    While the rate is ``a`` and sessions end at the rate ``m``, the share online relaxes as
    ``p(t) = q + (p(0) - q) exp(-(a + m) t)`` with ``q = a / (a + m)``. The rate of each hour is the one that
    leads from its share to the next hour's; that share rises with ``a``, so bisection finds the rate.
    """
    ends = 1.0 / mean_session_s
    target = np.roll(shares, -1)

    def reached(rate: FloatArray) -> FloatArray:
        level = rate / (rate + ends)
        return np.asarray(level + (shares - level) * np.exp(-(rate + ends) * HOUR_S))

    low, high = np.zeros(shares.size), np.full(shares.size, ends)
    steep = np.flatnonzero(reached(low) > target)
    if steep.size:
        raise ValueError(
            f"share_by_hour: from hour {steep[0]} to the next the share falls from {shares[steep[0]]} to "
            f"{target[steep[0]]}, faster than sessions of mean_session_s = {mean_session_s} end"
        )
    while np.any(short := reached(high) < target):
        high = np.where(short, 2 * high, high)
    for _ in range(100):
        middle = (low + high) / 2
        below = reached(middle) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


class Diurnal(Component):
    """Sessions of exponential length that begin at a rate which depends on the hour of the day.

    An on/off Markov chain in continuous time. Its arrival rate is constant between the middles of two hours and the
    same every day, such that the expected share online in the middle of each hour is as given. It is stationary from
    time 0, which is the hour ``start_hour`` of the client whose clock is least ahead.

    Attributes
    ----------
    share_by_hour : expected share of the clients online at half past each hour 0..23 of their local time
        By default that of the 1,000-user FLASH trace (Yang et al., "Characterizing impacts of heterogeneity in
        federated learning upon large-scale smartphone data", WWW 2021) for users that are ever eligible
        (screen locked, charging, on WiFi): mean 0.095, peak over trough 2.1.
    mean_session_s : mean length of a session; 2,054 s in the same trace
    start_hour : local hour at simulated time 0
    zones_h : largest lead of a client's clock in hours; leads are uniform from 0 on
    """

    may_leave: ClassVar[bool] = True

    share_by_hour: Annotated[tuple[Share, ...], Field(min_length=24, max_length=24, strict=False)] = FLASH_SHARES
    mean_session_s: Sojourn = 2054.0
    start_hour: Annotated[float, Field(ge=0, lt=24)] = 0.0
    zones_h: Annotated[Hours, Field(ge=0, le=24)] = 0.0

    @model_validator(mode="after")
    def _shares_can_be_reached(self) -> Self:
        self._rates()
        return self

    def _rates(self) -> FloatArray:
        return arrival_rates(np.array(self.share_by_hour), self.mean_session_s)

    def build(self, run: RunSetup) -> Renewal:
        ahead = self.start_hour + self.zones_h * run.streams.uniform("availability-zone", np.arange(run.clients))
        return Renewal(run.clients, DiurnalSojourns(self, self._rates(), ahead * HOUR_S, run.streams))


class DiurnalSojourns:
    """The sojourns of a `Diurnal` law; `ahead_s` is the lead of each client's local time."""

    def __init__(self, law: Diurnal, rates: FloatArray, ahead_s: FloatArray, streams: Streams) -> None:
        self._law, self._rates, self._ahead_s, self._streams = law, rates, ahead_s, streams
        self._clocks = DailyClocks(rates[None, :])

    def starts_on(self, client: IntArray) -> BoolArray:
        """Return a state with the share online of the local time."""
        hour, rest_s = np.divmod((self._ahead_s[client] - HOUR_S / 2) % DAY_S, HOUR_S)
        index = hour.astype(np.int64)
        rate, ends = self._rates[index], 1.0 / self._law.mean_session_s
        level = rate / (rate + ends)
        share = level + (np.array(self._law.share_by_hour)[index] - level) * np.exp(-(rate + ends) * rest_s)
        return np.asarray(self._streams.uniform("availability-start", client) < share)

    def end_s(self, client: IntArray, number: IntArray, on: BoolArray, from_s: FloatArray) -> FloatArray:
        """Return the end of a session, or of a gap, at which the integrated rate reaches a draw."""
        wait = -np.log1p(-self._streams.uniform("availability-sojourn", client, number))
        local_s = from_s + self._ahead_s[client]
        arrives_s = self._clocks.later_s(np.zeros_like(client), local_s, wait) - self._ahead_s[client]
        return np.where(on, from_s + wait * self._law.mean_session_s, arrives_s)
