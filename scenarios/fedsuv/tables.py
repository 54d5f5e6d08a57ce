"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods, averaging and Yogi.

python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
    [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--workers N] [--data-dir DIR]
    [--out FOLDER]
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsuv_tasks import LABELS, METHODS, SERVERS, TASKS, Aggregation, Local, reported, scenario_of
from paper_runs.command import changes, options, publish, run_asked
from paper_runs.curves import Panel, draw
from paper_runs.runs import Ended, PaperRun, scaled
from paper_runs.tables import markdown, with_deviation

from fedsim import Scenario
from fedsim.history import History, save

LAST = 5
"""Evaluations whose mean is the accuracy at the end."""
LOCAL: tuple[Local, ...] = ("steps", "epochs")
USED = ("used", "stale-used")
"""Fates of updates that are part of a model."""
WINDOW = 10
"""Rounds over which used updates are counted for the effective number of clients."""
HEADS = (
    *("method", "rounds to the target", "paper", "speed-up over FedAvg", "paper", "s to the target"),
    *("accuracy at the end %", "paper", "rounds to FedAvg's last accuracy", "delivered", "rounds without a delivery"),
    *("effective number of clients in ten rounds", "simulated h", "seeds", "wall s"),
)


class Setting(NamedTuple):
    """One half of a column of the paper's tables, under one reading of "local epochs"."""

    task: str
    aggregation: Aggregation
    local: Local

    @property
    def name(self) -> str:
        return f"{self.task}-{self.aggregation}-{self.local}"

    @property
    def title(self) -> str:
        return f"{TASKS[self.task].title}, {self.aggregation}, local work in {self.local}"

    def scenario(self, method: str, seed: int, values: Mapping[str, Any]) -> Scenario:
        return scenario_of(self.task, method, self.aggregation, self.local, seed, values)


def last_accuracy(history: History) -> float:
    """Return the mean of the last evaluations, without that of the first model."""
    number, accuracy = history.curve("round", "accuracy")
    return float(accuracy[number > 0][-LAST:].mean())


def rounds_to(history: History, target: float) -> float:
    """Return the round after which an evaluation first reaches a target; infinite if none does."""
    number, accuracy = history.curve("round", "accuracy")
    reached = np.flatnonzero((accuracy >= target) & (number > 0))
    return float(number[reached[0]]) if reached.size else math.inf


def seconds_to(history: History, target: float) -> float:
    """Return the simulated second of that evaluation; infinite if none reaches the target."""
    found = history.time_to_accuracy(target)
    return math.inf if found is None else found


def effective_number(history: History) -> float:
    """Return ``1 / sum of squared shares`` of the clients whose updates are used, mean over windows of rounds."""
    used = np.isin(history.column("participations", "fate"), USED)
    window = (history.column("participations", "round")[used] - 1) // WINDOW
    client = history.column("participations", "client")[used]
    found = []
    for one in np.unique(window):
        share = np.unique(client[window == one], return_counts=True)[1] / np.count_nonzero(window == one)
        found.append(1.0 / float((share**2).sum()))
    return float(np.mean(found or [0.0]))


def row_of(
    setting: Setting, method: str, runs: Sequence[tuple[Ended, History]], fedavg: Sequence[History]
) -> list[str]:
    """Return the row of a method, beside the runs of FedAvg."""
    reference = np.mean([last_accuracy(history) for history in fedavg] or [math.nan])
    histories = [history for _, history in runs]
    target = runs[0][0].run.scenario.results.target_accuracy
    delivered = [history.column("participations", "outcome") == "delivered" for history in histories]
    empty = [_without_delivery(history) for history in histories]
    at, task = reported(method), TASKS[setting.task]
    rounds, paper = [rounds_to(history, target) for history in histories], task.rounds[setting.aggregation]
    first = [rounds_to(history, target) for history in fedavg]
    compared = bool(first) and np.isfinite([*first, *rounds]).all()
    return [
        LABELS[method],
        with_deviation(rounds, 0),
        str(paper[at]),
        f"{np.mean(first) / np.mean(rounds):.2f}" if compared else "-",
        f"{paper[0] / paper[at]:.2f}",
        with_deviation([seconds_to(history, target) for history in histories], 0),
        with_deviation([100.0 * last_accuracy(history) for history in histories], 2),
        f"{task.accuracy[setting.aggregation][at]:.2f}",
        "-" if math.isnan(reference) else with_deviation([rounds_to(one, float(reference)) for one in histories], 0),
        with_deviation([100.0 * float(one.mean()) for one in delivered], 0, " %"),
        with_deviation(empty, 0),
        with_deviation([effective_number(history) for history in histories], 0),
        with_deviation([float(history.column("rounds", "end_s")[-1]) / 3600.0 for history in histories], 1),
        str(len(runs)),
        f"{sum(ended.wall_s for ended, _ in runs):.0f}",
    ]


def _without_delivery(history: History) -> float:
    """Return how many rounds used no update."""
    used = np.isin(history.column("participations", "fate"), USED)
    rounds = history.column("rounds", "round")
    return float(rounds.size - np.unique(history.column("participations", "round")[used]).size)


def part_of(setting: Setting, ended: Sequence[Ended], folder: Path) -> str:
    """Draw the figure of a setting and return its part of the page."""
    found: dict[str, list[tuple[Ended, History]]] = {}
    for one in ended:
        if not one.skipped:
            found.setdefault(one.run.method, []).append((one, one.history()))
    lines = [
        f"### {setting.title}\n",
        *sorted({f"Skipped (`fedsim data` tells more): {one.skipped}\n" for one in ended if one.skipped}),
    ]
    if not found:
        return "\n".join(lines)
    scenario = ended[0].run.scenario
    fedavg = [history for _, history in found.get("fedavg", [])]
    lines.append(f"{scenario.rounds.count} rounds; the target is {100 * scenario.results.target_accuracy:.0f} %.\n")
    lines.append(markdown(HEADS, [row_of(setting, method, runs, fedavg) for method, runs in found.items()]))
    print(_drawn(setting, found, folder))
    return "\n".join(lines)


def _drawn(setting: Setting, found: Mapping[str, Sequence[tuple[Ended, History]]], folder: Path) -> Path:
    panel = Panel("round", "accuracy", labels=("training round", "test accuracy"), title=f"FedSUV: {setting.title}")
    file = folder / f"{setting.name}.png"
    save(draw({LABELS[name]: [history for _, history in runs] for name, runs in found.items()}, panel), file)
    return file


def main() -> None:
    parser = options("FedSUV, Tables 2 and 3 and the convergence figures.", "runs/fedsuv", METHODS)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--aggregation", nargs="+", choices=SERVERS, default=list(SERVERS), metavar="NAME")
    parser.add_argument("--local", nargs="+", choices=LOCAL, default=["steps"], metavar="NAME", help="steps, epochs")
    arguments = parser.parse_args()
    settings = [
        Setting(task, aggregation, local)
        for task in arguments.task
        for local in arguments.local
        for aggregation in arguments.aggregation
    ]
    runs = [
        PaperRun(setting.name, method, scaled(setting.scenario(method, seed, changes(arguments)), arguments.scale))
        for setting in settings
        for seed in range(arguments.seeds)
        for method in METHODS
        if method in arguments.methods
    ]
    ended = run_asked(runs, arguments)
    parts = [
        part_of(setting, [one for one in ended if one.run.experiment == setting.name], arguments.out)
        for setting in settings
    ]
    publish("scenarios/fedsuv/tables.py", parts, arguments.out)


if __name__ == "__main__":
    main()
