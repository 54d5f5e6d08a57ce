"""Crowds seen as the FLASH sample was seen: what its published statistics are of generated clients."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.devices.availability.diurnal import Diurnal
from fedsim.devices.availability.flash import Flash
from fedsim.devices.availability.on_off import Markov, Renewal
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import BoolArray, FloatArray, Row, share_of

IntArray = NDArray[np.int64]
HOUR_S, DAY_S = 3600.0, 86400.0

USERS: Final = 1000
"""Size of the published sample."""

# Users of the sample who were seen for 1, 2, ... 6 days, of those ever there.
SEEN_DAYS: Final = (50, 41, 65, 73, 166, 315)
INSTANTS_PER_DAY: Final = 12
BETWEEN_SESSIONS: Final = 5

# Published statistics of the sample: 1,000 users under the rule locked, charging, WiFi, of whom 710 are ever there.
SESSION_S: Final = {0.25: 11.0, 0.5: 181.0, 0.75: 1212.0, 0.9: 4530.0, 0.95: 10_600.0, 0.99: 30_540.0}
GAP_S: Final = {0.25: 45.0, 0.5: 512.0, 0.75: 7450.0, 0.9: 42_060.0, 0.95: 69_040.0, 0.99: 149_200.0}
SHARE: Final = {0.25: 0.0125, 0.5: 0.055, 0.75: 0.131, 0.9: 0.255, 0.95: 0.324, 0.99: 0.468}
PER_DAY: Final = {0.05: 0.2, 0.25: 1.0, 0.5: 2.7, 0.75: 5.7, 0.95: 11.7}
STILL: Final = {60: 0.979, 100: 0.968, 300: 0.920, 600: 0.863, 1800: 0.713, 3600: 0.580}
AGAIN: Final = {600: 0.898, 3600: 0.654, 10_800: 0.407, 21_600: 0.223, 86_400: 0.306}
BY_HOUR: Final = (
    *(0.105, 0.117, 0.129, 0.135, 0.137, 0.134, 0.122, 0.111, 0.101, 0.089, 0.077, 0.070),
    *(0.069, 0.064, 0.067, 0.070, 0.076, 0.080, 0.089, 0.077, 0.069, 0.073, 0.087, 0.098),
)
# Correlations of the logarithms of neighbouring times, within users.
CORRELATIONS: Final = {
    "log gap and next log gap, correlation": 0.312,
    "log gap and third log gap after it, correlation": 0.268,
    "log session and next log session, correlation": 0.292,
    "log session and log gap after it, correlation": 0.265,
    "log gap and log session after it, correlation": 0.171,
}
FACTS: Final[dict[str, float]] = {
    "share of users never seen": 0.29,
    **{f"session in s, {level:.0%} quantile": value for level, value in SESSION_S.items()},
    "session in s, mean": 2054.0,
    "session, sd of the logarithm": 2.59,
    "session, sd of users' mean logarithms": 1.40,
    **{f"gap in s, {level:.0%} quantile": value for level, value in GAP_S.items()},
    "gap in s, mean": 12_350.0,
    **{f"share of time online, {level:.0%} quantile": value for level, value in SHARE.items()},
    "share of time online, mean": 0.095,
    **{f"sessions per day, {level:.0%} quantile": value for level, value in PER_DAY.items()},
    "sessions per day, mean": 4.1,
    "sessions per day and share online, correlation": 0.36,
    **CORRELATIONS,
    **{f"online, still in the session after {after_s} s": value for after_s, value in STILL.items()},
    **{f"online, online {after_s} s later": value for after_s, value in AGAIN.items()},
    **{f"share online at {hour} h": value for hour, value in enumerate(BY_HOUR)},
    "share online, largest hour over smallest": 2.1,
}


@dataclass(frozen=True)
class Seen:
    """Sessions of users, each seen through one window; times from the window's start."""

    owner: IntArray
    start_s: FloatArray
    end_s: FloatArray
    span_s: FloatArray
    clock_s: FloatArray

    def of(self, low: int, high: int) -> "Seen":
        """Return the users from one number on until before another."""
        some = slice(*np.searchsorted(self.owner, [low, high]).tolist())
        return Seen(
            self.owner[some] - low,
            self.start_s[some],
            self.end_s[some],
            self.span_s[low:high],
            self.clock_s[low:high],
        )

    def online(self, user: IntArray, time_s: FloatArray) -> tuple[BoolArray, IntArray]:
        """Return whether users are online at instants of their windows, and in which session if so."""
        apart_s = 2 * self.span_s.max()
        came = np.searchsorted(self.owner * apart_s + self.start_s, user * apart_s + time_s, side="right") - 1
        last = np.maximum(came, 0)
        return (came >= 0) & (self.owner[last] == user) & (time_s < self.end_s[last]), last


