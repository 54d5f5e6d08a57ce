"""What one run came to, as figures by name."""

import math
from typing import Final

import numpy as np

from fedsim.history import History

TARGET: Final = 0.8
SMOOTHING: Final = 3
"""Rounds whose mean accuracy reaches the target."""
POINTS: Final = 101
"""Instants from 0 to the end of the run at which the mean curve is drawn."""
Outcome = dict[str, float]
"""``to_target_s`` and ``to_target_rounds`` are infinite where the target is not reached; shares are from 0 to 1."""


def outcome_of(history: History, clients: int, seconds: float) -> Outcome:
    used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
    served = np.bincount(history.column("participations", "client")[used], minlength=clients).astype(float)
    rounds = history.column("rounds", "round")
    in_round = np.bincount(history.column("participations", "round")[used], minlength=rounds.max() + 1)[1:]
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
    first = np.flatnonzero((accuracy >= TARGET) & (time_s <= seconds))[:1]
    reached_s = float(time_s[first[0]]) if first.size else math.inf
    noise = history.column("rounds", "noise_to_signal")[-math.ceil(rounds.size / 3) :].astype(float)
    arrived = history.column("participations", "outcome") == "delivered"
    work_s, up_s = (history.column("participations", name)[arrived] for name in ("compute_s", "uplink_s"))
    return {
        "to_target_s": reached_s,
        "restricted_s": min(reached_s, seconds),
        "to_target_rounds": float((history.column("rounds", "end_s") <= reached_s).sum()) if first.size else math.inf,
        "final_accuracy": float(accuracy[-1]),
        "round_s": float(history.column("rounds", "duration_s").mean()),
        "asked_s": _asked_s(history),
        "compute_s": float(work_s.mean()) if arrived.any() else math.nan,
        "uplink_s": float(up_s.mean()) if arrived.any() else math.nan,
        "used": float(in_round.mean()),
        "empty": float((in_round == 0).mean()),
        "wasted": 1.0 - float(used.mean()),
        "clients": float((served > 0).mean()),
        "jain": float(served.sum() ** 2 / (clients * np.square(served).sum())) if served.any() else 0.0,
        "leakage": float(history.column("rounds", "largest_leakage").max()),
        "noise_to_signal": float(np.median(noise[np.isfinite(noise)])) if np.isfinite(noise).any() else math.nan,
    }


def _asked_s(history: History) -> float:
    """Return the mean seconds between the beginning of a round and that of its first participation: questions."""
    number, start_s = (history.column("rounds", name) for name in ("round", "start_s"))
    of_round, begun_s = (history.column("participations", name) for name in ("round", "start_s"))
    first_s = np.full(int(max(number.max(), of_round.max())) + 1, np.inf)
    np.minimum.at(first_s, of_round, begun_s)
    waited_s = first_s[number] - start_s
    return float(np.maximum(waited_s[np.isfinite(waited_s)], 0.0).mean())


def held(history: History, seconds: float) -> np.ndarray:
    """Return the last accuracy known at `POINTS` instants; NaN before the first."""
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
    last = np.searchsorted(time_s, np.linspace(0.0, seconds, POINTS), side="right") - 1
    return np.where(last < 0, math.nan, np.round(accuracy[np.maximum(last, 0)], 4))
