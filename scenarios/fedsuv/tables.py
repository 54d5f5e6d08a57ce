"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods and rest, averaging and Yogi.

    python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
        [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR]

All 1,000 rounds of a method with MobileNetV2 take 13 minutes of a processor (--executor sequential), with ResNet-18
22 to 64 minutes. Tasks: cifar10_resnet18, cifar10_mobilenet, cifar100_shufflenet, femnist_resnet18, speech_resnet34.
"""

import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsuv_tasks import HERE, LABELS, METHODS, SERVERS, TASKS, Aggregation, Local, reported, values_of
from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw
from paper_runs.runs import Ended, run_methods, scaled
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
    *("effective number of clients in ten rounds", "simulated h", "seeds", "processor s"),
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


def row_of(setting: Setting, method: str, ended: Ended) -> list[str]:
    """Return the row of a method, beside the runs of FedAvg."""
    histories, fedavg = ended.runs[method], ended.runs.get("fedavg", ())
    reference = np.mean([last_accuracy(history) for history in fedavg] or [math.nan])
    target = ended.base.results.target_accuracy
    delivered = [history.column("participations", "outcome") == "delivered" for history in histories]
    at, task = reported(method), TASKS[setting.task]
    rounds, paper = [rounds_to(history, target) for history in histories], task.rounds[setting.aggregation]
    first = [rounds_to(history, target) for history in fedavg]
    # A run of FedAvg that never has the target counts with all its rounds, so that the ratio is too small.
    speed_up, sure = "-", "" if np.isfinite(first).all() else "at least "
    if first and np.isfinite(rounds).all():
        speed_up = f"{sure}{np.mean(np.minimum(first, ended.base.rounds.count)) / np.mean(rounds):.2f}"
    return [
        LABELS[method],
        with_deviation(rounds, 0),
        str(paper[at]),
        speed_up,
        f"{paper[0] / paper[at]:.2f}",
        with_deviation([seconds_to(history, target) for history in histories], 0),
        with_deviation([100.0 * last_accuracy(history) for history in histories], 2),
        f"{task.accuracy[setting.aggregation][at]:.2f}",
        "-" if math.isnan(reference) else with_deviation([rounds_to(one, float(reference)) for one in histories], 0),
        with_deviation([100.0 * float(one.mean()) for one in delivered], 0, " %"),
        with_deviation([_without_delivery(history) for history in histories], 0),
        with_deviation([effective_number(history) for history in histories], 0),
        with_deviation([float(history.column("rounds", "end_s")[-1]) / 3600.0 for history in histories], 1),
        str(len(histories)),
        f"{ended.cpu_s[method]:.0f}",
    ]


def _without_delivery(history: History) -> float:
    """Return how many rounds used no update."""
    used = np.isin(history.column("participations", "fate"), USED)
    rounds = history.column("rounds", "round")
    return float(rounds.size - np.unique(history.column("participations", "round")[used]).size)


def part_of(setting: Setting, ended: Ended, folder: Path) -> str:
    """Draw the figure of a setting and return its part of the page."""
    lines = [f"### {setting.title}\n", *ended.told()]
    if ended.runs:
        target = ended.base.results.target_accuracy
        lines.append(f"{ended.base.rounds.count} rounds; the target is {100 * target:.0f} %.\n")
        lines.append(markdown(HEADS, [row_of(setting, method, ended) for method in ended.runs]))
        labels = ("training round", "test accuracy")
        panel = Panel("round", "accuracy", labels=labels, title=f"FedSUV: {setting.title}", target=target)
        file = folder / f"{setting.name}.png"
        save(draw({LABELS[name]: histories for name, histories in ended.runs.items()}, panel), file)
        print(file)
    return "\n".join(lines)


def main() -> None:
    parser = options(__doc__ or "", "runs/fedsuv", {method: LABELS[method] for method in METHODS})
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--aggregation", nargs="+", choices=SERVERS, default=list(SERVERS), metavar="NAME")
    parser.add_argument("--local", nargs="+", choices=LOCAL, default=["steps"], metavar="NAME", help="steps, epochs")
    asked = parser.parse_args()
    values, parts = changes(asked), []
    for setting in (
        Setting(task, aggregation, local)
        for task in asked.task
        for local in asked.local
        for aggregation in asked.aggregation
    ):
        base = scaled(Scenario.load(HERE / f"{setting.task}.toml").replace(values), asked.scale)
        methods = {
            method: values_of(base, method, setting.aggregation, setting.local, values)
            for method in METHODS
            if method in asked.methods
        }
        ended = run_methods(base, methods, range(asked.seeds), asked.out / "runs" / setting.name, engine(asked))
        parts.append(part_of(setting, ended, asked.out))
    publish("scenarios/fedsuv/tables.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