def watch(law: Renewal, users: int, seed: int) -> Seen:
    """Return what is seen of a crowd through windows as long as the sample's, from any hour of the first day on."""
    rng = np.random.default_rng(seed)
    span_s = DAY_S * rng.choice(np.arange(1, 7), users, p=np.array(SEEN_DAYS) / sum(SEEN_DAYS))
    clock_s = DAY_S * rng.random(users)
    sessions = law.sessions(np.arange(users), clock_s, clock_s + span_s)
    from_s = clock_s[sessions.owner]
    return Seen(sessions.owner, sessions.start_s - from_s, sessions.end_s - from_s, span_s, clock_s)


def statistics(seen: Seen) -> dict[str, float]:
    """Return the statistics that are published of the sample, under the names of `FACTS`."""
    users = seen.span_s.size
    length_s = seen.end_s - seen.start_s
    number = np.bincount(seen.owner, minlength=users)
    ever = number > 0
    share = (np.bincount(seen.owner, length_s, users) / seen.span_s)[ever]
    per_day = (number / seen.span_s * DAY_S)[ever]
    same = seen.owner[1:] == seen.owner[:-1]
    gap_s = (seen.start_s[1:] - seen.end_s[:-1])[same]
    logarithm = np.log(length_s)
    of_user = np.bincount(seen.owner, logarithm, users) / np.maximum(number, 1)
    hours = by_hour(seen, ever)
    still, again = later(seen)
    return {
        "share of users never seen": 1 - float(ever.mean()),
        **quantiles("session in s", length_s, SESSION_S),
        "session, sd of the logarithm": float(logarithm.std()),
        "session, sd of users' mean logarithms": float(of_user[number >= BETWEEN_SESSIONS].std()),
        **quantiles("gap in s", gap_s, GAP_S),
        **quantiles("share of time online", share, SHARE),
        **quantiles("sessions per day", per_day, PER_DAY),
        "sessions per day and share online, correlation": float(np.corrcoef(share, per_day)[0, 1]),
        **dict(zip(CORRELATIONS, neighbours(seen), strict=True)),
        **{f"online, still in the session after {after_s} s": value for after_s, value in still.items()},
        **{f"online, online {after_s} s later": value for after_s, value in again.items()},
        **{f"share online at {hour} h": value for hour, value in enumerate(hours.tolist())},
        "share online, largest hour over smallest": float(hours.max() / hours.min()),
    }


def neighbours(seen: Seen) -> tuple[float, ...]:
    """Return the correlations of log times of one user, in the order of `CORRELATIONS`."""
    session = np.log(seen.end_s - seen.start_s)
    gap = np.full(session.size, np.nan)  # between a session and the next; NaN after a user's last
    same = seen.owner[1:] == seen.owner[:-1]
    gap[:-1][same] = np.log((seen.start_s[1:] - seen.end_s[:-1])[same])

    def together(one: FloatArray, other: FloatArray, apart: int) -> float:
        """Return the correlation of a number with another that is some sessions later."""
        first, second = one[: one.size - apart], other[apart:]
        known = (seen.owner[apart:] == seen.owner[: one.size - apart]) & np.isfinite(first) & np.isfinite(second)
        return float(np.corrcoef(first[known], second[known])[0, 1])

    return (
        together(gap, gap, 1),
        together(gap, gap, 3),
        together(session, session, 1),
        together(session, gap, 0),
        together(gap, session, 1),
    )


