"""Curves of methods over several seeds, drawn as papers draw them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from fedsim.arrays import FloatArray
from fedsim.history import History, save
from fedsim.history.figures.writing import COLOURS
from fedsim.history.tables import X, Y
from fedsim.studies.figures.bands import band

LEVEL: Final = 0.95
"""Of the bands, Student's intervals of the mean over the seeds."""
_COLOURS: Final = (*COLOURS, "#808080")


@dataclass(frozen=True)
class Panel:
    """What a figure shows; ``target`` is an ordinate that a table tells times of."""

    x: X
    y: Y
    smoothing: int = 1
    labels: tuple[str, str] = ("", "")
    title: str = ""
    target: float | None = None
    styles: Mapping[str, str] = field(default_factory=dict)


def first_s(time_s: FloatArray, values: FloatArray, target: float) -> float | None:
    """Return when a curve, smoothed or not, is first at a target or above it; None if it never is."""
    at = np.flatnonzero(values >= target)
    return float(time_s[at[0]]) if at.size else None


def draw(curves: Mapping[str, Sequence[History]], panel: Panel) -> Figure:
    """Return a figure with a curve for each name that has runs: their mean, with a band where they are several."""
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for at, (name, histories) in enumerate(curves.items()):
        if not histories:
            continue
        of = band([history.curve(panel.x, panel.y, panel.smoothing) for history in histories], LEVEL)
        colour, style = _COLOURS[at % len(_COLOURS)], panel.styles.get(name, "-")
        axes.step(of.x, of.mean, where="post", label=name, color=colour, lw=1.5, ls=style)
        axes.fill_between(of.x, of.low, of.high, step="post", color=colour, alpha=0.15, lw=0)
    if panel.target is not None:
        axes.axhline(panel.target, color="grey", lw=1.0, ls=":", label=f"target {100 * panel.target:g} %")
    axes.set(xlabel=panel.labels[0], ylabel=panel.labels[1])
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    return figure


def written(figure: Figure, file: Path) -> None:
    """Write a figure, and print where it lies."""
    save(figure, file)
    print(file, flush=True)
