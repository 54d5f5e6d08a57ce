"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--workers N] [--data-dir DIR] [--out FOLDER] [--thin]

A run of FedSampling has a gigabyte of tables; ``--thin`` removes the longest ones of each run when its numbers are
known.
"""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

from agnews import converted
from fedsampling_experiments import DATA, EXPERIMENTS, LABELS, PAPER, Experiment, runs_of
from paper_runs.command import changes, options, publish, run_asked
from paper_runs.curves import Panel, draw
from paper_runs.runs import PaperRun
from paper_runs.tables import markdown, with_deviation
from run_numbers import Measured, kept, measured

from fedsim.history import save
from fedsim.learning import data_folder

Found = Mapping[str, Mapping[str, Sequence[Measured]]]
"""Runs that have ended, by setting and method."""
BARS_APART = 0.015
"""Distance between the deviations of two lines, as a share of the x axis."""
HEADS = (
    *("setting", "method", "macro-F1 at the end %", "paper %", "accuracy at the end %", "paper %"),
    *(
        "rounds to the target",
        "samples a round",
        "clients that train",
        "simulated s a round",
        "Mbit up a round",
        "seeds",
        "wall s",
    ),
)


def row_of(setting: str, method: str, runs: Sequence[Measured], paper: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    numbers = [one.numbers for one in runs]
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
        str(len(runs)),
        f"{sum(one.wall_s for one in numbers):.0f}",
    ]


def figure_of(experiment: Experiment, found: Found) -> Figure:
    """Return the figure of an experiment, with one standard deviation over the seeds."""
    if experiment.drawn == "curves":
        (runs,) = found.values()
        curves = {LABELS[method]: [one.ended.history() for one in of] for method, of in runs.items()}
        return draw(curves, Panel("round", "accuracy", 1, ("round", "accuracy"), title=experiment.title))
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    if experiment.drawn == "bars":
        (runs,) = found.values()
        means = {LABELS[method]: [one.numbers.accuracy for one in of] for method, of in runs.items()}
        axes.bar(
            list(means), [np.mean(one) for one in means.values()], yerr=[_deviation(one) for one in means.values()]
        )
        axes.tick_params("x", rotation=60)
        lowest = min(min(one) for one in means.values())
        axes.set_ylim(max(0.0, lowest - 5.0), None)
    else:
        lines = lines_of(found)
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
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    axes.set_ylabel("accuracy at the end (%)")
    axes.set_title(experiment.title, fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    return figure


def lines_of(found: Found) -> dict[str, dict[float, list[float]]]:
    """Return the last accuracies by line and abscissa; a setting is the abscissa, or that and the line's own name."""
    lines: dict[str, dict[float, list[float]]] = {}
    for setting, runs in found.items():
        at, _, line = setting.partition("-")
        for method, of in runs.items():
            name = f"{line[0].upper()} = {line[1:]}" if line else LABELS[method]
            lines.setdefault(name, {})[float(at)] = [one.numbers.accuracy for one in of]
    return lines


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def report(name: str, data: str, found: Found, skipped: Collection[str], rounds: int, folder: Path) -> str:
    """Draw the figure of an experiment and return its part of the page."""
    experiment = EXPERIMENTS[name]
    lines = [f"### {experiment.title}\n"]
    lines += sorted(f"Skipped (`fedsim data` tells more): {why}\n" for why in skipped)
    if found:
        paper = PAPER.get(data, {}) if name == "table1" else {}
        rows = [row_of(setting, method, of, paper) for setting, runs in found.items() for method, of in runs.items()]
        lines += [f"{rounds} rounds.\n", markdown(HEADS, rows)]
        file = folder / f"{name}-{data}.png"
        save(figure_of(experiment, found), file)
        print(file)
    return "\n".join(lines)


def run(name: str, runs: Sequence[PaperRun], arguments: argparse.Namespace) -> tuple[Found, set[str]]:
    """Run what has not ended so far, seed by seed; return the numbers of all runs, and why runs were skipped."""
    found: dict[str, dict[str, list[Measured]]] = {}
    skipped, prefix = set[str](), f"{name}-{arguments.data}-"
    thin = arguments.thin and EXPERIMENTS[name].drawn != "curves"
    for _, group in groupby(runs, lambda one: one.seed):
        of_seed = list(group)
        known = {at: one for at, asked in enumerate(of_seed) if (one := kept(asked, arguments.out / "runs"))}
        ended = iter(run_asked([one for at, one in enumerate(of_seed) if at not in known], arguments))
        for at, asked in enumerate(of_seed):
            if (one := known.get(at)) is None:
                last = next(ended)
                if last.skipped:
                    skipped.add(last.skipped)
                    continue
                one = measured(last, thin=thin)
            found.setdefault(asked.experiment.removeprefix(prefix), {}).setdefault(asked.method, []).append(one)
    return found, skipped


def main() -> None:
    parser = options("FedSampling, Table 1 and Figures 3 to 6.", "runs/fedsampling", list(LABELS))
    parser.set_defaults(executor="stacked")  # most clients do one step, on one sample
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--data", choices=DATA, default="here", help="other data than those of the experiment's file")
    parser.add_argument("--thin", action="store_true", help="remove a run's longest tables when its numbers are known")
    parser.add_argument("--agnews", type=Path, default=None, help="CSV file of AG News, for the texts of table1")
    arguments = parser.parse_args()
    if arguments.agnews is not None:
        converted(arguments.agnews, data_folder(arguments.data_dir))
    values, parts = changes(arguments), []
    for name in arguments.experiments:
        runs = runs_of(name, tuple(arguments.methods), arguments.seeds, arguments.data, arguments.scale, values)
        found, skipped = run(name, runs, arguments)
        rounds = int(runs[0].scenario.rounds.count)
        parts.append(report(name, arguments.data, found, skipped, rounds, arguments.out))
    publish("scenarios/fedsampling/results.py", parts, arguments.out)


if __name__ == "__main__":
    main()
