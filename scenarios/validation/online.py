"""Shares of a crowd that are online, by the hour and some time later."""

import numpy as np

from validation import FloatArray
from validation.sample import DAY_S, LISTED, Seen


def online(seen: Seen) -> dict[str, float]:
    """Return the shares online that are published of the FLASH sample, by their names."""
    there, ever = seen.clock_s[seen.owner], np.unique(seen.owner)
    of_hour = by_hour(there + seen.start_s, there + seen.end_s)
    of_hour /= by_hour(seen.clock_s[ever], (seen.clock_s + seen.span_s)[ever])
    shares = {f"share online at {hour} h": share for hour, share in enumerate(of_hour.tolist())}
    return {**later(seen), **shares, "share online, largest hour over smallest": float(of_hour.max() / of_hour.min())}


def by_hour(start_s: FloatArray, end_s: FloatArray) -> FloatArray:
    """Return how much time intervals cover in each hour of the day, all days together."""
    hour_s = DAY_S / 24 * np.arange(24)[:, None]
    before_s = [at // DAY_S * DAY_S / 24 + np.clip(at % DAY_S - hour_s, 0, DAY_S / 24) for at in (start_s, end_s)]
    return np.asarray((before_s[1] - before_s[0]).sum(axis=1))


def later(seen: Seen) -> dict[str, float]:
    """Return in which share of the time online users are in the same session later, and in which they are online."""
    still, again = "online, still in the session after {} s", "online, online {} s later"
    length_s = seen.end_s - seen.start_s
    found = {still.format(s): float(np.maximum(length_s - s, 0).sum() / length_s.sum()) for s in LISTED[still]}
    # Users lie one after the other, so far apart that none is met in the time of another.
    from_s = 2 * seen.span_s.max() * seen.owner
    start_s, end_s, window_s = from_s + seen.start_s, from_s + seen.end_s, from_s + seen.span_s[seen.owner]
    knots_s, total_s = np.stack([start_s, end_s], 1).ravel(), np.cumsum(length_s)
    online_s = np.stack([total_s - length_s, total_s], 1).ravel()
    for s in LISTED[again]:
        both_s = np.interp(end_s + s, knots_s, online_s) - np.interp(start_s + s, knots_s, online_s)
        seen_s = np.minimum(end_s, window_s - s) - np.minimum(start_s, window_s - s)
        found[again.format(s)] = float(both_s.sum() / seen_s.sum())
    return found
