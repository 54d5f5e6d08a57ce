"""The numbers of a run that stand in tables and figures, noted beside the runs, so that long tables need not stay."""

import json
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np

from fedsim.history import History
from fedsim.studies.running.records import INDEX
from fedsim.whole_files import replace_file

LAST: Final = 5
"""Evaluations whose mean is the accuracy at the end."""
_FILE: Final = "numbers.json"


class RunNumbers(NamedTuple):
    accuracy: float  # per cent, mean of the last evaluations, as macro-F1
    macro_f1: float
    rounds_to_target: float | None
    samples: float  # that train in a round, as clients
    clients: float
    duration_s: float
    sent_mbit: float
    cpu_s: float

    @classmethod
    def of(cls, history: History, target: float, cpu_s: float) -> Self:
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
            cpu_s=cpu_s,
        )


def noted(folder: Path) -> dict[str, RunNumbers]:
    """Return the numbers of runs whose tables have been removed, by the digests of their scenarios."""
    file = folder / _FILE
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {digest: RunNumbers(**numbers) for digest, numbers in found.items()}


def note(folder: Path, numbers: dict[str, RunNumbers]) -> None:
    """Note numbers of runs, and remove the tables of the folder: 28 million rows in a run with 23,622 clients."""
    text = json.dumps({digest: one._asdict() for digest, one in numbers.items()}, indent=1)
    replace_file(folder / _FILE, lambda part: part.write_text(text, encoding="utf-8"))
    for name in (INDEX, "tables.arrows"):
        (folder / name).unlink(missing_ok=True)
