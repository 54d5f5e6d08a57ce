"""Sessions and gaps like those of the FLASH trace, generated from its published statistics without the trace.

FLASH: Yang, Wang, Xu, Chen, Bian, Liu and Liu, "Characterizing impacts of heterogeneity in federated learning
upon large-scale smartphone data", WWW 2021; here its 1,000-user sample under the rule screen locked, charging and on
WiFi, of which 710 are ever seen, for one to six days each.

Streams: ``availability-never``, ``availability-habit``, ``availability-phase``, ``availability-met`` and
``availability-start`` by client;
``availability-centre`` and ``availability-residual`` by (client, 0 or 1); ``availability-episode`` by (client, two
numbers for each episode); ``availability-sojourn`` and ``availability-hour`` by (client, number).
"""

import math
from typing import Annotated, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsim.arrays import BoolArray, FloatArray, IntArray, normal_quantile
from fedsim.devices.availability.diurnal import DAY_S, DailyClocks
from fedsim.devices.availability.on_off import Renewal
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams

_ROWS: Final = 2**13


class QuantileLaw:
    """Times of which some quantiles are given, log-uniform between them, shorter or longer for each client.

    A time is the quantile at the level ``Phi(x)`` of a score x. The scores of one client are normal around its own
    centre; where centres and scores together are standard normal, all clients' times have the given quantiles. A
    client's centre thus moves weight between long and short times and leaves times that are typical of all clients,
    such as ten seconds until a screen goes dark, where they are.
    """

    def __init__(self, levels: ArrayLike, values_s: ArrayLike, within: float) -> None:
        self._levels: FloatArray = np.asarray(levels)
        self._values_s: FloatArray = np.asarray(values_s)
        self.within = within
        low, high = self._values_s[:-1], self._values_s[1:]
        ratio = np.log(high / low)
        # The mean of a log-uniform law on [a, b] is (b - a) / ln(b / a).
        self._means_s = np.where(ratio > 0, (high - low) / np.where(ratio > 0, ratio, 1.0), low)

    def time_s(self, score: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        return np.exp(np.interp(ndtr(score), self._levels, np.log(self._values_s)))

    def mean_s(self, centre: FloatArray) -> FloatArray:
        """Return the mean time of clients with these centres, taken as log-uniform within each piece."""
        return np.concatenate([self._pieces(part) @ self._means_s for part in _parts(centre)])

    def residual_s(self, centre: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the rest of the times that cover a random instant.

        An instant meets a time with probability proportional to its length, which makes a log-uniform piece uniform,
        and lies anywhere within it.
        """
        met = list(map(self._met_s, _parts(centre), _parts(u)))
        return np.asarray(np.concatenate(met) * v)

    def _pieces(self, centre: FloatArray) -> FloatArray:
        """Return the probability of each piece between two given quantiles, shape (n, pieces)."""
        from scipy.special import ndtr

        edges = (normal_quantile(self._levels) - centre[:, None]) / self.within
        return np.asarray(np.diff(ndtr(edges), axis=1))

    def _met_s(self, centre: FloatArray, u: FloatArray) -> FloatArray:
        weight = np.cumsum(self._pieces(centre) * self._means_s, axis=1)
        weight = np.concatenate([np.zeros((centre.size, 1)), weight / weight[:, -1:]], axis=1)
        row = np.arange(centre.size)
        # The last weight is exactly 1, above every u.
        piece = (weight[:, 1:] <= u[:, None]).sum(axis=1)
        place = (u - weight[row, piece]) / (weight[row, piece + 1] - weight[row, piece])
        return np.asarray(self._values_s[piece] + place * (self._values_s[piece + 1] - self._values_s[piece]))


def _parts(values: FloatArray) -> list[FloatArray]:
    """Return an array in parts of some thousand rows, to bound the tables of pieces in memory."""
    return np.array_split(values, max(1, math.ceil(values.size / _ROWS)))


_LEVELS: Final = (*np.linspace(0.0, 0.95, 20).tolist(), 0.99, 1.0)


class Fit(NamedTuple):
    session_s: tuple[float, ...]
    gap_s: tuple[float, ...]
    session_centres: float
    gap_centres: tuple[float, float]
    correlation: float
    session_episodes: float
    gap_episodes: float
    episode_correlation: float
    episode: int
    session_within: float
    gap_within: float
    after: float
    after_long: float
    long: float
    gaps_fast: tuple[tuple[float, float], ...]
    sessions_slow: tuple[tuple[float, float], ...]


FITTED: Final = Fit(
    session_s=(
        *(1, 3.9, 9.67, 9.68, 10.3, 20.5, 44.3, 76.7, 132, 195, 297, 371, 657, 873, 946, 1070),
        *(1300, 1460, 1610, 4900, 11000, 41400),
    ),
    gap_s=(
        *(1, 1.43, 4.55, 19.9, 43.2, 91.7, 170, 309, 560, 939, 2200, 6980, 7530, 16000, 19100, 21000),
        *(38100, 41100, 80400, 122000, 328000, 633000),
    ),
    session_centres=0.46,
    gap_centres=(0.35, 1.5),
    correlation=0.12,
    session_episodes=0.35,
    gap_episodes=0.34,
    episode_correlation=0.82,
    episode=8,
    session_within=0.816,
    gap_within=0.67,
    after=0.05,
    after_long=0.26,
    long=0.2,
    gaps_fast=((1.44, -0.08), (0.64, 17.46), (0.36, 3.6)),
    sessions_slow=((1.49, -0.77), (1.02, 3.39)),
)

_AT_ONCE_S: Final = 600.0
_CANDIDATES: Final = 8
"""Episodes of which one covers the beginning."""


class Flash(Component):
    """Sessions and gaps like those of the FLASH sample's users.

    A share of the clients is never online. Every other one alternates sessions and gaps, each with a score that
    `fedsim.devices.availability.flash.QuantileLaw` turns into a time:

    - its sessions' scores are normal around a centre of its own, and so are its gaps'; clients with low centres of
      gaps are many and alike, those with high ones few and rarely online; a gap after a long session is longer;
    - a client's sessions and gaps come in episodes of 8 of each, in which both are longer or both are shorter than
      usual, so that the next gap is like the one before; the episode at time 0 is met with a probability proportional
      to its length;
    - each has a habit, an hour of the day drawn uniformly. What a session or a gap lasts beyond its first ten minutes
      passes on a clock that runs at another rate in each hour. Around its habit's hour a client's sessions end
      late and its gaps end early, as with a phone that charges overnight; on top of that all clients' sessions end late
      around 4 o'clock, and their gaps end early in the late afternoon.

    Time 0 is midnight. The first sojourns are drawn a day before, in the stationary state of the process without
    hours; that day is the warm-up of the hours.

    Attributes
    ----------
    never_share : share of the clients that are never online
        In the sample 29 % are not seen, of which some are rarely online: a never-share of 0.247 makes 29 % unseen.
    diurnal : whether sojourns follow the hours of the day
        If not, each passes as if it began at a random hour: about as long, but at any time of the day. Clients are then
        online for 8.4 % of the time and not 9.5 %.

    Notes
    -----
    The numbers of `Fit` were fitted by least squares to the sample's statistics,
    measured on generated clients through windows as long as the sample's (one to six days, from random hours
    on), each difference in units of the error of a sample of that size. The tables fit the quantiles of sessions and
    gaps; spread and correlation of centres fit the time online, the sessions per day and the differences between
    users; the episodes fit the correlations of neighbouring times; the clocks fit the share online by hour and its
    persistence. Differences over 60,000 clients, beside standard errors of the sample from 60 bootstrap resamples over
    its users:

    ========================================  ===========================  ====================
    statistic, and its value in the sample    generated                    sample's error
    ========================================  ===========================  ====================
    quantiles of sessions, 25 % to 99 %       -6 % to +4 %                 2 % to 10 %
    mean session, 2,054 s                     1,958 s                      97 s
    quantiles of gaps, 25 % to 99 %           +1 % to +11 %                4 % to 18 %
    mean gap, 12,350 s                        12,720 s                     620 s
    share of time online, 25 % to 95 %        -0.015 to +0.012             0.002 to 0.020
    its mean, 0.095                           0.095                        0.004
    sessions per day, 25 % to 95 %            -20 % to +15 %               4 % to 8 %
    their mean, 4.1                           4.21                         0.19
    correlation of the two, 0.36              0.39                         0.045
    users' mean log sessions, sd 1.40         1.39                         0.07
    share online by hour, 0.064 to 0.137      -0.015 to +0.009             0.005 to 0.009
    its largest over its smallest, 2.1        2.29                         0.17
    in the same session after 1 min to 1 h    -0.009 to -0.001             0.002 to 0.013
    online after 10 min and 24 h              -0.010 and -0.001            0.005 and 0.018
    online after 1, 3 and 6 h                 +0.015, +0.020, +0.007       0.012, 0.016, 0.016
    correlation of log times: gap, next gap   0.306, of 0.312              0.040
    gap, third gap after it                   0.239, of 0.268              0.043
    session, next session                     0.281, of 0.292              0.022
    session, gap after it                     0.267, of 0.265              0.026
    gap, session after it                     0.178, of 0.171              0.029
    ========================================  ===========================  ====================

    Clients thus come back within a few hours a little more often than the users did, and a quarter of them has 0.8
    sessions a day or less, where a quarter of the users had 1.0.
    """

    may_leave: ClassVar[bool] = True

    never_share: Annotated[float, Field(ge=0, le=1)] = 0.247
    diurnal: bool = True

    def build(self, run: RunSetup) -> Renewal:
        return Renewal(run.clients, FlashSojourns(self, run.clients, run.streams), begins_s=-DAY_S)


class FlashSojourns:
    def __init__(self, law: Flash, clients: int, streams: Streams, fit: Fit = FITTED) -> None:
        self._streams, self._fit = streams, fit
        ids, first = np.arange(clients), np.zeros(clients, dtype=np.int64)
        self._session = QuantileLaw(_LEVELS, fit.session_s, fit.session_within)
        self._gap = QuantileLaw(_LEVELS, fit.gap_s, fit.gap_within)
        self._session_centre, self._gap_centre = _centres(ids, streams, fit)
        self._habit = np.asarray(24 * streams.uniform("availability-habit", ids), dtype=np.int64)
        self._phase = np.asarray(2 * fit.episode * streams.uniform("availability-phase", ids), dtype=np.int64)
        self._session_clocks, self._gap_clocks = (DailyClocks(rate) for rate in hourly_rates(fit))
        self._diurnal = law.diurnal
        self._met = np.zeros(clients, dtype=np.int64)
        self._met = self._episode_met(ids)
        never = streams.uniform("availability-never", ids) < law.never_share
        session, gap = self._session_mean(ids, first), self._gap_mean(ids, first)
        session_s, gap_s = self._session.mean_s(session), self._gap.mean_s(gap)
        starts = streams.uniform("availability-start", ids) < session_s / (session_s + gap_s)
        self._starts_on = starts & ~never
        u, v = (streams.uniform("availability-residual", ids, which) for which in (0, 1))
        session_s, gap_s = self._session.residual_s(session, u, v), self._gap.residual_s(gap, u, v)
        self._first_s = np.where(never, np.inf, np.where(starts, session_s, gap_s))

    def starts_on(self, client: IntArray) -> BoolArray:
        return self._starts_on[client]

    def end_s(self, client: IntArray, number: IntArray, on: BoolArray, from_s: FloatArray) -> FloatArray:
        """Return the ends of sessions and gaps; beyond ten minutes they pass on the clocks of the day."""
        ends_s = np.empty(client.size)
        for state, score, law, clocks in (
            (on, self._session_score, self._session, self._session_clocks),
            (~on, self._gap_score, self._gap, self._gap_clocks),
        ):
            some = np.flatnonzero(state)
            chosen, which = client[some], number[some]
            lasts_s = np.where(which == 0, self._first_s[chosen], law.time_s(score(chosen, which)))
            at_once_s = np.minimum(lasts_s, _AT_ONCE_S)
            ahead_s = 0.0 if self._diurnal else DAY_S * self._streams.uniform("availability-hour", chosen, which)
            from_local_s = from_s[some] + at_once_s + ahead_s
            ends_s[some] = clocks.later_s(self._habit[chosen], from_local_s, lasts_s - at_once_s) - ahead_s
        return ends_s

    def _session_score(self, client: IntArray, number: IntArray) -> FloatArray:
        return self._session_mean(client, number) + self._fit.session_within * self._normal(client, number)

    def _gap_score(self, client: IntArray, number: IntArray) -> FloatArray:
        fit, before = self._fit, self._session_score(client, np.maximum(number - 1, 0))
        moved = fit.after * before + fit.after_long * np.maximum(before - fit.long, 0.0)
        return np.asarray(self._gap_mean(client, number) + fit.gap_within * self._normal(client, number) + moved)

    def _session_mean(self, client: IntArray, number: IntArray) -> FloatArray:
        return np.asarray(self._session_centre[client] + self._fit.session_episodes * self._episode(client, number, 0))

    def _gap_mean(self, client: IntArray, number: IntArray) -> FloatArray:
        common = self._fit.episode_correlation
        shared, own = (self._episode(client, number, which) for which in (0, 1))
        drawn = common * shared + math.sqrt(1 - common**2) * own
        return np.asarray(self._gap_centre[client] + self._fit.gap_episodes * drawn)

    def _episode(self, client: IntArray, number: IntArray, which: int) -> FloatArray:
        """Return a normal number of each client, the same for all sojourns of an episode."""
        episode = (number + self._phase[client]) // (2 * self._fit.episode)
        drawn = np.where(episode == 0, self._met[client], episode + _CANDIDATES - 1)
        return normal_quantile(self._streams.uniform("availability-episode", client, 2 * drawn + which))

    def _episode_met(self, client: IntArray) -> IntArray:
        """Return which of some episodes covers the beginning, met with a probability proportional to its length."""
        length_s = np.empty((_CANDIDATES, client.size))
        first = np.zeros_like(client)
        for candidate in range(_CANDIDATES):
            self._met[:] = candidate
            session_s = self._session.mean_s(self._session_mean(client, first))
            length_s[candidate] = session_s + self._gap.mean_s(self._gap_mean(client, first))
        share = np.cumsum(length_s, axis=0) / length_s.sum(axis=0)
        passed = np.count_nonzero(share <= self._streams.uniform("availability-met", client), axis=0)
        met: IntArray = np.minimum(passed, _CANDIDATES - 1).astype(np.int64)
        return met

    def _normal(self, client: IntArray, number: IntArray) -> FloatArray:
        return normal_quantile(self._streams.uniform("availability-sojourn", client, number))


def _centres(client: IntArray, streams: Streams, fit: Fit) -> tuple[FloatArray, FloatArray]:
    session, other = (normal_quantile(streams.uniform("availability-centre", client, which)) for which in (0, 1))
    gap = fit.correlation * session + math.sqrt(1 - fit.correlation**2) * other
    return fit.session_centres * session, np.where(gap < 0, *fit.gap_centres) * gap


def hourly_rates(fit: Fit = FITTED) -> tuple[FloatArray, FloatArray]:
    """Return the rates, of mean 1, at which sessions and gaps pass, both of shape (24 habits, 24 hours)."""
    hour = np.arange(1.0, 25.0)
    habit = np.arange(24.0)[:, None]
    (own, late), (shared, night) = fit.sessions_slow
    session = -own * _wave(hour - habit - late) - shared * _wave(hour - night)
    (own, early), (once, evening), (twice, first) = fit.gaps_fast
    gap = own * _wave(hour - habit - early) + once * _wave(hour - evening) + twice * _wave(2 * (hour - first))
    return _with_mean_1(np.exp(session)), _with_mean_1(np.exp(gap))


def _wave(hour: FloatArray) -> FloatArray:
    return np.asarray(np.cos(2 * np.pi * hour / 24))


def _with_mean_1(rates: FloatArray) -> FloatArray:
    return np.asarray(rates / rates.mean(axis=1, keepdims=True))
