"""PAUSE's figures 2 to 9: all methods of a figure, its curves, and a table beside what the authors' logs say.

    python scenarios/pause/figures.py --figure 6 7 [--scale 0.1] [--seeds N] [--once NAME ...] [--methods NAME ...]
        [--set PATH=VALUE ...] [--repeat] [--workers N] [--executor KIND] [--data-dir DIR] [--out FOLDER]

Accuracy is smoothed over 10 rounds, as in the paper. ``--set learning=none`` gives the figures of leakage and all
columns of time in seconds. Else, seconds of one processor for a method with m users a round, and for each of the two
with all users: Figs. 6, 7 (--executor stacked) 30 and 500; Figs. 2, 3 (--executor sequential, as the rest) 1,150 and
5,100; Figs. 4, 5 1,500 and 6,400; Figs. 8, 9 960 and 10,400.
"""

from functools import partial

from figure_experiments import EXPERIMENTS, LABELS, Experiment
from figure_table import SMOOTHING, columns, measured
from matplotlib.figure import Figure
from paper_runs.command import in_words, of_runs, publish
from paper_runs.curves import draw
from paper_runs.runs import Found, Table, made, scaled


def figure(experiment: Experiment, which: int, found: Found) -> Figure | None:
    """Return one of the paper's figures; None without anything to draw."""
    what, x, y = "accuracy", "time", f"test accuracy, mean of {SMOOTHING} rounds"
    if which == experiment.leakage:
        what, x, y = "leakage", experiment.leakage_x, "largest leakage of a user (epsilon)"
    drawn = {one: [run[what] for run in found.get(one, ()) if what in run] for one in experiment.methods}
    if not any(drawn.values()):
        return None
    curves = {experiment.label(method): runs for method, runs in drawn.items()}
    labels, dashed = ("global round" if x == "round" else "latency, simulated (s)", y), experiment.not_in_paper
    target = experiment.base.results.target_accuracy if what == "accuracy" else None
    return draw(curves, labels, f"PAUSE, Fig. {which}: {experiment.title}", target, list(map(experiment.label, dashed)))


def main() -> None:
    figures = {number: True for one in EXPERIMENTS for number in (one.accuracy, one.leakage)}
    asked = of_runs(__doc__, "runs/pause", LABELS, figure=figures, once=dict.fromkeys(LABELS, False)).parse_args()
    of_all = {path: value for path, value in asked.set if not path.startswith("selector.")}
    of_methods = {path: value for path, value in asked.set if path != "rounds.count"}
    parts = []
    for one in EXPERIMENTS:
        if numbers := [number for number in (one.accuracy, one.leakage) if number in asked.figure]:
            table = Table(
                one.name,
                f"Fig. {one.accuracy} and {one.leakage}: {one.title}",
                scaled(one.base.replace(of_all), asked.scale),
                {name: of | of_methods for name, of in one.methods.items() if name in asked.methods},
                partial(measured, one),
                columns(one),
                {f"fig{number}.png": partial(figure, one, number) for number in numbers},
            )
            parts.append(made(table, asked, once=asked.once))
    publish("scenarios/pause/figures.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
