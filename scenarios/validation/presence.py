"""Crowds seen as the FLASH sample was seen: what its published statistics are of generated clients."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.devices.availability.diurnal import Diurnal
from fedsim.devices.availability.flash import Flash
from fedsim.devices.availability.on_off import Markov, Renewal
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import PUBLISHED, FloatArray, Row, share_of

HOUR_S, DAY_S = 3600.0, 86400.0
BETWEEN_SESSIONS: Final = 5
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
BY_HOUR: Final = _LISTED["share online at {} h"]


class Seen(NamedTuple):
    """Sessions of users in their order, each user seen through one window; times from the window's start."""

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
        **later(seen, length_s),
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
    hours_s = np.arange(24 * math.ceil(end_s.max() / DAY_S)) * HOUR_S
    covered = [(np.clip(end_s, at, at + HOUR_S) - np.clip(start_s, at, at + HOUR_S)).sum() for at in hours_s]
    return np.asarray(np.reshape(covered, (-1, 24)).sum(axis=0))


def later(seen: Seen, length_s: FloatArray) -> dict[str, float]:
    """Return in which share of the time online users are in the same session later, and in which they are online."""
    still, again = "online, still in the session after {} s", "online, online {} s later"
    found = {still.format(s): float(np.maximum(length_s - s, 0).sum() / length_s.sum()) for s in _LISTED[still]}
    # Users lie one after the other, so far apart that none is met in the time of another.
    from_s = 2 * seen.span_s.max() * seen.owner
    start_s, end_s, window_s = from_s + seen.start_s, from_s + seen.end_s, from_s + seen.span_s[seen.owner]
    knots_s, total_s = np.stack([start_s, end_s], 1).ravel(), np.cumsum(length_s)
    online_s = np.stack([total_s - length_s, total_s], 1).ravel()
    for s in _LISTED[again]:
        both_s = np.interp(end_s + s, knots_s, online_s) - np.interp(start_s + s, knots_s, online_s)
        seen_s = np.minimum(end_s, window_s - s) - np.minimum(start_s, window_s - s)
        found[again.format(s)] = float(both_s.sum() / seen_s.sum())
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
