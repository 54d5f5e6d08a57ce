"""Statistics of a crowd's sessions that are published of the FLASH sample."""

from typing import Final

import numpy as np

from validation import FloatArray
from validation.online import online
from validation.sample import DAY_S, FACTS, LISTED, Seen

BETWEEN_SESSIONS: Final = 5  # of a user whose mean counts
CORRELATIONS: Final = tuple(name for name in FACTS if name.startswith("log "))


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
        **online(seen),
    }


def quantiles(name: str, sample: FloatArray) -> dict[str, float]:
    """Return the quantiles of a sample at the levels that are published, and its mean."""
    form = f"{name}, {{:.0%}} quantile"
    found = {form.format(level): float(np.quantile(sample, level)) for level in LISTED[form]}
    return {**found, f"{name}, mean": float(sample.mean())}


def correlation(seen: Seen, one: FloatArray, other: FloatArray, apart: int) -> float:
    """Return the correlation of a number with another of the same user that is some sessions later."""
    first, second = one[: one.size - apart], other[apart:]
    known = (seen.owner[apart:] == seen.owner[: one.size - apart]) & np.isfinite(first) & np.isfinite(second)
    return float(np.corrcoef(first[known], second[known])[0, 1])
