"""The numbers of a run that stand in tables and figures, kept beside it, so that its long tables need not be."""

import json
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from paper_runs.runs import Ended, PaperRun

from fedsim.history import History
from fedsim.whole_files import replace_file

LAST: Final = 5
"""Evaluations whose mean is the accuracy at the end."""
_FILE: Final = "numbers.json"
_LONG: Final = ("participations.parquet", "probes.parquet")
"""Tables with a row for each client and round: 28 million rows in a run of FedSampling with 23,622 clients."""


class RunNumbers(NamedTuple):
    accuracy: float  # per cent, mean of the last evaluations, as macro-F1
    macro_f1: float
    rounds_to_target: float | None
    samples: float  # that train in a round, as clients
    clients: float
    duration_s: float
    sent_mbit: float
    wall_s: float

    @classmethod
    def of(cls, history: History, target: float, wall_s: float) -> Self:
        rounds = history.column("rounds", "round").size
        work_s = history.column("participations", "compute_s")
        accuracy = history.column("evaluations", "accuracy")
        reached = np.flatnonzero(accuracy >= target)
        return cls(
            accuracy=100.0 * float(accuracy[-LAST:].mean()),
            macro_f1=100.0 * float(history.metric("macro-f1")[-LAST:].mean()),
            rounds_to_target=float(history.column("evaluations", "round")[reached[0]]) if reached.size else None,
            samples=float(work_s.sum()) * 1000.0 / rounds,
            clients=float((work_s > 0).sum()) / rounds,
            duration_s=float(history.column("rounds", "duration_s").mean()),
            sent_mbit=float(history.column("participations", "uplink_bits").sum()) / rounds / 1e6,
            wall_s=wall_s,
        )


class Measured(NamedTuple):
    """A run that has ended, and its numbers."""

    ended: Ended
    numbers: RunNumbers


def kept(asked: PaperRun, out: Path) -> Measured | None:
    """Return a run whose long tables have been removed, or None if there is none."""
    folder = asked.folder(out)
    file = folder / _FILE
    if not file.exists() or (folder / _LONG[0]).exists():
        return None
    numbers = RunNumbers(**json.loads(file.read_text(encoding="utf-8")))
    return Measured(Ended(asked, folder, numbers.wall_s), numbers)


def measured(ended: Ended, *, thin: bool) -> Measured:
    """Return the numbers of a run that has ended."""
    target = float(ended.run.scenario.results.target_accuracy)
    numbers = RunNumbers.of(ended.history(), target, ended.wall_s)
    if thin:
        text = json.dumps(numbers._asdict(), indent=1)
        replace_file(ended.folder / _FILE, lambda part: part.write_text(text, encoding="utf-8"))
        for name in _LONG:
            (ended.folder / name).unlink(missing_ok=True)
    return Measured(ended, numbers)
