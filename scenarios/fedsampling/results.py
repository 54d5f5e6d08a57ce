"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR] [--thin]

A run of FedSampling with 23,622 clients has a gigabyte of tables; ``--thin`` removes them when its numbers are known.
Of Fig. 3 and one seed centralised training takes half a minute of a processor, a method with 1,000 clients a round
about ten minutes.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from agnews import converted
from fedsampling_experiments import DATA, EXPERIMENTS, LABELS, PAPER, Experiment, base_of, values_of
from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw, written
from paper_runs.runs import run_methods, scaled
from paper_runs.tables import markdown, with_deviation, write

from fedsim.history import History
from fedsim.learning import data_folder
from fedsim.studies.running.records import INDEX

LAST = 5
"""Evaluations whose mean is the accuracy at the end."""
BARS_APART = 0.015
"""Distance between the deviations of two lines, as a share of the x axis."""
F1, ACCURACY, SECONDS = "macro-F1 at the end %", "accuracy at the end %", "processor s"
DIGITS = {
    F1: 2,
    ACCURACY: 2,
    "rounds to the target": 0,
    "samples a round": 0,
    "clients that train": 0,
    "simulated s a round": 2,
    "Mbit up a round": 1,
}
"""Columns, and the digits of each."""
HEADS = ("setting", "method", F1, "the paper's macro-F1", ACCURACY, "the paper's", *list(DIGITS)[2:], "seeds", SECONDS)
Numbers = Mapping[str, float]


def numbers_of(history: History, target: float, cpu_s: float) -> Numbers:
    """Return the columns of a run."""
    rounds, work_s = history.rounds.num_rows, history.column("participations", "compute_s")
    accuracy = history.column("evaluations", "accuracy")
    reached = history.column("evaluations", "round")[accuracy >= target]
    found = (
        100.0 * history.metric("macro-f1")[-LAST:].mean(),
        100.0 * accuracy[-LAST:].mean(),
        reached[0] if reached.size else math.inf,
        work_s.sum() * 1000.0 / rounds,
        (work_s > 0).sum() / rounds,
        history.column("rounds", "duration_s").mean(),
        history.column("participations", "uplink_bits").sum() / rounds / 1e6,
        cpu_s,
    )
    return dict(zip((*DIGITS, SECONDS), map(float, found), strict=True))


