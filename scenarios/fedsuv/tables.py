"""FedSUV's Tables 2 and 3 and its convergence figures: five tasks, five methods and rest, averaging and Yogi.

    python scenarios/fedsuv/tables.py --task cifar10_mobilenet [--aggregation averaging yogi] [--local steps epochs]
        [--scale 0.1] [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR]

All 1,000 rounds of a method with MobileNetV2 take 13 minutes of a processor (--executor sequential), with ResNet-18
22 to 64 minutes. Tasks: cifar10_resnet18, cifar10_mobilenet, cifar100_shufflenet, femnist_resnet18, speech_resnet34.
"""

from functools import partial
from itertools import product

from fedsuv_tasks import COLUMNS, LABELS, METHODS, PAPER, SERVERS, TASKS, base_of
from matplotlib.figure import Figure
from measures import measure, speed_up
from paper_runs.command import in_words, of_runs, publish
from paper_runs.curves import draw
from paper_runs.runs import Column, Found, Table, columns, made, scaled


def columns_of(task: str, aggregation: str, rounds: int) -> list[Column]:
    """Return the columns of a table whose runs have so many rounds."""
    paper = {method: PAPER[task, aggregation, method.removesuffix("-rest")] for method in LABELS}
    needed = {method: int(row["rounds"]) for method, row in paper.items()}
    cells = {
        "label": lambda row: LABELS[row.method],
        "speed-up": lambda row: speed_up(rounds, row),
        "the paper's speed-up": lambda row: f"{needed['fedavg'] / needed[row.method]:.2f}",
    }
    return columns(COLUMNS, cells, paper)


def figure(title: str, target: float, found: Found) -> Figure:
    """Return accuracy over rounds."""
    curves = {LABELS[method]: [run["curve"] for run in runs] for method, runs in found.items()}
    return draw(curves, ("training round", "test accuracy"), f"FedSUV: {title}", target)


def main() -> None:
    names = {"task": TASKS, "aggregation": dict.fromkeys(SERVERS, True), "local": {"steps": True, "epochs": False}}
    asked, parts = of_runs(__doc__, "runs/fedsuv", LABELS, **names).parse_args(), []
    of_all = {path: value for path, value in asked.set if path != "rounds.count"}
    for task, local, aggregation in product(asked.task, asked.local, asked.aggregation):
        base = scaled(base_of(task, local, dict(asked.set)), asked.scale)
        target, name = base.results.target_accuracy, f"{task}-{aggregation}-{local}"
        title = f"{TASKS[task]}, {aggregation}, local work in {local}"
        methods = {one: {**SERVERS[aggregation], **METHODS[one], **of_all} for one in LABELS if one in asked.methods}
        shown, figures = (
            columns_of(task, aggregation, base.rounds.count),
            {f"{name}.png": partial(figure, title, target)},
        )
        table = Table(name, title, base, methods, partial(measure, target), shown, figures)
        parts.append(made(table, asked))
    publish("scenarios/fedsuv/tables.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
