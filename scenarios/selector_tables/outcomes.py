"""What one run came to, as figures by name."""

import math
from functools import partial

import numpy as np

from fedsim.history import History

TARGET, SMOOTHING = 0.8, 3  # accuracy, and rounds whose mean accuracy reaches the target
POINTS = 101  # instants from 0 to the end of the run at which the mean curve is drawn


def outcome_of(history: History, clients: int, seconds: float) -> dict[str, float]:
    """Return the figures of a run; where the target is not reached, seconds and rounds to it are infinite."""
    rounds, participations = partial(history.column, "rounds"), partial(history.column, "participations")
    used, arrived = np.isin(participations("fate"), ("used", "stale-used")), participations("outcome") == "delivered"
    served = np.bincount(participations("client")[used], minlength=clients)
    in_round = np.bincount(participations("round")[used], minlength=rounds("round").max() + 1)[1:]
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
    reached_s = min(time_s[(accuracy >= TARGET) & (time_s <= seconds)], default=math.inf)
    noise = rounds("noise_to_signal")[-math.ceil(rounds("round").size / 3) :].astype(float)
    found = {
        "to_target_s": reached_s,
        "restricted_s": min(reached_s, seconds),
        "final_accuracy": accuracy[-1],
        "to_target_rounds": (rounds("end_s") <= reached_s).sum() if math.isfinite(reached_s) else math.inf,
        "round_s": rounds("duration_s").mean(),
        "asked_s": _asked_s(*(of(name) for of in (rounds, participations) for name in ("round", "start_s"))),
        "compute_s": finite_mean(participations("compute_s")[arrived]),
        "uplink_s": finite_mean(participations("uplink_s")[arrived]),
        "used": in_round.mean(),
        "empty": (in_round == 0).mean(),
        "wasted": 1.0 - used.mean(),
        "clients": (served > 0).mean(),
        "jain": served.sum() ** 2 / max(1, clients * np.square(served).sum()),
        "leakage": rounds("largest_leakage").max(),
        "noise_to_signal": np.median(noise[np.isfinite(noise)]) if np.isfinite(noise).any() else math.nan,
    }
    return {name: float(value) for name, value in found.items()}


def finite_mean(values: np.ndarray) -> float:
    """Return the mean of the finite ones of some values, NaN where there is none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan


def _asked_s(number: np.ndarray, start_s: np.ndarray, of_round: np.ndarray, begun_s: np.ndarray) -> float:
    """Return the mean seconds between the beginning of a round and that of its first participation: questions."""
    first_s = np.full(max(number.max(), of_round.max()) + 1, np.inf)
    np.minimum.at(first_s, of_round, begun_s)
    return finite_mean(np.maximum(first_s[number] - start_s, 0.0))


def held(history: History, seconds: float) -> np.ndarray:
    """Return the last accuracy known at `POINTS` instants; NaN before the first."""
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
    last = np.searchsorted(time_s, np.linspace(0.0, seconds, POINTS), side="right") - 1
    return np.where(last < 0, math.nan, np.round(accuracy[np.maximum(last, 0)], 4))