def quantiles(name: str, sample: FloatArray, levels: dict[float, float]) -> dict[str, float]:
    """Return the quantiles of a sample at given levels, and its mean."""
    found = np.quantile(sample, list(levels)).tolist()
    named = {f"{name}, {level:.0%} quantile": value for level, value in zip(levels, found, strict=True)}
    return {**named, f"{name}, mean": float(sample.mean())}


def by_hour(seen: Seen, ever: BoolArray) -> FloatArray:
    """Return the share of time online in each hour of the day, over the users who are ever seen."""
    clock_s = seen.clock_s[seen.owner]
    online_s = covered_s(clock_s + seen.start_s, clock_s + seen.end_s)
    return online_s / covered_s(seen.clock_s[ever], (seen.clock_s + seen.span_s)[ever])


def covered_s(start_s: FloatArray, end_s: FloatArray) -> FloatArray:
    """Return how much time intervals cover in each hour of the day, all days together."""
    days = math.ceil(end_s.max() / DAY_S)
    edges = np.arange(24 * days + 1) * HOUR_S
    # Time covered until an instant t: sum of (t - start) over the intervals begun, less (t - end) over those ended.
    total = np.zeros(edges.size)
    for times, sign in ((np.sort(start_s), 1.0), (np.sort(end_s), -1.0)):
        before = np.searchsorted(times, edges)
        total += sign * (before * edges - np.concatenate([[0.0], np.cumsum(times)])[before])
    return np.asarray(np.diff(total).reshape(days, 24).sum(axis=0))


def later(seen: Seen) -> tuple[dict[int, float], dict[int, float]]:
    """Return how often users online at a random instant are in the same session later, and how often online."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(seen.span_s.size), np.round(seen.span_s / DAY_S * INSTANTS_PER_DAY).astype(int))
    time_s = rng.random(user.size) * seen.span_s[user]
    online, session = seen.online(user, time_s)
    user, time_s, session = user[online], time_s[online], session[online]
    still = {after_s: float((seen.end_s[session] > time_s + after_s).mean()) for after_s in STILL}
    again = {}
    for after_s in AGAIN:
        covered = time_s + after_s < seen.span_s[user]
        again[after_s] = float(seen.online(user[covered], time_s[covered] + after_s)[0].mean())
    return still, again


def samples_of(law: Renewal, groups: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the statistics of several samples as large as the published one."""
    seen = watch(law, groups * USERS, seed)
    for group in range(groups):
        yield statistics(seen.of(group * USERS, (group + 1) * USERS))


def flash(effort: float) -> Iterator[Row]:
    """Yield every statistic that is published of the FLASH sample beside that of generated samples of its size.

    The generator's numbers were fitted to these, so the rows say how well that went. The simulated value is the mean
    over the generated samples; the error is that of one sample, as the published one is, and of the mean:
    ``sd * sqrt(1 + 1 / samples)``.
    """
    groups = max(12, round(24 * effort))
    found = list(samples_of(Flash().build(RunSetup(groups * USERS, Streams(9))), groups, 9))
    for name, fact in FACTS.items():
        values = np.array([sample[name] for sample in found])
        error = values.std(ddof=1) * math.sqrt(1 + 1 / groups)
        yield Row(f"FLASH {name}", float(values.mean()), fact, float((values.mean() - fact) / error))


def shares(effort: float) -> Iterator[Row]:
    """Yield shares online of laws that are given them: a Markov chain, and hours of the day at their middles."""
    clients = round(20_000 * effort)
    everyone = np.arange(clients)
    markov = Markov(mean_on_s=30.0, mean_off_s=90.0).build(RunSetup(clients, Streams(8)))
    yield share_of("on/off Markov, share online", markov.available(everyone, 5e3, 1), 0.25)
    law = Diurnal().build(RunSetup(clients, Streams(12)))
    for day, hour in ((0, 0), (0, 4), (0, 8), (0, 12), (0, 16), (0, 20), (2, 4), (2, 12)):
        there = law.available(everyone, day * DAY_S + (hour + 0.5) * HOUR_S, 1)
        yield share_of(f"diurnal, share online at {hour}:30 of day {day + 1}", there, BY_HOUR[hour])
