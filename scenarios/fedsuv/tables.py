"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods and rest, averaging and Yogi.

    python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
        [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR]

All 1,000 rounds of a method with MobileNetV2 take 13 minutes of a processor (--executor sequential), with ResNet-18
22 to 64 minutes. Tasks: cifar10_resnet18, cifar10_mobilenet, cifar100_shufflenet, femnist_resnet18, speech_resnet34.
"""

import itertools
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsuv_tasks import HERE, LABELS, METHODS, SERVERS, TASKS, Aggregation, Local, reported, values_of
from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw, written
from paper_runs.runs import Ended, run_methods, scaled
from paper_runs.tables import markdown, with_deviation

from fedsim import Scenario
from fedsim.history import History

LAST = 5
"""Evaluations whose mean is the accuracy at the end."""
LOCAL: tuple[Local, ...] = ("steps", "epochs")
USED = ("used", "stale-used")
"""Fates of updates that are part of a model."""
WINDOW = 10
"""Rounds over which used updates are counted for the effective number of clients."""
LATE = 100
"""Rounds at the end, of which the table has how many clients taught the model."""
HEADS = (
    *("method", "rounds to the target", "paper", "speed-up over FedAvg", "paper", "s to the target"),
    *("accuracy at the end %", "paper", "rounds to FedAvg's last accuracy", "delivered", "rounds without a delivery"),
    *(
        "effective number of clients in ten rounds",
        "clients of the last 100 rounds",
        "simulated h",
        "seeds",
        "processor s",
    ),
)


class Setting(NamedTuple):
    """One half of a column of the paper's tables, under one reading of "local epochs"."""

    task: str
    aggregation: Aggregation
    local: Local

    @property
    def name(self) -> str:
        return "-".join(self)

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
    return float(number[(accuracy >= target) & (number > 0)].min(initial=math.inf))


def effective_number(history: History) -> float:
    """Return ``1 / sum of squared shares`` of the clients whose updates are used, mean over windows of rounds."""
    number, client = _used(history)
    found = []
    for one in np.unique((number - 1) // WINDOW):
        times = np.unique(client[(number - 1) // WINDOW == one], return_counts=True)[1]
        found.append(times.sum() ** 2 / (times**2).sum())
    return float(np.mean(found or [0.0]))


def _used(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Return round and client of each update that is part of a model."""
    used = np.isin(history.column("participations", "fate"), USED)
    return history.column("participations", "round")[used], history.column("participations", "client")[used]


def row_of(setting: Setting, method: str, ended: Ended) -> list[str]:
    """Return the row of a method, beside the runs of FedAvg."""
    histories, fedavg = ended.runs[method], ended.runs.get("fedavg", ())
    reference = np.mean([last_accuracy(history) for history in fedavg] or [math.nan])
    target = ended.base.results.target_accuracy
    used, ran = [_used(history) for history in histories], ended.base.rounds.count
    at, task = reported(method), TASKS[setting.task]
    rounds, paper = [rounds_to(history, target) for history in histories], task.rounds[setting.aggregation]
    first = [rounds_to(history, target) for history in fedavg]
    # A run of FedAvg that never has the target counts with all its rounds, so that the ratio is too small.
    speed_up, sure = "-", "" if np.isfinite(first).all() else "at least "
    if first and np.isfinite(rounds).all():
        speed_up = f"{sure}{np.mean(np.minimum(first, ran)) / np.mean(rounds):.2f}"
    reached_s = [history.time_to_accuracy(target) for history in histories]
    delivered = [100.0 * float((one.column("participations", "outcome") == "delivered").mean()) for one in histories]
    late = [float(np.unique(client[number > ran - LATE]).size) for number, client in used]
    return [
        LABELS[method],
        with_deviation(rounds, 0),
        str(paper[at]),
        speed_up,
        f"{paper[0] / paper[at]:.2f}",
        with_deviation([math.inf if one is None else one for one in reached_s], 0),
        with_deviation([100.0 * last_accuracy(history) for history in histories], 2),
        f"{task.accuracy[setting.aggregation][at]:.2f}",
        "-" if math.isnan(reference) else with_deviation([rounds_to(one, float(reference)) for one in histories], 0),
        with_deviation(delivered, 0, " %"),
        with_deviation([float(ran - np.unique(number).size) for number, _ in used], 0),
        with_deviation([effective_number(history) for history in histories], 0),
        with_deviation(late, 0),
        with_deviation([float(history.column("rounds", "end_s")[-1]) / 3600.0 for history in histories], 1),
        str(len(histories)),
        f"{ended.cpu_s[method]:.0f}",
    ]


def part_of(setting: Setting, ended: Ended, folder: Path) -> str:
    """Draw the figure of a setting and return its part of the page."""
    lines = [f"### {setting.title}\n", *ended.told()]
    if ended.runs:
        target = ended.base.results.target_accuracy
        lines.append(f"{ended.base.rounds.count} rounds; the target is {100 * target:.0f} %.\n")
        lines.append(markdown(HEADS, [row_of(setting, method, ended) for method in ended.runs]))
        labels = ("training round", "test accuracy")
        panel = Panel("round", "accuracy", labels=labels, title=f"FedSUV: {setting.title}", target=target)
        figure = draw({LABELS[name]: histories for name, histories in ended.runs.items()}, panel)
        written(figure, folder / f"{setting.name}.png")
    return "\n".join(lines)


def main() -> None:
    parser = options(__doc__, "runs/fedsuv", {method: LABELS[method] for method in METHODS})
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--aggregation", nargs="+", choices=SERVERS, default=list(SERVERS), metavar="NAME")
    parser.add_argument("--local", nargs="+", choices=LOCAL, default=["steps"], metavar="NAME", help="steps, epochs")
    asked = parser.parse_args()
    values, parts = changes(asked), []
    for task, local, aggregation in itertools.product(asked.task, asked.local, asked.aggregation):
        setting = Setting(task, aggregation, local)
        base = scaled(Scenario.load(HERE / f"{task}.toml").replace(values), asked.scale)
        methods = {
            method: values_of(base, method, aggregation, local, values) for method in METHODS if method in asked.methods
        }
        ended = run_methods(base, methods, range(asked.seeds), asked.out / "runs" / setting.name, engine(asked))
        parts.append(part_of(setting, ended, asked.out))
    publish("scenarios/fedsuv/tables.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
