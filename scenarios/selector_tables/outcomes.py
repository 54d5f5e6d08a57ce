"""What one run came to, as a record that can be written on a line."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from paper_runs.curves import first_s

from fedsim.history import History

TARGET: Final = 0.8
SMOOTHING: Final = 3
"""Rounds whose mean accuracy reaches the target."""
POINTS: Final = 101
"""Instants from 0 to the end of the run at which the accuracy is kept."""


@dataclass(frozen=True)
class Outcome:
    seconds: float
    to_target_s: float  # infinite if not reached, as the rounds
    to_target_rounds: float
    final_accuracy: float
    round_s: float
    asked_s: float  # of a round until its first participation begins: questions
    compute_s: float
    uplink_s: float
    used: float  # updates a round
    empty: float
    wasted: float
    clients: float  # share of which an update was used
    jain: float
    leakage: float  # largest of a client, in epsilon
    noise_to_signal: float  # median of the last third of the rounds; NaN without privacy
    accuracy: tuple[float, ...]  # at `POINTS` instants; NaN before the first evaluation

    @classmethod
    def of(cls, history: History, clients: int, seconds: float) -> Self:
        used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
        served = np.bincount(history.column("participations", "client")[used], minlength=clients).astype(float)
        rounds = history.column("rounds", "round")
        in_round = np.bincount(history.column("participations", "round")[used], minlength=rounds.max() + 1)[1:]
        time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
        reached_s = first_s(time_s, accuracy, TARGET)
        noise = history.column("rounds", "noise_to_signal")[-math.ceil(rounds.size / 3) :].astype(float)
        in_time = math.inf if reached_s is None or reached_s > seconds else reached_s
        ended = (history.column("rounds", "end_s") <= in_time).sum()
        arrived = history.column("participations", "outcome") == "delivered"
        compute_s, uplink_s = (history.column("participations", f"{part}_s")[arrived] for part in ("compute", "uplink"))
        return cls(
            seconds=seconds,
            to_target_s=in_time,
            to_target_rounds=float(ended) if math.isfinite(in_time) else math.inf,
            final_accuracy=float(accuracy[-1]),
            round_s=float(history.column("rounds", "duration_s").mean()),
            asked_s=_asked_s(history),
            compute_s=float(compute_s.mean()) if arrived.any() else math.nan,
            uplink_s=float(uplink_s.mean()) if arrived.any() else math.nan,
            used=float(in_round.mean()),
            empty=float((in_round == 0).mean()),
            wasted=1.0 - float(used.mean()),
            clients=float((served > 0).mean()),
            jain=float(served.sum() ** 2 / (clients * np.square(served).sum())) if served.any() else 0.0,
            leakage=float(history.column("rounds", "largest_leakage").max()),
            noise_to_signal=float(np.median(noise[np.isfinite(noise)])) if np.isfinite(noise).any() else math.nan,
            accuracy=_held(time_s, accuracy, np.linspace(0.0, seconds, POINTS)),
        )

    @property
    def restricted_s(self) -> float:
        """Seconds to the target, or those of the run where it was not reached."""
        return min(self.to_target_s, self.seconds)

    def to_row(self) -> dict[str, Any]:
        row = {name: _plain(value) for name, value in asdict(self).items() if name != "accuracy"}
        return {**row, "accuracy": [_plain(round(value, 4)) for value in self.accuracy]}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        none = {"to_target_s": math.inf, "to_target_rounds": math.inf}
        values: dict[str, Any] = {n: none.get(n, math.nan) if value is None else value for n, value in row.items()}
        values["accuracy"] = tuple(math.nan if value is None else float(value) for value in row["accuracy"])
        return cls(**values)


def _asked_s(history: History) -> float:
    """Return the mean seconds between the beginning of a round and that of its first participation."""
    number, start_s = (history.column("rounds", name) for name in ("round", "start_s"))
    of_round, begun_s = (history.column("participations", name) for name in ("round", "start_s"))
    first_s = np.full(int(max(number.max(), of_round.max())) + 1, np.inf)
    np.minimum.at(first_s, of_round, begun_s)
    waited_s = first_s[number] - start_s
    return float(np.maximum(waited_s[np.isfinite(waited_s)], 0.0).mean())


def _held(time_s: np.ndarray, accuracy: np.ndarray, at_s: np.ndarray) -> tuple[float, ...]:
    """Return the last accuracy known at each instant; NaN before the first."""
    last = np.searchsorted(time_s, at_s, side="right") - 1
    return tuple(np.where(last < 0, math.nan, accuracy[np.maximum(last, 0)]).tolist())


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