def row_of(setting: str, method: str, numbers: Sequence[Numbers], paper: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    f1, accuracy, *rest = (with_deviation([one[name] for one in numbers], digits) for name, digits in DIGITS.items())
    theirs = [f"{one:.2f}" for one in paper[method]] if method in paper else ["-", "-"]
    spent_s = f"{sum(one[SECONDS] for one in numbers):.0f}"
    return [setting, LABELS[method], f1, theirs[0], accuracy, theirs[1], *rest, str(len(numbers)), spent_s]


def figure_of(experiment: Experiment, accuracy: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Return bars or lines of the accuracy at the end, by setting and method, with one deviation over the seeds.

    Bars begin at 0, and lines at 60 %, so that a difference looks about as large as it is.
    """
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    if experiment.drawn == "bars":
        (of_method,) = accuracy.values()
        means, deviations = zip(*(_mean_and_deviation(values) for values in of_method.values()), strict=True)
        axes.bar([LABELS[method] for method in of_method], means, yerr=deviations)
        axes.tick_params("x", rotation=60)
    else:
        lines = lines_of(accuracy)
        settings = sorted({x for points in lines.values() for x in points})
        apart = BARS_APART * (settings[-1] - settings[0])
        for number, (name, points) in enumerate(lines.items()):
            means, deviations = zip(*(_mean_and_deviation(points[x]) for x in sorted(points)), strict=True)
            at = [x + (number - (len(lines) - 1) / 2) * apart for x in sorted(points)]
            axes.errorbar(at, means, deviations, marker="o", capsize=3, label=name)
        axes.set_xticks(settings)
        axes.set_xlabel(experiment.axis)
        figure.legend(loc="outside right center", fontsize=8, frameon=False)
    lowest = min(min(values) for of in accuracy.values() for values in of.values())
    axes.set_ylim(0.0 if experiment.drawn == "bars" else max(0.0, min(60.0, lowest - 5.0)), 100.0)
    axes.set_ylabel("accuracy at the end (%)")
    axes.grid(visible=True, alpha=0.3)
    return figure


def lines_of(accuracy: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, dict[float, Sequence[float]]]:
    """Return accuracies by line and abscissa; a setting is the abscissa, or that and the line's own name."""
    lines: dict[str, dict[float, Sequence[float]]] = {}
    for setting, runs in accuracy.items():
        at, _, line = setting.partition("-")
        for method, values in runs.items():
            name = f"{line[0].upper()} = {line[1:]}" if line else LABELS[method]
            lines.setdefault(name, {})[float(at)] = values
    return lines


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def report(name: str, asked: argparse.Namespace) -> list[str]:
    """Run what has not ended of an experiment, seed by seed, draw its figure, and return its part of the page."""
    experiment = EXPERIMENTS[name]
    base = scaled(base_of(name, asked.data, changes(asked)), asked.scale)
    arms = {
        f"{setting} {method}": values_of(name, method, setting, base)
        for setting in experiment.settings
        for method in experiment.methods
        if method in asked.methods
    }
    found: dict[str, dict[str, list[Numbers]]] = {}
    curves: dict[str, list[History]] = {}
    missing = set[str]()
    drawn = experiment.drawn == "curves"
    for seed in range(asked.seeds):
        folder = asked.out / "runs" / f"{name}-{asked.data}-seed-{seed}"
        digests = {arm: base.replace({"seed": seed, **of}).digest() for arm, of in arms.items()}
        file = folder / "numbers.json"
        numbers = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        todo = {arm: of for arm, of in arms.items() if drawn or digests[arm] not in numbers}
        if todo:
            ended = run_methods(base, todo, [seed], folder, engine(asked))
            missing |= set(ended.told())
            for arm, (history,) in ended.runs.items():
                numbers[digests[arm]] = numbers_of(history, base.results.target_accuracy, ended.cpu_s[arm])
                if drawn:
                    curves.setdefault(LABELS[arm.partition(" ")[2]], []).append(history)
            if asked.thin and not drawn:
                write(json.dumps(numbers, indent=1), file)
                for table in (INDEX, "tables.arrows"):
                    (folder / table).unlink(missing_ok=True)
        for arm in (arm for arm, digest in digests.items() if digest in numbers):
            setting, _, method = arm.partition(" ")
            found.setdefault(setting, {}).setdefault(method, []).append(numbers[digests[arm]])
    lines = [f"### {experiment.title}\n", *sorted(missing)]
    if not found:
        return lines
    if drawn:
        target = base.results.target_accuracy
        figure = draw(curves, Panel("round", "accuracy", 1, ("round", "test accuracy"), target=target))
    else:
        accuracy = {
            at: {of: [one[ACCURACY] for one in some] for of, some in runs.items()} for at, runs in found.items()
        }
        figure = figure_of(experiment, accuracy)
    stand_in = experiment.stand_in if asked.data.startswith("here") else asked.data
    stand_in += ", Transformer" if asked.data == "here-attention" else ""
    figure.suptitle(f"FedSampling, {experiment.title} ({stand_in})", fontsize=9)
    written(figure, asked.out / f"{name}-{asked.data}.png")
    paper = PAPER.get(asked.data.replace("here", "mind"), {}) if name == "table1" else {}
    rows = [row_of(setting, method, of, paper) for setting, runs in found.items() for method, of in runs.items()]
    return [*lines, f"{base.rounds.count} rounds.\n", markdown(HEADS, rows)]


def main() -> None:
    parser = options(__doc__, "runs/fedsampling", LABELS)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--data", choices=DATA, default="here", help="other data than those of the experiment's file")
    parser.add_argument("--thin", action="store_true", help="remove the tables of runs when their numbers are known")
    parser.add_argument("--agnews", type=Path, default=None, help="CSV file of AG News, for the texts of table1")
    asked = parser.parse_args()
    if asked.agnews is not None:
        converted(asked.agnews, data_folder(asked.data_dir))
    publish(
        "scenarios/fedsampling/results.py", [one for name in asked.experiments for one in report(name, asked)], asked
    )


if __name__ == "__main__":
    in_words(main)
