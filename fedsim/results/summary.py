"""The summary of a run: its main numbers."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.accounting import spent
from fedsim.history.analyses.gaps import final_s, value_at
from fedsim.history.fairness import Spread, judged_by, last_spread
from fedsim.history.history import told
from fedsim.history.notes import Rates
from fedsim.history.outcomes import JudgedModel, JudgedSamples
from fedsim.history.tables import Goal
from fedsim.results.manifest import SUMMARY, checked_bytes
from fedsim.results.places import located
from fedsim.results.sentences import fixed, percent
from fedsim.results.state import read_state

_TOLD: Final = ("mean", "std", "worst_decile", "best_decile")
"""What is printed of the spread of a metric over clients."""


def summarise(
    history: History,
    target_accuracy: float = 0.8,
    held: int = 1,
    participations: Iterable[pa.RecordBatch] | None = None,
    budget: float | None = None,
    side_information: str = "none",
) -> dict[str, Any]:
    """Return the summary of a run by the names of its quantities; None for one that does not exist."""
    durations_s = history.column("rounds", "duration_s")
    ends_s = history.column("rounds", "end_s")
    delivered, late, dropped = (int(history.column("rounds", name).sum()) for name in ("delivered", "late", "dropped"))
    ended_s = float(ends_s[-1]) if ends_s.size else 0.0
    at_s = final_s(history, history.until_s)
    in_time = history.column("evaluations", "time_s") <= at_s
    accuracy = history.column("evaluations", "accuracy").astype(np.float64)[in_time]
    accuracy = accuracy[~np.isnan(accuracy)]
    reaching = history.reached(above=target_accuracy, held=held)
    leakage, mean_leakage = (history.column("rounds", f"{name}_leakage") for name in ("largest", "mean"))
    reached, rates = Counter[int](), Rates()
    batches = history.participations.to_batches() if participations is None else participations
    used = spent(history, _noting(batches, reached, rates))
    selected = reached.total()
    return {
        "rounds": history.rounds.num_rows,
        "simulated_s": ended_s,
        "until_s": history.until_s,
        "final_s": at_s,
        "ended_s": ended_s,
        "mean_round_s": float(durations_s.mean()) if durations_s.size else None,
        "final_accuracy": value_at(history, "accuracy", at_s),
        "best_accuracy": float(accuracy.max()) if accuracy.size else None,
        "mean_accuracy": history.mean_over_time("accuracy", at_s),
        "mean_accuracy_bounds": history.mean_over_time_bounds("accuracy", at_s),
        "judged": _judged(history),
        "target_accuracy": target_accuracy,
        "time_to_accuracy_s": reaching.first_s,
        "time_to_accuracy_after_s": reaching.after_s,
        "held_evaluations": held,
        "time_to_accuracy_held_s": reaching.held_s,
        "target": None if history.target is None else history.target._asdict(),
        "time_to_target_s": _target_s(history),
        "final_metrics": {name: value_at(history, name, at_s) for name in history.metrics},
        "participations": selected,
        "delivered_share": delivered / selected if selected else None,
        "late": late,
        "dropped": dropped,
        "in_flight": selected - delivered - late - dropped,
        "downlink_bits": used.downlink_bits,
        "uplink_bits": used.uplink_bits,
        "energy_j": used.energy_j if _has_batteries(history) else None,
        "wasted_time_share": used.wasted_time,
        "wasted_bits_share": used.wasted_bits,
        "wasted_work_share": used.wasted_work,
        "wasted_energy_share": used.wasted_energy if _has_batteries(history) else None,
        "clients_reached": len(reached),
        "privacy": budget is not None,
        "side_information": side_information,
        "largest_leakage": float(leakage[-1]) if leakage.size and budget is not None else None,
        "mean_leakage": float(mean_leakage[-1]) if leakage.size and budget is not None else None,
        **_spread(history),
        "notes": told(history, rates, budget),
    }


def _target_s(history: History) -> float | None:
    """Return when the target of another metric is first reached; None without one."""
    if history.target is None or not history.evaluations.num_rows:
        return None
    return history.reached(**history.target.asked).first_s


def _has_batteries(history: History) -> bool:
    clients = history.clients
    return clients is not None and clients.column("capacity_j").null_count < clients.num_rows


def _spread(history: History) -> dict[str, Any]:
    """Return the last spread of the clients' accuracies; without an accuracy, that of the first metric."""
    by = judged_by(history)
    found = last_spread(history, by)
    known = {} if found is None else {name: value for name, value in found._asdict().items() if name != "clients"}
    accuracy = known if by == "accuracy" else {}
    other = {name: value if math.isfinite(value) else None for name, value in known.items()}
    return {
        **{f"client_accuracy_{name}": accuracy.get(name) for name in Spread._fields if name != "clients"},
        "client_metric": None if by == "accuracy" or not known else {"name": by, **other},
    }


def _noting(batches: Iterable[pa.RecordBatch], reached: Counter[int], rates: Rates) -> Iterator[pa.RecordBatch]:
    """Yield batches of participations; count those of each client, and look at their rates."""
    for batch in batches:
        counts = pc.value_counts(batch.column("client"))
        reached.update(dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)))
        rates.see(batch)
        yield batch


