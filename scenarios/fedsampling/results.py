"""FedSampling's Table 1 and Figures 3 to 6: all methods, figures, and tables beside what the paper reports.

    python scenarios/fedsampling/results.py table1 fig3 fig4 fig5 fig6 [--data NAME] [--agnews FILE] [--scale 0.1]
        [--seeds N] [--methods NAME ...] [--set PATH=VALUE ...] [--repeat] [--workers N] [--data-dir DIR] [--thin]

A run of FedSampling with 23,622 clients has a gigabyte of tables; ``--thin`` removes them when its numbers are known.
Of Fig. 3 and one seed centralised training takes half a minute of a processor, a method with 1,000 clients a round
about ten minutes.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from agnews import converted
from fedsampling_experiments import DATA, EXPERIMENTS, LABELS, PAPER, Experiment, base_of, values_of
from matplotlib.figure import Figure
from paper_runs.command import in_words, of_runs, publish
from paper_runs.curves import draw
from paper_runs.runs import Column, Found, Measured, Table, made, mean, scaled
from study_scripts import last_accuracy, number, panels

from fedsim.history import History
from fedsim.learning import data_folder

LAST: Final = 5
"""Evaluations whose mean is the accuracy at the end."""
BARS_APART: Final = 0.015
"""Distance between the deviations of two lines, as a share of the x axis."""
F1, ACCURACY = "macro-F1 at the end %", "accuracy at the end %"


def measure(target: float, history: History) -> Measured:
    """Return the columns of a run, and its curve."""
    rounds, work_s = history.rounds.num_rows, history.column("participations", "compute_s")
    return {
        "curve": history.curve("round", "accuracy"),
        F1: 100.0 * float(history.metric("macro-f1")[-LAST:].mean()),
        ACCURACY: 100.0 * last_accuracy(history, LAST),
        "rounds to the target": number(f"rounds_to_{100 * target:g}%", history),
        "samples a round": float(work_s.sum() * 1000.0 / rounds),
        "clients that train": float((work_s > 0).sum() / rounds),
        "simulated s a round": number("mean_round_s", history),
        "Mbit up a round": float(history.column("participations", "uplink_bits").sum() / rounds / 1e6),
    }


def columns_of(paper: Mapping[str, tuple[float, float]]) -> list[Column]:
    """Return the columns of a table, whose rows are named by a setting and a method."""

    def theirs(row_name: str, at: int) -> str:
        method = row_name.partition(" ")[2]
        return f"{paper[method][at]:.2f}" if method in paper else "-"

    return [
        ("setting", lambda row: row.method.partition(" ")[0]),
        ("method", lambda row: LABELS[row.method.partition(" ")[2]]),
        mean(F1, 2),
        ("the paper's macro-F1", lambda row: theirs(row.method, 0)),
        mean(ACCURACY, 2),
        ("the paper's", lambda row: theirs(row.method, 1)),
        *(mean(head, 0) for head in ("rounds to the target", "samples a round", "clients that train")),
        mean("simulated s a round", 2),
        mean("Mbit up a round", 1),
    ]


def figure_of(one: Experiment, accuracy: Mapping[str, Sequence[float]]) -> Figure:
    """Return bars or lines of the accuracy at the end, by setting and method, with one deviation over the seeds.

    Bars begin at 0, and lines at 60 %, so that a difference looks about as large as it is.
    """
    figure, (axes,) = panels(ylabel="accuracy at the end (%)")
    spread = {name: (np.mean(own), np.std(own, ddof=min(1, len(own) - 1))) for name, own in accuracy.items()}
    if one.drawn == "bars":
        means, deviations = zip(*spread.values(), strict=True)
        axes.bar([LABELS[name.partition(" ")[2]] for name in accuracy], means, yerr=deviations)
        axes.tick_params("x", rotation=60)
        axes.set_ylim(0.0, 100.0)
        return figure
    lines = lines_of(spread)
    settings = sorted({x for points in lines.values() for x in points})
    apart = BARS_APART * (settings[-1] - settings[0])
    for nth, (name, points) in enumerate(lines.items()):
        means, deviations = zip(*(points[x] for x in sorted(points)), strict=True)
        at = [x + (nth - (len(lines) - 1) / 2) * apart for x in sorted(points)]
        axes.errorbar(at, means, deviations, marker="o", capsize=3, label=name)
    axes.set_xticks(settings)
    axes.set_xlabel(one.axis)
    axes.set_ylim(max(0.0, min(60.0, min(map(min, accuracy.values())) - 5.0)), 100.0)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    return figure


def lines_of(values: Mapping[str, Any]) -> dict[str, dict[float, Any]]:
    """Return values by line and abscissa; a setting is the abscissa, or that and the line's own name."""
    lines: dict[str, dict[float, Any]] = {}
    for name, value in values.items():
        setting, _, method = name.partition(" ")
        at, _, line = setting.partition("-")
        lines.setdefault(f"{line[0].upper()} = {line[1:]}" if line else LABELS[method], {})[float(at)] = value
    return lines


def drawn_figure(one: Experiment, data: str, target: float, found: Found) -> Figure:
    """Return the figure of an experiment, whose title names the data that stand in for the paper's."""
    if one.drawn == "curves":
        curves = {LABELS[row.partition(" ")[2]]: [run["curve"] for run in runs] for row, runs in found.items()}
        figure = draw(curves, ("round", "test accuracy"), target=target)
    else:
        figure = figure_of(one, {row: [run[ACCURACY] for run in runs] for row, runs in found.items()})
    stand_in = one.stand_in if data.startswith("here") else data
    stand_in += ", Transformer" if data == "here-attention" else ""
    figure.suptitle(f"FedSampling, {one.title} ({stand_in})", fontsize=9)
    return figure


def main() -> None:
    parser = of_runs(__doc__, "runs/fedsampling", LABELS, data=["here", *(one for one in DATA if one != "here")])
    parser.add_argument(
        "experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT", help=", ".join(EXPERIMENTS)
    )
    parser.add_argument("--thin", action="store_true", help="remove the tables of runs when their numbers are known")
    parser.add_argument("--agnews", type=Path, default=None, help="CSV file of AG News, for the texts of table1")
    asked = parser.parse_args()
    if asked.agnews is not None:
        converted(asked.agnews, data_folder(asked.data_dir))
    parts = []
    for name in asked.experiments:
        one, base = EXPERIMENTS[name], scaled(base_of(name, asked.data, dict(asked.set)), asked.scale)
        methods = [method for method in one.methods if method in asked.methods]
        table = Table(
            f"{name}-{asked.data}",
            one.title,
            base,
            {f"{setting} {own}": values_of(name, own, setting, base) for setting in one.settings for own in methods},
            partial(measure, base.results.target_accuracy),
            columns_of(PAPER.get(asked.data.replace("here", "mind"), {}) if name == "table1" else {}),
            {f"{name}-{asked.data}.png": partial(drawn_figure, one, asked.data, base.results.target_accuracy)},
        )
        parts.append(made(table, asked, thin=asked.thin))
    publish("scenarios/fedsampling/results.py", parts, asked)


if __name__ == "__main__":
    in_words(main)
