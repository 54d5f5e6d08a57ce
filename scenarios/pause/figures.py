"""PAUSE's figures 2 to 9: all methods of a figure, its curves, and a table beside what the authors' logs say.

    python scenarios/pause/figures.py --figure 6 7 [--scale 0.1] [--seeds N] [--once NAME ...] [--methods NAME ...]
        [--set PATH=VALUE ...] [--repeat] [--workers N] [--executor KIND] [--data-dir DIR] [--out FOLDER]

Accuracy is smoothed over 10 rounds, as in the paper. Seconds of one processor for a method with m users a round, and
for each of the two with all users: Figs. 6, 7 (--executor stacked) 30 and 500; Figs. 2, 3 (--executor sequential, as
the rest) 1,150 and 5,100; Figs. 4, 5 1,500 and 6,400; Figs. 8, 9 960 and 10,400.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import changes, engine, in_words, options, publish
from paper_runs.curves import Panel, draw, first_s
from paper_runs.runs import Ended, run_methods, scaled
from paper_runs.tables import markdown, with_deviation
from pause_experiments import EXPERIMENTS, FIGURES, Experiment

from fedsim.arrays import FloatArray
from fedsim.history import History, save
from fedsim.studies.figures.bands import at_steps

SMOOTHING = 10


def row_of(experiment: Experiment, method: str, runs: Sequence[History], cpu_s: float) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    drawn, log = experiment.methods[method], experiment.logs.get(method)
    curves = [one.curve("time", "accuracy", SMOOTHING) for one in runs]
    reached = [first_s(*curve, experiment.target_accuracy) for curve in curves]
    leaked = [float(one.column("rounds", "largest_leakage")[-1]) for one in runs]
    return [
        drawn.label + ("" if drawn.in_paper else " (not in the paper's figure)"),
        with_deviation([100.0 * float(accuracy[-1]) for _, accuracy in curves], 1),
        "-" if log is None else f"{log.accuracy:.1f}",
        *(_accuracy_at(curves, at_s) for at_s in experiment.at_s),
        with_deviation([math.inf if at_s is None else at_s for at_s in reached], 0),
        with_deviation([float(one.column("rounds", "end_s")[-1]) for one in runs], 0),
        "-" if log is None else f"{log.seconds:.0f}",
        with_deviation([float(one.column("rounds", "duration_s").mean()) for one in runs], 3),
        with_deviation(leaked, 1) if drawn.leaks else "-",
        str(len(runs)),
        f"{cpu_s:.0f}",
    ]


def _accuracy_at(curves: Sequence[tuple[FloatArray, FloatArray]], at_s: float) -> str:
    """Return the smoothed accuracy at an instant in per cent, of the runs that lasted until then."""
    found = [100.0 * float(at_steps(curve, np.array([at_s]))[0]) for curve in curves if curve[0][-1] >= at_s]
    return with_deviation(found, 1)


def heads_of(experiment: Experiment) -> list[str]:
    return [
        *("method", "last 10 rounds %", "log %", *(f"at {at:.0f} s %" for at in experiment.at_s)),
        f"mean of {SMOOTHING} to {100 * experiment.target_accuracy:.0f} % s",
        *("simulated s", "log s", "mean round s", "largest leakage", "seeds", "processor s"),
    ]


def draw_figure(number: int, experiment: Experiment, found: Mapping[str, Sequence[History]], folder: Path) -> Path:
    """Draw one of the paper's figures and return its file."""
    leakage = number == experiment.leakage
    x = experiment.leakage_x if leakage else "time"
    # A method without a curve keeps its colour, so that both figures have the same ones.
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
    file = folder / f"fig{number}.png"
    save(draw(curves, panel), file)
    return file


def report(experiment: Experiment, parts: Sequence[Ended], numbers: Sequence[int], folder: Path) -> str:
    """Draw the figures of an experiment and return its part of the page."""
    lines = [f"### Fig. {experiment.accuracy} and {experiment.leakage}: {experiment.title}\n"]
    lines += [line for part in parts for line in part.told()]
    found = {method: (runs, part.cpu_s[method]) for part in parts for method, runs in part.runs.items()}
    if found:
        rows = [row_of(experiment, method, *found[method]) for method in experiment.methods if method in found]
        lines += [f"{parts[0].base.rounds.count} rounds.\n", markdown(heads_of(experiment), rows)]
        for number in numbers:
            if FIGURES[number] is experiment:
                print(draw_figure(number, experiment, {method: runs for method, (runs, _) in found.items()}, folder))
    return "\n".join(lines)


def main() -> None:
    labels = {name: method.label for name, method in EXPERIMENTS[0].methods.items()}
    parser = options(__doc__ or "", "runs/pause", labels)
    parser.add_argument("--figure", nargs="+", type=int, choices=sorted(FIGURES), default=sorted(FIGURES), metavar="N")
    parser.add_argument("--once", nargs="+", choices=labels, default=[], metavar="NAME", help="methods of one seed")
    asked = parser.parse_args()
    values, parts = changes(asked), []
    for one in EXPERIMENTS:
        if not {one.accuracy, one.leakage} & set(asked.figure):
            continue
        base = scaled(one.base.replace(values), asked.scale)
        several = [method for method in one.methods if method in asked.methods and method not in asked.once]
        single = [method for method in one.methods if method in asked.methods and method in asked.once]
        ended = [
            run_methods(
                base,
                {method: {**one.methods[method].changes, **values} for method in methods},
                range(base.seed, base.seed + seeds),
                asked.out / "runs" / f"{one.name}{which}",
                engine(asked),
            )
            for methods, seeds, which in ((several, asked.seeds, ""), (single, 1, "-once"))
            if methods
        ]
        parts.append(report(one, ended, asked.figure, asked.out))
    publish("scenarios/pause/figures.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
