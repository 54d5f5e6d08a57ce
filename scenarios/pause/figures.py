"""PAUSE's figures 2 to 9: all methods of a figure, its curves, and a table beside what the authors' logs say.

    python scenarios/pause/figures.py --figure 6 7 [--scale 0.1] [--seeds N] [--once NAME ...] [--methods NAME ...]
        [--set PATH=VALUE ...] [--repeat] [--workers N] [--executor KIND] [--data-dir DIR] [--out FOLDER]

Accuracy is smoothed over 10 rounds, as in the paper. ``--set learning=none`` gives the figures of leakage and all
columns of time in seconds. Else, seconds of one processor for a method with m users a round, and for each of the two
with all users: Figs. 6, 7 (--executor stacked) 30 and 500; Figs. 2, 3 (--executor sequential, as the rest) 1,150 and
5,100; Figs. 4, 5 1,500 and 6,400; Figs. 8, 9 960 and 10,400.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw, first_s, written
from paper_runs.runs import Ended, run_methods, scaled
from paper_runs.tables import markdown, with_deviation
from pause_experiments import EXPERIMENTS, FIGURES, Experiment

from fedsim.arrays import FloatArray
from fedsim.history import History
from fedsim.studies.figures.bands import at_steps

SMOOTHING = 10
Curves = Sequence[tuple[FloatArray, FloatArray]]


def row_of(experiment: Experiment, method: str, runs: Sequence[History], cpu_s: float) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    drawn = experiment.methods[method]
    log, log_s = (
        (f"{one:.{digits}f}" for one, digits in zip(experiment.logs[method], (1, 0), strict=True))
        if method in experiment.logs
        else "--"
    )
    curves = [one.curve("time", "accuracy", SMOOTHING) for one in runs if one.evaluations.num_rows]
    leaked = [one.curve("time", "leakage") for one in runs]
    reached = [first_s(*curve, experiment.target_accuracy) for curve in curves]
    return [
        drawn.label + ("" if drawn.in_paper else " (not in the paper's figure)"),
        with_deviation([100.0 * float(accuracy[-1]) for _, accuracy in curves], 1),
        log,
        *(values_at(curves, at_s, 100.0) for at_s in experiment.at_s),
        with_deviation([math.inf if at_s is None else at_s for at_s in reached], 0),
        with_deviation([float(one.column("rounds", "end_s")[-1]) for one in runs], 0),
        log_s,
        with_deviation([float(one.column("rounds", "duration_s").mean()) for one in runs], 3),
        *(values_at(leaked, at_s) if drawn.leaks else "-" for at_s in experiment.at_s),
        with_deviation([float(of[-1]) for _, of in leaked], 1) if drawn.leaks else "-",
        str(len(runs)),
        f"{cpu_s:.0f}",
    ]


def values_at(curves: Curves, at_s: float, factor: float = 1.0) -> str:
    """Return the mean of curves at an instant, of those that lasted until then."""
    return with_deviation(
        [factor * float(at_steps(one, np.array([at_s]))[0]) for one in curves if one[0][-1] >= at_s], 1
    )


def heads_of(experiment: Experiment) -> list[str]:
    return [
        *("method", "last 10 rounds %", "log %", *(f"at {at:.0f} s %" for at in experiment.at_s)),
        f"mean of {SMOOTHING} to {100 * experiment.target_accuracy:.0f} % s",
        *("simulated s", "log s", "mean round s", *(f"leaked at {at:.0f} s" for at in experiment.at_s)),
        *("largest leakage", "seeds", "processor s"),
    ]


def draw_figure(number: int, experiment: Experiment, found: Mapping[str, Sequence[History]], folder: Path) -> None:
    """Draw one of the paper's figures; a method without a curve keeps its colour, so that both have the same ones."""
    leakage = number == experiment.leakage
    x = experiment.leakage_x if leakage else "time"
    curves = {
        drawn.label: found.get(method, ()) if drawn.leaks or not leakage else ()
        for method, drawn in experiment.methods.items()
    }
    what = "largest leakage of a user (epsilon)" if leakage else f"test accuracy, mean of {SMOOTHING} rounds"
    panel = Panel(
        x,
        "leakage" if leakage else "accuracy",
        1 if leakage else SMOOTHING,
        ("global round" if x == "round" else "latency, simulated (s)", what),
        title=f"PAUSE, Fig. {number}: {experiment.title}",
        target=None if leakage else experiment.target_accuracy,
        styles={method.label: "--" for method in experiment.methods.values() if not method.in_paper},
    )
    written(draw(curves, panel), folder / f"fig{number}.png")


def report(experiment: Experiment, parts: Sequence[Ended], numbers: Sequence[int], folder: Path) -> str:
    """Draw the figures of an experiment and return its part of the page."""
    lines = [f"### Fig. {experiment.accuracy} and {experiment.leakage}: {experiment.title}\n"]
    lines += [line for part in parts for line in part.told()]
    found = {method: (runs, part.cpu_s[method]) for part in parts for method, runs in part.runs.items()}
    if found:
        rows = [row_of(experiment, method, *found[method]) for method in experiment.methods if method in found]
        lines += [f"{parts[0].base.rounds.count} rounds.\n", markdown(heads_of(experiment), rows)]
        learned = any(one.evaluations.num_rows for runs, _ in found.values() for one in runs)
        for number in numbers:
            if number == experiment.leakage or (number == experiment.accuracy and learned):
                draw_figure(number, experiment, {method: runs for method, (runs, _) in found.items()}, folder)
    return "\n".join(lines)


def main() -> None:
    labels = {name: method.label for name, method in EXPERIMENTS[0].methods.items()}
    parser = options(__doc__, "runs/pause", labels)
    parser.add_argument("--figure", nargs="+", type=int, choices=sorted(FIGURES), default=sorted(FIGURES), metavar="N")
    parser.add_argument("--once", nargs="+", choices=labels, default=[], metavar="NAME", help="methods of one seed")
    asked = parser.parse_args()
    values, parts = changes(asked), []
    for one in (one for one in EXPERIMENTS if {one.accuracy, one.leakage} & set(asked.figure)):
        base, ended = scaled(one.base.replace(values), asked.scale), []
        for once, seeds, which in ((False, asked.seeds, ""), (True, 1, "-once")):
            arms = {
                name: {**of.changes, **values}
                for name, of in one.methods.items()
                if name in asked.methods and (name in asked.once) == once
            }
            if arms:
                folder = asked.out / "runs" / f"{one.name}{which}"
                ended.append(run_methods(base, arms, range(base.seed, base.seed + seeds), folder, engine(asked)))
        parts.append(report(one, ended, asked.figure, asked.out))
    publish("scenarios/pause/figures.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
