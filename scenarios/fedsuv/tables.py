"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods and rest, averaging and Yogi.

    python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
        [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR]

All 1,000 rounds of a method with MobileNetV2 take 13 minutes of a processor (--executor sequential), with ResNet-18
22 to 64 minutes. Tasks: cifar10_resnet18, cifar10_mobilenet, cifar100_shufflenet, femnist_resnet18, speech_resnet34.
"""

import csv
import itertools
import math
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import changes, in_words, of_runs, publish
from paper_runs.curves import Curve, draw
from paper_runs.runs import Column, Found, Measured, Row, Table, Values, first_at, made, mean, scaled
from paper_runs.tables import with_deviation

from fedsim import Scenario
from fedsim.history import History

HERE: Final = Path(__file__).parent
COHORT: Final = 20
_FILE: Final[dict[str, Any]] = tomllib.loads((HERE / "methods.toml").read_text(encoding="utf-8"))
LABELS: Final[dict[str, str]] = {name: of["label"] for name, of in _FILE["methods"].items()}
SERVERS: Final[dict[str, Values]] = _FILE["servers"]
LAST, WINDOW, LATE = 5, 10, 100
"""Evaluations whose mean is the accuracy at the end; rounds of an effective number; rounds at the end."""
TO_TARGET, AT_END = "rounds to the target", "accuracy at the end %"
EFFECTIVE, OF_LATE = "effective number of clients in ten rounds", f"clients of the last {LATE} rounds"
PAPER: Final[dict[tuple[str, str, str], tuple[int, str]]] = {}
"""Rounds to the target and accuracy at the end, by task, aggregation and method."""
TASKS: Final[dict[str, str]] = {}
"""Titles of the tasks by the name of their file."""
with (HERE / "paper.csv").open(encoding="utf-8") as _file:
    for _row in csv.DictReader(_file):
        TASKS[_row["task"]] = _row["title"]
        PAPER[_row["task"], _row["aggregation"], _row["method"]] = int(_row["rounds"]), _row["accuracy"]


def values_of(base: Scenario, method: str, aggregation: str, local: str) -> dict[str, Any]:
    """Return what a method changes of a task's scenario: its selector, and what becomes of late updates."""
    work, own = base.describe()["learning"]["local"], _FILE["methods"][method]
    epochs = local == "epochs"
    passed = {"samples_per_round": work["batch_size"] * work["steps"]} if "passed" in own and not epochs else {}
    return {
        **({"learning.local.steps": None, "learning.local.epochs": work["steps"]} if epochs else {}),
        **SERVERS[aggregation],
        "selector": {"cohort": COHORT, **own["selector"], **passed},
        **({"rounds.late": own["late"]} if "late" in own else {}),
    }


def scenario_of(task: str, method: str, aggregation: str, local: str, seed: int) -> Scenario:
    base = Scenario.load(HERE / f"{task}.toml")
    return base.replace({"seed": seed, **values_of(base, method, aggregation, local)})


def measure(target: float, history: History) -> Measured:
    """Return the columns of a run, and its curve."""
    curve = history.curve("round", "accuracy")
    used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
    taught, client = (history.column("participations", name)[used] for name in ("round", "client"))
    reached_s = history.time_to_accuracy(target)
    return {
        "curve": curve,
        TO_TARGET: rounds_to(curve, target),
        "s to the target": math.inf if reached_s is None else reached_s,
        AT_END: 100.0 * float(curve[1][curve[0] > 0][-LAST:].mean()),
        "delivered": 100.0 * float((history.column("participations", "outcome") == "delivered").mean()),
        "rounds without a delivery": float(history.rounds.num_rows - np.unique(taught).size),
        EFFECTIVE: effective_number(taught, client),
        OF_LATE: float(np.unique(client[taught > history.rounds.num_rows - LATE]).size),
        "simulated h": float(history.column("rounds", "end_s")[-1]) / 3600.0,
    }


def rounds_to(curve: Curve, target: float) -> float:
    """Return the round after which an evaluation first reaches a target, without that of the first model."""
    number, accuracy = curve
    return first_at(number[number > 0], accuracy[number > 0], target)


def effective_number(number: np.ndarray, client: np.ndarray) -> float:
    """Return ``1 / sum of squared shares`` of the clients of used updates, mean over windows of rounds."""
    found = []
    for window in np.unique((number - 1) // WINDOW):
        times = np.unique(client[(number - 1) // WINDOW == window], return_counts=True)[1]
        found.append(times.sum() ** 2 / (times**2).sum())
    return float(np.mean(found or [0.0]))


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

    def as_fedavg(row: Row) -> str:
        fedavg = [run[AT_END] / 100.0 for run in row.found.get("fedavg", ())]
        return with_deviation([rounds_to(run["curve"], float(np.mean(fedavg))) for run in row.runs if fedavg], 0)

    return [
        ("method", lambda row: LABELS[row.method]),
        mean(TO_TARGET, 0),
        ("paper", lambda row: str(paper(row.method)[0])),
        ("speed-up over FedAvg", speed_up),
        ("paper", lambda row: f"{paper('fedavg')[0] / paper(row.method)[0]:.2f}"),
        mean("s to the target", 0),
        mean(AT_END, 2),
        ("paper", lambda row: paper(row.method)[1]),
        ("rounds to FedAvg's last accuracy", as_fedavg),
        mean("delivered", 0, " %"),
        *(mean(head, 0) for head in ("rounds without a delivery", EFFECTIVE, OF_LATE)),
        mean("simulated h", 1),
    ]


def figure(title: str, target: float, found: Found) -> Figure:
    """Return accuracy over rounds."""
    curves = {LABELS[method]: [run["curve"] for run in runs] for method, runs in found.items()}
    return draw(curves, ("training round", "test accuracy"), f"FedSUV: {title}", target)


def table_of(
    task: str, aggregation: str, local: str, values: Mapping[str, Any], methods: list[str], scale: float
) -> Table:
    """Return one half of a column of the paper's tables, under one reading of "local epochs"."""
    base = scaled(Scenario.load(HERE / f"{task}.toml").replace(values), scale)
    target, name = base.results.target_accuracy, f"{task}-{aggregation}-{local}"
    last = {path: value for path, value in values.items() if path != "rounds.count"}
    title = f"{TASKS[task]}, {aggregation}, local work in {local}"
    return Table(
        name,
        title,
        base,
        {method: {**values_of(base, method, aggregation, local), **last} for method in LABELS if method in methods},
        partial(measure, target),
        columns_of(task, aggregation, base.rounds.count),
        {f"{name}.png": partial(figure, title, target)},
        f"; the target is {100 * target:.0f} %",
    )


def main() -> None:
    names = {"task": TASKS, "aggregation": dict.fromkeys(SERVERS, True), "local": {"steps": True, "epochs": False}}
    asked = of_runs(__doc__, "runs/fedsuv", LABELS, **names).parse_args()
    parts = [
        made(table_of(task, aggregation, local, changes(asked), asked.methods, asked.scale), asked)
        for task, local, aggregation in itertools.product(asked.task, asked.local, asked.aggregation)
    ]
    publish("scenarios/fedsuv/tables.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
