"""What FedSUV's tables tell of a run: accuracy at the end, deliveries, and of how many clients the model learns."""

from typing import Any, Final

import numpy as np
from fedsuv_tasks import COLUMNS
from paper_runs.runs import Measured, Row, metrics
from study_scripts import number

from fedsim.history import History

LAST, WINDOW, LATE = 5, 10, 100
"""Evaluations whose mean is the accuracy at the end; rounds of an effective number; rounds at the end."""
TO_TARGET: Final = "rounds to the target"


def measure(target: float, history: History) -> Measured:
    """Return the columns of a run, and its curve."""
    found: dict[str, Any] = metrics(COLUMNS, target, history)
    at, accuracy = found["curve"]
    used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
    taught, client = (history.column("participations", name)[used] for name in ("round", "client"))
    return found | {
        "accuracy at the end %": 100.0 * float(accuracy[at > 0][-LAST:].mean()),
        "delivered": 100.0 * float((history.column("participations", "outcome") == "delivered").mean()),
        "effective number of clients in ten rounds": effective_number(taught, client),
        f"clients of the last {LATE} rounds": float(np.unique(client[taught > history.rounds.num_rows - LATE]).size),
        "simulated h": number("simulated_s", history) / 3600.0,
    }


def effective_number(rounds: np.ndarray, client: np.ndarray) -> float:
    """Return ``1 / sum of squared shares`` of the clients of used updates, mean over windows of rounds."""
    window = (rounds - 1) // WINDOW
    times = (np.unique(client[window == one], return_counts=True)[1] for one in np.unique(window))
    return float(np.mean([of.sum() ** 2 / (of**2).sum() for of in times] or [0.0]))


def speed_up(rounds: int, row: Row) -> str:
    """Return how much sooner than FedAvg the target is reached by runs of so many rounds."""
    first, own = ([run[TO_TARGET] for run in runs] for runs in (row.found.get("fedavg", ()), row.runs))
    if not first or not np.isfinite(own).all():
        return "-"
    # A run of FedAvg that never has the target counts with all its rounds, so that the ratio is too small.
    sure = "" if np.isfinite(first).all() else "at least "
    return f"{sure}{np.mean(np.minimum(first, rounds)) / np.mean(own):.2f}"
