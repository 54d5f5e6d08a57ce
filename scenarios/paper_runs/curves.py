"""Curves of methods over several seeds, drawn as papers draw them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim.arrays import FloatArray
from fedsim.history import History
from fedsim.history.tables import X, Y

POINTS: Final = 400
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#808080")
"""Okabe and Ito's palette, which colour-blind readers can tell apart, with grey in the place of its yellow."""


@dataclass(frozen=True)
class Panel:
    """What a figure shows."""

    x: X
    y: Y
    smoothing: int = 1
    labels: tuple[str, str] = ("", "")
    until: float | None = None
    title: str = ""
    styles: Mapping[str, str] = field(default_factory=dict)


def mean_curve(histories: Sequence[History], panel: Panel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return abscissas, the mean over runs and their standard deviation (NaN with one run), each of shape (n,).

    One run has its own abscissas. Several have common ones from 0 to the end of the shortest, at which each run has
    the value that it reached last, NaN before the first.
    """
    curves = [history.curve(panel.x, panel.y, panel.smoothing) for history in histories]
    if len(curves) == 1:
        ((abscissa, ordinate),) = curves
        return abscissa, ordinate, np.full(ordinate.shape, np.nan)
    at = np.linspace(0.0, min(abscissa[-1] for abscissa, _ in curves), POINTS)
    values = np.stack([held(abscissa, ordinate, at) for abscissa, ordinate in curves])
    return at, values.mean(axis=0), values.std(axis=0, ddof=1)


def held(abscissa: FloatArray, ordinate: FloatArray, at: FloatArray) -> FloatArray:
    """Return the last ordinate known at each place, NaN before the first; abscissas rise."""
    last = np.searchsorted(abscissa, at, side="right") - 1
    return np.asarray(np.where(last < 0, np.nan, ordinate[np.maximum(last, 0)]))


def first_s(time_s: FloatArray, values: FloatArray, target: float) -> float | None:
    """Return when a curve, smoothed or not, is first at a target or above it; None if it never is."""
    at = np.flatnonzero(values >= target)
    return float(time_s[at[0]]) if at.size else None


def draw(curves: Mapping[str, Sequence[History]], panel: Panel) -> Figure:
    """Return a figure with a curve for each name: the mean of its runs, and a band of one standard deviation."""
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for at, (name, histories) in enumerate(curves.items()):
        if histories:
            _plot(axes, name, histories, panel, _COLOURS[at % len(_COLOURS)])
    axes.set_xlabel(panel.labels[0])
    axes.set_ylabel(panel.labels[1])
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlim(0.0, panel.until)
    axes.set_ylim(bottom=0.0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    return figure


def _plot(axes: Axes, name: str, histories: Sequence[History], panel: Panel, colour: str) -> None:
    abscissa, mean, deviation = mean_curve(histories, panel)
    steps = "steps-post" if panel.y == "leakage" else "default"
    axes.plot(abscissa, mean, label=name, color=colour, lw=1.5, ls=panel.styles.get(name, "-"), drawstyle=steps)
    if len(histories) > 1:
        axes.fill_between(abscissa, mean - deviation, mean + deviation, color=colour, alpha=0.15, lw=0)