def read_summary(path: str | Path) -> dict[str, Any]:
    folder = Path(path)
    file = located(folder, SUMMARY)
    try:
        found: dict[str, Any] = json.loads(checked_bytes(file, SUMMARY, read_state(folder)))
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: cannot be read as the summary of a run: {error}") from None
    return found


def rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a summary as lines of a table: quantity, and value with its unit; without what the run has not."""

    def shown(name: str, form: str) -> str:
        value = summary.get(name)
        return "-" if value is None else form.format(value)

    def share(name: str) -> str:
        return "-" if (value := summary.get(name)) is None else percent(value)

    target = f"time to {100 * summary['target_accuracy']:g} % accuracy"
    held = summary.get("held_evaluations", 1)
    judged = summary.get("judged")
    accuracies = [
        *([("accuracy is that of", judged)] if judged else []),
        (f"{target}, first reached", _first(summary)),
        *([(f"{target}, held for {held} evaluations", _seconds(summary["time_to_accuracy_held_s"]))] * (held > 1)),
        (f"final accuracy{_budget(summary, 'at')}", shown("final_accuracy", "{:.2%}")),
        (f"best accuracy{_budget(summary, 'up to')}", shown("best_accuracy", "{:.2%}")),
    ]
    lines = [
        *([_of_target(summary)] if summary.get("target") else []),
        *(accuracies if summary["best_accuracy"] is not None else []),
        *(
            (f"final {name}{_budget(summary, 'at')}", "-" if value is None else f"{value:.4g}")
            for name, value in summary.get("final_metrics", {}).items()
            if name != "accuracy"
        ),
        ("rounds", shown("rounds", "{:,}")),
        ("simulated time", f"{fixed(summary['simulated_s'], 2)} s"),
        ("mean round", _seconds(summary.get("mean_round_s"), 3)),
        ("participations", shown("participations", "{:,}")),
        ("delivered", share("delivered_share")),
        ("late, dropped", f"{shown('late', '{:,}')}, {shown('dropped', '{:,}')}"),
        *([("in flight at the end", shown("in_flight", "{:,}"))] * bool(summary.get("in_flight"))),
        ("wasted time, bits", f"{share('wasted_time_share')}, {share('wasted_bits_share')}"),
        ("wasted work", share("wasted_work_share")),
        ("bits down, up", f"{shown('downlink_bits', '{:.4g}')}, {shown('uplink_bits', '{:.4g}')}"),
    ]
    if summary.get("energy_j") is not None:
        lines.append(("energy", f"{shown('energy_j', '{:,.4g} J')}, {share('wasted_energy_share')} of it wasted"))
    if summary["privacy"]:
        exact = " by updates; side information not private" * (summary.get("side_information") == "exact")
        lines.append(("largest leakage", shown("largest_leakage", "{:.4g} epsilon") + exact))
    if summary.get("mean_leakage") is not None:
        lines.append(("mean leakage", shown("mean_leakage", "{:.4g} epsilon")))
    if summary.get("client_accuracy_mean") is not None:
        mean, std, worst = (shown(f"client_accuracy_{name}", "{:.2%}") for name in ("mean", "std", "worst_decile"))
        lines.append(("accuracy of clients", f"mean {mean}, deviation {std}, worst tenth {worst}"))
    if (of_metric := summary.get("client_metric")) is not None:
        told = {name: "-" if (value := of_metric[name]) is None else f"{value:.4g}" for name in _TOLD}
        spread = f"mean {told['mean']}, deviation {told['std']}, lowest tenth {told['worst_decile']}"
        lines.append((f"{of_metric['name']} of clients", f"{spread}, highest tenth {told['best_decile']}"))
    return lines


def _judged(history: History) -> str | None:
    """Return whose models on which samples evaluations are about, if not the server's on the test set."""
    rows = history.evaluations.select(["model", "judged_on"]).to_pylist()[-1:]
    if not rows or rows[0]["model"] != JudgedModel.OWN.label:
        return None
    held_out = rows[0]["judged_on"] == JudgedSamples.HELD_OUT.label
    samples = "samples that each holds out" if held_out else "its part of the test set"
    return f"the clients' own models, each on {samples}; mean over the clients"


def _of_target(summary: dict[str, Any]) -> tuple[str, str]:
    return f"time to {Goal(**summary['target'])}, first reached", _seconds(summary["time_to_target_s"])


def _budget(summary: dict[str, Any], which: str) -> str:
    """Return up to which second models count where a run has a budget of time: its end, or that of the run."""
    return "" if summary.get("until_s") is None else f" {which} {summary['final_s']:,.6g} s"


def _first(summary: dict[str, Any]) -> str:
    """Return when a target is first reached, in words; between two instants where models were not evaluated."""
    first_s, after_s = summary["time_to_accuracy_s"], summary.get("time_to_accuracy_after_s")
    if after_s == first_s:
        return _seconds(first_s)
    # Older summaries have the time of a mean.
    return "-" if after_s is None else f"{_seconds(first_s)}; models from {_seconds(after_s)} on were not evaluated"


def _seconds(value: float | None, decimals: int = 2) -> str:
    return "-" if value is None else f"{fixed(value, decimals)} s"
