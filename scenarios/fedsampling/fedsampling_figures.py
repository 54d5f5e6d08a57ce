"""The figures of FedSampling's experiments: bars, lines over the settings, or curves over rounds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fedsampling_experiments import LABELS, Experiment
from matplotlib.figure import Figure
from paper_runs.curves import draw
from paper_runs.runs import Found
from study_scripts import panels


def drawn_figure(one: Experiment, data: str, target: float, found: Found) -> Figure:
    """Return the figure of an experiment, whose title names the data that stand in for the paper's."""
    if one.drawn == "curves":
        curves = {LABELS[row.partition(" ")[2]]: [run["curve"] for run in runs] for row, runs in found.items()}
        figure = draw(curves, ("round", "test accuracy"), target=target)
    else:
        figure = figure_of(one, {row: [run["accuracy at the end %"] for run in runs] for row, runs in found.items()})
    stand_in = {"here": one.stand_in, "here-attention": f"{one.stand_in}, Transformer"}.get(data, data)
    figure.suptitle(f"FedSampling, {one.title} ({stand_in})", fontsize=9)
    return figure


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
    apart = 0.015 * (settings[-1] - settings[0])  # of the deviations of two lines
    for nth, (name, points) in enumerate(lines.items()):
        means, deviations = zip(*(points[x] for x in sorted(points)), strict=True)
        at = [x + (nth - (len(lines) - 1) / 2) * apart for x in sorted(points)]
        axes.errorbar(at, means, deviations, marker="o", capsize=3, label=name)
    least = max(0.0, min(60.0, min(map(min, accuracy.values())) - 5.0))
    axes.set(xticks=settings, xlabel=one.axis, ylim=(least, 100.0))
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
