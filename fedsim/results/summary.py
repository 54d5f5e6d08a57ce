"""The summary of a run: its main numbers."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.accounting import wasted_shares
from fedsim.history.notes import Rates
from fedsim.results.manifest import SUMMARY, checked_bytes
from fedsim.results.places import located
from fedsim.results.state import read_state


def summarise(
    history: History,
    target_accuracy: float = 0.8,
    smoothing: int = 1,
    participations: Iterable[pa.RecordBatch] | None = None,
    budget: float | None = None,
    side_information: str = "none",
) -> dict[str, Any]:
    """Return the summary of a run by the names of its quantities; None for one that does not exist.

    Parameters
    ----------
    history : of the run
    target_accuracy : accuracy whose time is stated, a share
    smoothing : window of the causal mean over evaluations
    participations : the participations batch by batch, where they are too many for memory
    budget : greatest epsilon that a client may leak; None without privacy, where no leakage is stated
    side_information : ``"none"``, ``"private"`` or ``"exact"``: how the numbers beside updates are sent
    """
    durations_s = history.column("rounds", "duration_s")
    ends_s = history.column("rounds", "end_s")
    selected = int(history.column("rounds", "selected").sum())
    delivered = int(history.column("rounds", "delivered").sum())
    _, accuracy = history.curve("round", "accuracy", smoothing)
    accuracy = accuracy[~np.isnan(accuracy)]
    leakage = history.column("rounds", "largest_leakage")
    reached, rates = set[int](), Rates()
    batches = history.participations.to_batches() if participations is None else participations
    wasted_time, wasted_bits = wasted_shares(history, _noting(batches, reached, rates))
    return {
        "rounds": history.rounds.num_rows,
        "simulated_s": float(ends_s[-1]) if ends_s.size else 0.0,
        "mean_round_s": float(durations_s.mean()) if durations_s.size else None,
        "final_accuracy": float(accuracy[-1]) if accuracy.size else None,
        "best_accuracy": float(accuracy.max()) if accuracy.size else None,
        "target_accuracy": target_accuracy,
        "time_to_accuracy_s": history.time_to_accuracy(target_accuracy, smoothing) if accuracy.size else None,
        "final_metrics": _last_metrics(history),
        "participations": selected,
        "delivered_share": delivered / selected if selected else None,
        "late": int(history.column("rounds", "late").sum()),
        "dropped": int(history.column("rounds", "dropped").sum()),
        "wasted_time_share": wasted_time,
        "wasted_bits_share": wasted_bits,
        "clients_reached": len(reached),
        "privacy": budget is not None,
        "side_information": side_information,
        "largest_leakage": float(leakage[-1]) if leakage.size and budget is not None else None,
        "notes": history.told(rates, budget),
    }


def _last_metrics(history: History) -> dict[str, float]:
    """Return the metrics of the last evaluation by name; none where the task has accuracy alone."""
    rows = history.evaluations.column("metrics").slice(max(0, history.evaluations.num_rows - 1)).to_pylist()
    return dict(rows[0]) if rows and rows[0] is not None else {}


def _noting(batches: Iterable[pa.RecordBatch], reached: set[int], rates: Rates) -> Iterator[pa.RecordBatch]:
    """Yield batches of participations; add their clients to a set, and look at their rates."""
    for batch in batches:
        reached.update(pc.unique(batch.column("client")).to_pylist())
        rates.see(batch)
        yield batch


def read_summary(path: str | Path) -> dict[str, Any]:
    """Return the summary in the folder of a finished run.

    Raises
    ------
    RunError
        If there is none.
    """
    folder = Path(path)
    file = located(folder, SUMMARY)
    try:
        found: dict[str, Any] = json.loads(checked_bytes(file, SUMMARY, read_state(folder)))
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: cannot be read as the summary of a run: {error}") from None
    return found


def rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a summary as lines of a table: quantity, and value with its unit."""

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else form.format(value)

    leakage = (
        shown(summary["largest_leakage"], "{:.4g} epsilon") if summary.get("privacy", True) else "no privacy mechanism"
    )
    if summary.get("privacy", True) and summary.get("side_information") == "exact":
        leakage += " by updates; side information not private"
    target = f"time to {100 * summary['target_accuracy']:g} % accuracy"
    return [
        ("rounds", shown(summary["rounds"], "{:,}")),
        ("simulated time", shown(summary["simulated_s"], "{:,.2f} s")),
        ("mean round", shown(summary["mean_round_s"], "{:.3f} s")),
        ("final accuracy", shown(summary["final_accuracy"], "{:.2%}")),
        ("best accuracy", shown(summary["best_accuracy"], "{:.2%}")),
        (target, shown(summary["time_to_accuracy_s"], "{:,.2f} s")),
        *((f"final {name}", f"{value:.4g}") for name, value in summary.get("final_metrics", {}).items()),
        ("participations", shown(summary["participations"], "{:,}")),
        ("delivered", shown(summary["delivered_share"], "{:.1%}")),
        ("late, dropped", f"{summary['late']:,}, {summary['dropped']:,}"),
        ("wasted time, bits", f"{summary['wasted_time_share']:.1%}, {summary['wasted_bits_share']:.1%}"),
        ("largest leakage", leakage),
    ]
