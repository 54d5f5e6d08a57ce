"""PAUSE's figures 2 to 9: all methods of a figure, its curves, and a table beside what the authors' logs say.

    python scenarios/pause/figures.py --figure 6 7 [--scale 0.1] [--seeds N] [--once NAME ...] [--methods NAME ...]
        [--set PATH=VALUE ...] [--workers N] [--executor KIND] [--data-dir DIR] [--out FOLDER]

Methods of ``--once`` have one seed, as those of all users take long. Accuracy is smoothed over 10 rounds, as in the
paper.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.command import changes, options, publish, run_asked
from paper_runs.curves import Panel, draw, first_s, held
from paper_runs.runs import Ended, PaperRun, scaled
from paper_runs.tables import markdown, with_deviation
from pause_experiments import EXPERIMENTS, FIGURES, Experiment

from fedsim.history import History, save

SMOOTHING = 10
Found = Mapping[str, Sequence[tuple[Ended, History]]]
"""Runs that have ended, by method."""


def row_of(experiment: Experiment, method: str, runs: Sequence[tuple[Ended, History]]) -> list[str]:
    """Return the row of a method; a cell is a mean over seeds, with a standard deviation."""
    drawn, log = experiment.methods[method], experiment.logs.get(method)
    histories = [history for _, history in runs]
    target = experiment.target_accuracy
    last = [100.0 * float(one.curve("time", "accuracy", SMOOTHING)[1][-1]) for one in histories]
    reached = [first_s(*one.curve("time", "accuracy", SMOOTHING), target) for one in histories]
    length = [float(one.column("rounds", "end_s")[-1]) for one in histories]
    round_s = [float(one.column("rounds", "duration_s").mean()) for one in histories]
    leaked = [float(one.column("rounds", "largest_leakage")[-1]) for one in histories]
    return [
        drawn.label + ("" if drawn.in_paper else " (not in the paper's figure)"),
        with_deviation(last, 1),
        "-" if log is None else f"{log.accuracy:.1f}",
        *(_accuracy_at(histories, at_s) for at_s in experiment.at_s),
        with_deviation([math.inf if at_s is None else at_s for at_s in reached], 0),
        with_deviation(length, 0),
        "-" if log is None else f"{log.seconds:.0f}",
        with_deviation(round_s, 3),
        with_deviation(leaked, 1) if drawn.leaks else "-",
        str(len(runs)),
        f"{sum(ended.wall_s for ended, _ in runs):.0f}",
    ]


def _accuracy_at(histories: Sequence[History], at_s: float) -> str:
    """Return the smoothed accuracy at an instant in per cent, of the runs that lasted until then."""
    curves = [history.curve("time", "accuracy", SMOOTHING) for history in histories]
    found = [100.0 * float(held(*curve, np.array([at_s]))[0]) for curve in curves if curve[0][-1] >= at_s]
    return with_deviation(found, 1)


def heads_of(experiment: Experiment) -> list[str]:
    return [
        *("method", "last 10 rounds %", "log, whole %", *(f"at {at:.0f} s %" for at in experiment.at_s)),
        f"mean of {SMOOTHING} to {100 * experiment.target_accuracy:.0f} % s",
        *("simulated s", "log, whole s", "mean round s", "largest leakage", "seeds", "wall s"),
    ]


def draw_figure(number: int, experiment: Experiment, found: Found, folder: Path) -> Path:
    """Draw one of the paper's figures and return its file."""
    leakage = number == experiment.leakage
    x = experiment.leakage_x if leakage else "time"
    # A method without a curve keeps its colour, so that both figures have the same ones.
    curves = {
        drawn.label: [history for _, history in found.get(method, ()) if drawn.leaks or not leakage]
        for method, drawn in experiment.methods.items()
    }
    labels = ("global round" if x == "round" else "latency, simulated (s)",)
    what = "largest leakage of a user (epsilon)" if leakage else f"validation accuracy, mean of {SMOOTHING} rounds"
    panel = Panel(
        x,
        "leakage" if leakage else "accuracy",
        1 if leakage else SMOOTHING,
        (*labels, what),
        title=f"PAUSE, Fig. {number}: {experiment.title}",
        styles={method.label: "--" for method in experiment.methods.values() if not method.in_paper},
    )
    file = folder / f"fig{number}.png"
    save(draw(curves, panel), file)
    return file


def report(experiment: Experiment, ended: Sequence[Ended], numbers: Sequence[int], folder: Path) -> str:
    """Draw the figures of an experiment and return its part of the page."""
    found: dict[str, list[tuple[Ended, History]]] = {}
    for one in ended:
        if not one.skipped:
            found.setdefault(one.run.method, []).append((one, one.history()))
    lines = [f"### Fig. {experiment.accuracy} and {experiment.leakage}: {experiment.title}\n"]
    lines += sorted({f"Skipped (`fedsim data` tells more): {one.skipped}\n" for one in ended if one.skipped})
    if found:
        rounds = ended[0].run.scenario.rounds.count
        rows = [row_of(experiment, method, runs) for method, runs in found.items()]
        lines += [f"{rounds} rounds.\n", markdown(heads_of(experiment), rows)]
        for number in numbers:
            if FIGURES[number] is experiment:
                print(draw_figure(number, experiment, found, folder))
    return "\n".join(lines)


def main() -> None:
    methods = list(EXPERIMENTS[0].methods)
    parser = options("PAUSE, figures 2 to 9.", "runs/pause", methods)
    parser.add_argument("--figure", nargs="+", type=int, choices=sorted(FIGURES), default=sorted(FIGURES), metavar="N")
    parser.add_argument("--once", nargs="+", choices=methods, default=[], metavar="NAME", help="methods of one seed")
    arguments = parser.parse_args()
    asked = [one for one in EXPERIMENTS if {one.accuracy, one.leakage} & set(arguments.figure)]
    values = changes(arguments)
    runs = [
        PaperRun(one.name, method, scaled(one.scenario(method, seed).replace(values), arguments.scale))
        for one in asked
        for method in one.methods
        if method in arguments.methods
        for seed in range(1 if method in arguments.once else arguments.seeds)
    ]
    ended = run_asked(runs, arguments)
    parts = [
        report(one, [run for run in ended if run.run.experiment == one.name], arguments.figure, arguments.out)
        for one in asked
    ]
    publish("scenarios/pause/figures.py", parts, arguments.out)


if __name__ == "__main__":
    main()
