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
from validation import PUBLISHED, FloatArray, Row, share_of

HOUR_S, DAY_S = 3600.0, 86400.0
_FLASH: Final = PUBLISHED["flash"]
_LISTED: Final = {name: dict(of) for name, of in _FLASH["facts"].items() if isinstance(of, list)}
FACTS: Final[dict[str, float]] = {
    name.format(key): value
    for name, of in _FLASH["facts"].items()
    for key, value in (of if isinstance(of, list) else [(None, of)])
}
"""Published statistics of the sample, by name."""
CORRELATIONS: Final = tuple(name for name in FACTS if name.startswith("log "))
SESSION_S: Final = _LISTED["session in s, {:.0%} quantile"]
STILL: Final = "online, still in the session after {} s"
AGAIN: Final = "online, online {} s later"
BY_HOUR: Final = _LISTED["share online at {} h"]
INSTANTS_PER_DAY: Final = 12
BETWEEN_SESSIONS: Final = 5


@dataclass(frozen=True)
class Seen:
    """Sessions of users, each seen through one window; times from the window's start."""

    owner: NDArray[np.int64]
    start_s: FloatArray
    end_s: FloatArray
    span_s: FloatArray
    clock_s: FloatArray


def watch(law: Renewal, users: int, seed: int) -> Seen:
    """Return what is seen of a crowd through windows as long as the sample's, from any hour of the first day on."""
    rng = np.random.default_rng(seed)
    span_s = DAY_S * rng.choice(np.arange(1, 7), users, p=np.array(_FLASH["seen_days"]) / sum(_FLASH["seen_days"]))
    clock_s = DAY_S * rng.random(users)
    sessions = law.sessions(np.arange(users), clock_s, clock_s + span_s)
    from_s = clock_s[sessions.owner]
    return Seen(sessions.owner, sessions.start_s - from_s, sessions.end_s - from_s, span_s, clock_s)


def statistics(seen: Seen) -> dict[str, float]:
    """Return the statistics that are published of the sample, under the names of `FACTS`."""
    users = seen.span_s.size
    length_s, gap_s = seen.end_s - seen.start_s, np.append(seen.start_s[1:], np.nan) - seen.end_s
    gap_s[:-1][seen.owner[1:] != seen.owner[:-1]] = np.nan  # after a user's last session
    number = np.bincount(seen.owner, minlength=users)
    ever = number > 0
    share = (np.bincount(seen.owner, length_s, users) / seen.span_s)[ever]
    per_day = (number / seen.span_s * DAY_S)[ever]
    session, gap = np.log(length_s), np.log(gap_s)
    of_user = np.bincount(seen.owner, session, users) / np.maximum(number, 1)
    clock_s = seen.clock_s[seen.owner]
    hours = covered_s(clock_s + seen.start_s, clock_s + seen.end_s)
    hours = hours / covered_s(seen.clock_s[ever], (seen.clock_s + seen.span_s)[ever])
    pairs = ((gap, gap, 1), (gap, gap, 3), (session, session, 1), (session, gap, 0), (gap, session, 1))
    return {
        "share of users never seen": 1 - float(ever.mean()),
        **quantiles("session in s", length_s),
        "session, sd of the logarithm": float(session.std()),
        "session, sd of users' mean logarithms": float(of_user[number >= BETWEEN_SESSIONS].std()),
        **quantiles("gap in s", gap_s[np.isfinite(gap_s)]),
        **quantiles("share of time online", share),
        **quantiles("sessions per day", per_day),
        "sessions per day and share online, correlation": float(np.corrcoef(share, per_day)[0, 1]),
        **{name: correlation(seen, *pair) for name, pair in zip(CORRELATIONS, pairs, strict=True)},
        **later(seen),
        **{f"share online at {hour} h": value for hour, value in enumerate(hours.tolist())},
        "share online, largest hour over smallest": float(hours.max() / hours.min()),
    }


def quantiles(name: str, sample: FloatArray) -> dict[str, float]:
    """Return the quantiles of a sample at the levels that are published, and its mean."""
    form = f"{name}, {{:.0%}} quantile"
    found = {form.format(level): float(np.quantile(sample, level)) for level in _LISTED[form]}
    return {**found, f"{name}, mean": float(sample.mean())}


def correlation(seen: Seen, one: FloatArray, other: FloatArray, apart: int) -> float:
    """Return the correlation of a number with another of the same user that is some sessions later."""
    first, second = one[: one.size - apart], other[apart:]
    known = (seen.owner[apart:] == seen.owner[: one.size - apart]) & np.isfinite(first) & np.isfinite(second)
    return float(np.corrcoef(first[known], second[known])[0, 1])


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


def later(seen: Seen) -> dict[str, float]:
    """Return how often users online at a random instant are in the same session later, and how often online."""
    rng, apart_s = np.random.default_rng(0), 2 * seen.span_s.max()
    user = np.repeat(np.arange(seen.span_s.size), np.round(seen.span_s / DAY_S * INSTANTS_PER_DAY).astype(int))
    time_s = rng.random(user.size) * seen.span_s[user]

    def ends_s(user: NDArray[np.int64], time_s: FloatArray) -> FloatArray:
        """Return when the sessions end in which users are at instants; minus infinity for those that are in none."""
        last = np.searchsorted(seen.owner * apart_s + seen.start_s, user * apart_s + time_s, side="right") - 1
        within = (last >= 0) & (seen.owner[last] == user) & (time_s < seen.end_s[last])
        return np.where(within, seen.end_s[last], -np.inf)

    end_s = ends_s(user, time_s)
    online = np.isfinite(end_s)
    user, time_s, end_s = user[online], time_s[online], end_s[online]
    found = {STILL.format(after_s): float((end_s > time_s + after_s).mean()) for after_s in _LISTED[STILL]}
    for after_s in _LISTED[AGAIN]:
        covered = time_s + after_s < seen.span_s[user]
        again = np.isfinite(ends_s(user[covered], time_s[covered] + after_s))
        found[AGAIN.format(after_s)] = float(again.mean())
    return found


def flash(effort: float) -> Iterator[Row]:
    """Availability generated against published samples: all statistics of the FLASH sample.

    The generator's numbers were fitted to these, so the rows say how well that went. The simulated value is the mean
    over the generated samples; the error is that of one sample, as the published one is, and of the mean:
    ``sd * sqrt(1 + 1 / samples)``.
    """
    groups, users = max(12, round(24 * effort)), _FLASH["users"]
    found = [statistics(watch(Flash().build(RunSetup(users, Streams(seed))), users, seed)) for seed in range(groups)]
    for name, fact in FACTS.items():
        values = np.array([sample[name] for sample in found])
        yield Row(f"FLASH {name}", values.mean(), fact, values.std(ddof=1) * math.sqrt(1 + 1 / groups))


def shares(effort: float) -> Iterator[Row]:
    """Availability: shares online that laws are given: a Markov chain, and hours of the day at their middles."""
    clients = round(20_000 * effort)
    everyone = np.arange(clients)
    markov = Markov(mean_on_s=30.0, mean_off_s=90.0).build(RunSetup(clients, Streams(8)))
    yield share_of("on/off Markov, share online", markov.available(everyone, 5e3, 1), 0.25)
    law = Diurnal().build(RunSetup(clients, Streams(12)))
    for day, hour in ((0, 0), (0, 4), (0, 8), (0, 12), (0, 16), (0, 20), (2, 4), (2, 12)):
        there = law.available(everyone, day * DAY_S + (hour + 0.5) * HOUR_S, 1)
        yield share_of(f"diurnal, share online at {hour}:30 of day {day + 1}", there, BY_HOUR[hour])
