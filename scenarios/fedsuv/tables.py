"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods and rest, averaging and Yogi.

    python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
        [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR]

All 1,000 rounds of a method with MobileNetV2 take 13 minutes of a processor (--executor sequential), with ResNet-18
22 to 64 minutes. Tasks: cifar10_resnet18, cifar10_mobilenet, cifar100_shufflenet, femnist_resnet18, speech_resnet34.
"""

import csv
import itertools
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import in_words, of_runs, publish
from paper_runs.curves import draw
from paper_runs.runs import Column, Found, Measured, Row, Table, Values, made, mean, scaled
from study_scripts import number

from fedsim import Scenario
from fedsim.history import History

HERE: Final = Path(__file__).parent
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}
SERVERS: Final[dict[str, Values]] = _FILE["servers"]
LAST, WINDOW, LATE = 5, 10, 100
"""Evaluations whose mean is the accuracy at the end; rounds of an effective number; rounds at the end."""
TO_TARGET, AT_END = "rounds to the target", "accuracy at the end %"
EFFECTIVE, OF_LATE = "effective number of clients in ten rounds", f"clients of the last {LATE} rounds"
with (HERE / "paper.csv").open(encoding="utf-8") as _file:
    _ROWS: Final = list(csv.DictReader(_file))
TASKS: Final = {row["task"]: row["title"] for row in _ROWS}
"""Titles of the tasks by the name of their file."""
PAPER: Final = {
    (row["task"], row["aggregation"], row["method"]): (int(row["rounds"]), row["accuracy"]) for row in _ROWS
}
"""Rounds to the target and accuracy at the end, by task, aggregation and method."""


def base_of(task: str, local: str, values: Values | None = None) -> Scenario:
    """Return what all runs of a task have in common, under one reading of "local epochs"."""
    base = Scenario.load(HERE / f"{task}.toml").replace(values or {})
    if local == "steps":
        return base
    steps = base.describe()["learning"]["local"]["steps"]
    epochs = {"learning.local.steps": None, "learning.local.epochs": steps}
    return base.replace({**epochs, "selector.samples_per_round": None})


def values_of(method: str, aggregation: str) -> Values:
    """Return what a method changes of a task's scenario: its selector, and what becomes of late updates."""
    return {**SERVERS[aggregation], **_FILE["methods"][method]["set"]}


def measure(target: float, history: History) -> Measured:
    """Return the columns of a run, and its curve."""
    curve = history.curve("round", "accuracy")
    used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
    taught, client = (history.column("participations", name)[used] for name in ("round", "client"))
    return {
        "curve": curve,
        TO_TARGET: number(f"rounds_to_{100 * target:g}%", history),
        "s to the target": number(f"time_to_{100 * target:g}%", history),
        AT_END: 100.0 * float(curve[1][curve[0] > 0][-LAST:].mean()),
        "delivered": 100.0 * float((history.column("participations", "outcome") == "delivered").mean()),
        EFFECTIVE: effective_number(taught, client),
        OF_LATE: float(np.unique(client[taught > history.rounds.num_rows - LATE]).size),
        "simulated h": number("simulated_s", history) / 3600.0,
    }


def effective_number(rounds: np.ndarray, client: np.ndarray) -> float:
    """Return ``1 / sum of squared shares`` of the clients of used updates, mean over windows of rounds."""
    window = (rounds - 1) // WINDOW
    times = (np.unique(client[window == one], return_counts=True)[1] for one in np.unique(window))
    return float(np.mean([of.sum() ** 2 / (of**2).sum() for of in times] or [0.0]))


def columns_of(task: str, aggregation: str, rounds: int) -> list[Column]:
    """Return the columns of a table whose runs have so many rounds."""

    def paper(method: str) -> tuple[int, str]:
        return PAPER[task, aggregation, method.removesuffix("-rest")]

    def speed_up(row: Row) -> str:
        first = [run[TO_TARGET] for run in row.found.get("fedavg", ())]
        own = [run[TO_TARGET] for run in row.runs]
        if not first or not np.isfinite(own).all():
            return "-"
        # A run of FedAvg that never has the target counts with all its rounds, so that the ratio is too small.
        sure = "" if np.isfinite(first).all() else "at least "
        return f"{sure}{np.mean(np.minimum(first, rounds)) / np.mean(own):.2f}"

    return [
        ("method", lambda row: LABELS[row.method]),
        mean(TO_TARGET, 0),
        ("paper", lambda row: str(paper(row.method)[0])),
        ("speed-up over FedAvg", speed_up),
        ("paper", lambda row: f"{paper('fedavg')[0] / paper(row.method)[0]:.2f}"),
        mean("s to the target", 0),
        mean(AT_END, 2),
        ("paper", lambda row: paper(row.method)[1]),
        mean("delivered", 0, " %"),
        mean(EFFECTIVE, 0),
        mean(OF_LATE, 0),
        mean("simulated h", 1),
    ]


def figure(title: str, target: float, found: Found) -> Figure:
    """Return accuracy over rounds."""
    curves = {LABELS[method]: [run["curve"] for run in runs] for method, runs in found.items()}
    return draw(curves, ("training round", "test accuracy"), f"FedSUV: {title}", target)


def main() -> None:
    names = {"task": TASKS, "aggregation": dict.fromkeys(SERVERS, True), "local": {"steps": True, "epochs": False}}
    asked = of_runs(__doc__, "runs/fedsuv", LABELS, **names).parse_args()
    of_methods = {path: value for path, value in asked.set if path != "rounds.count"}
    parts = []
    for task, local, aggregation in itertools.product(asked.task, asked.local, asked.aggregation):
        base = scaled(base_of(task, local, dict(asked.set)), asked.scale)
        target, name = base.results.target_accuracy, f"{task}-{aggregation}-{local}"
        title = f"{TASKS[task]}, {aggregation}, local work in {local}"
        methods = {one: {**values_of(one, aggregation), **of_methods} for one in LABELS if one in asked.methods}
        table = Table(
            name,
            title,
            base,
            methods,
            partial(measure, target),
            columns_of(task, aggregation, base.rounds.count),
            {f"{name}.png": partial(figure, title, target)},
            f"; the target is {100 * target:.0f} %",
        )
        parts.append(made(table, asked))
    publish("scenarios/fedsuv/tables.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
