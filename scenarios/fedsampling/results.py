"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR] [--thin]

A run of FedSampling with 23,622 clients has a gigabyte of tables; ``--thin`` removes them when its numbers are known.
Of Fig. 3 and one seed centralised training takes half a minute of a processor, a method with 1,000 clients a round
about ten minutes.
"""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from agnews import converted
from fedsampling_experiments import DATA, EXPERIMENTS, LABELS, PAPER, Experiment, base_of, values_of
from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw
from paper_runs.runs import run_methods, scaled
from paper_runs.tables import markdown, with_deviation
from run_numbers import RunNumbers, note, noted

from fedsim.history import History, save
from fedsim.learning import data_folder

Found = Mapping[str, Mapping[str, Sequence[RunNumbers]]]
"""Numbers of runs by setting and method."""
BARS_APART = 0.015
"""Distance between the deviations of two lines, as a share of the x axis."""
HEADS = (
    *("setting", "method", "macro-F1 at the end %", "the paper's macro-F1", "accuracy at the end %", "the paper's"),
    *("rounds to the target", "samples a round", "clients that train", "simulated s a round", "Mbit up a round"),
    *("seeds", "processor s"),
)


def row_of(
    setting: str, method: str, numbers: Sequence[RunNumbers], paper: Mapping[str, tuple[float, ...]]
) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    reached = [np.inf if one.rounds_to_target is None else one.rounds_to_target for one in numbers]
    return [
        setting,
        LABELS[method],
        with_deviation([one.macro_f1 for one in numbers], 2),
        f"{paper[method][0]:.2f}" if method in paper else "-",
        with_deviation([one.accuracy for one in numbers], 2),
        f"{paper[method][1]:.2f}" if method in paper else "-",
        with_deviation(reached, 0),
        with_deviation([one.samples for one in numbers], 0),
        with_deviation([one.clients for one in numbers], 0),
        with_deviation([one.duration_s for one in numbers], 2),
        with_deviation([one.sent_mbit for one in numbers], 1),
        str(len(numbers)),
        f"{sum(one.cpu_s for one in numbers):.0f}",
    ]


def figure_of(experiment: Experiment, accuracy: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Return bars or lines of the accuracy at the end, by setting and method, with one deviation over the seeds.

    Bars begin at 0, and lines at 60 %, so that a difference looks about as large as it is.
    """
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    if experiment.drawn == "bars":
        (of_method,) = accuracy.values()
        means = {LABELS[method]: values for method, values in of_method.items()}
        axes.bar(
            list(means), [np.mean(one) for one in means.values()], yerr=[_deviation(one) for one in means.values()]
        )
        axes.tick_params("x", rotation=60)
    else:
        lines = lines_of(accuracy)
        settings = sorted({x for points in lines.values() for x in points})
        apart = BARS_APART * (settings[-1] - settings[0])
        for number, (name, points) in enumerate(lines.items()):
            at = sorted(points)
            axes.errorbar(
                [x + (number - (len(lines) - 1) / 2) * apart for x in at],
                [np.mean(points[x]) for x in at],
                [_deviation(points[x]) for x in at],
                marker="o",
                capsize=3,
                label=name,
            )
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


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def report(name: str, found: Found, curves: Mapping[str, Sequence[History]], asked: argparse.Namespace) -> str:
    """Draw the figure of an experiment and return its table."""
    experiment = EXPERIMENTS[name]
    paper = PAPER.get(asked.data.replace("here", "mind"), {}) if name == "table1" else {}
    if experiment.drawn == "curves":
        target = base_of(name, asked.data, changes(asked)).results.target_accuracy
        figure = draw(
            {LABELS[method]: of for method, of in curves.items()},
            Panel("round", "accuracy", 1, ("round", "test accuracy"), target=target),
        )
    else:
        accuracy = {
            setting: {method: [one.accuracy for one in numbers] for method, numbers in of.items()}
            for setting, of in found.items()
        }
        figure = figure_of(experiment, accuracy)
    stand_in = experiment.stand_in if asked.data.startswith("here") else asked.data
    figure.suptitle(f"FedSampling, {experiment.title} ({stand_in})", fontsize=9)
    file = asked.out / f"{name}-{asked.data}.png"
    save(figure, file)
    print(file)
    rows = [row_of(setting, method, of, paper) for setting, runs in found.items() for method, of in runs.items()]
    return markdown(HEADS, rows)


def run(name: str, asked: argparse.Namespace) -> tuple[Found, Mapping[str, Sequence[History]], Collection[str]]:
    """Run what has not ended, seed by seed; return all numbers, histories of curves, and why runs are missing."""
    experiment = EXPERIMENTS[name]
    base = scaled(base_of(name, asked.data, changes(asked)), asked.scale)
    arms = {
        f"{setting} {method}": values_of(name, method, setting, base)
        for setting in experiment.settings
        for method in experiment.methods
        if method in asked.methods
    }
    found: dict[str, dict[str, list[RunNumbers]]] = {}
    curves: dict[str, list[History]] = {}
    missing = set[str]()
    drawn = experiment.drawn == "curves"
    for seed in range(asked.seeds):
        folder = asked.out / "runs" / f"{name}-{asked.data}-seed-{seed}"
        digests = {arm: base.replace({"seed": seed, **of}).digest() for arm, of in arms.items()}
        numbers = noted(folder)
        todo = {arm: of for arm, of in arms.items() if drawn or digests[arm] not in numbers}
        if todo:
            ended = run_methods(base, todo, [seed], folder, engine(asked))
            missing |= set(ended.told())
            for arm, (history,) in ended.runs.items():
                numbers[digests[arm]] = RunNumbers.of(history, base.results.target_accuracy, ended.cpu_s[arm])
                if drawn:
                    curves.setdefault(arm.partition(" ")[2], []).append(history)
            if asked.thin and not drawn:
                note(folder, numbers)
        for arm, digest in digests.items():
            setting, _, method = arm.partition(" ")
            if digest in numbers:
                found.setdefault(setting, {}).setdefault(method, []).append(numbers[digest])
    return found, curves, missing


def main() -> None:
    parser = options(__doc__ or "", "runs/fedsampling", LABELS)
    parser.set_defaults(executor="stacked")  # most clients do one step, on one sample
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--data", choices=DATA, default="here", help="other data than those of the experiment's file")
    parser.add_argument("--thin", action="store_true", help="remove the tables of runs when their numbers are known")
    parser.add_argument("--agnews", type=Path, default=None, help="CSV file of AG News, for the texts of table1")
    asked = parser.parse_args()
    if asked.agnews is not None:
        converted(asked.agnews, data_folder(asked.data_dir))
    parts = []
    for name in asked.experiments:
        found, curves, missing = run(name, asked)
        parts += [f"### {EXPERIMENTS[name].title}\n", *sorted(missing)]
        if found:
            rounds = scaled(base_of(name, asked.data, changes(asked)), asked.scale).rounds.count
            parts += [f"{rounds} rounds.\n", report(name, found, curves, asked)]
    publish("scenarios/fedsampling/results.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
