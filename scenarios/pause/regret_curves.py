"""Curves of regret over the rounds, what they bend like, and the figures of regret.py."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from array_rounds import FloatArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {"PAUSE": "C0", "SA-PAUSE, warm start": "C3", "SA-PAUSE": "C1", "uniform": "C2"}
STRAIGHT = ("PAUSE", "SA-PAUSE, warm start")


@dataclass(frozen=True)
class Run:
    """One run, round by round, summed from the first on."""

    regret: FloatArray
    by_measure: FloatArray
    reward: FloatArray
    agreed: FloatArray


def mean_and_error(curves: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over the seeds."""
    stacked = np.array(curves)
    error = stacked.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros(stacked.shape[1])
    return stacked.mean(axis=0), error


def fit(n: FloatArray, curve: FloatArray, shape: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, float]:
    """Return ``a + b shape(n)`` fitted to the last nine tenths of the rounds, and the share of variance it leaves."""
    late = n >= n[-1] / 10
    slope, offset = np.polyfit(shape(n[late]), curve[late], 1)
    fitted = offset + slope * shape(n)
    return fitted, float(np.var(curve[late] - fitted[late]) / np.var(curve[late]))


def bending(runs: Mapping[str, Sequence[Run]], bounds: Mapping[str, FloatArray]) -> Figure:
    """Return regret over log n, where a logarithm is a line, and all curves with the bounds on two log axes."""
    figure, left, right = _panels()
    for name in STRAIGHT:
        n, mean = _curve(left, runs[name], "regret", name)
        _fitted(left, n, mean, np.log)
    left.plot([], [], "--", color="black", linewidth=0.9, label="a + b log n, fitted to the last nine tenths")
    for name in COLOURS:
        n, _ = _curve(right, runs[name], "regret", name)
    for style, (name, bound) in zip((":", "-."), bounds.items(), strict=True):
        right.plot(n[9:], bound[9:], style, color="grey", label=name)
    left.set_ylim(bottom=0)
    right.set_yscale("log")
    _finish(left, "a logarithm is a straight line here", "regret (15), mean of the seeds")
    _finish(right, "with the bound", "regret (15), mean of the seeds")
    right.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.81))
    return figure


def both_measures(runs: Mapping[str, Sequence[Run]]) -> Figure:
    """Return the regret in expected reward beside the regret in the Genie's own measure."""
    figure, left, right = _panels()
    for name in COLOURS:
        if name != "uniform":
            _curve(left, runs[name], "regret", name)
        n, mean = _curve(right, runs[name], "by_measure", name)
        if name == "PAUSE":
            _fitted(right, n, mean, np.sqrt)
    right.plot([], [], "--", color="black", linewidth=0.9, label="a + b sqrt n, fitted to the last nine tenths")
    left.axhline(0.0, color="grey", linewidth=0.8)
    right.set_yscale("log")
    _finish(left, "below 0 a policy earns more than the Genie", "regret (15), mean of the seeds")
    _finish(right, "by the Genie's own measure none can", "regret by $C^G$, mean of the seeds")
    return figure


def _panels() -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(10.5, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def _curve(axes: Axes, own: Sequence[Run], kind: str, name: str) -> tuple[FloatArray, FloatArray]:
    """Draw a mean with a band of two standard errors; return rounds and mean."""
    mean, error = mean_and_error([getattr(run, kind) for run in own])
    n = np.arange(1.0, mean.size + 1)
    axes.plot(n, mean, color=COLOURS[name], label=name)
    axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=COLOURS[name], alpha=0.2, linewidth=0)
    return n, mean


def _fitted(axes: Axes, n: FloatArray, mean: FloatArray, shape: Callable[[FloatArray], FloatArray]) -> None:
    """Draw a fit where it was made."""
    late = n >= n[-1] / 10
    axes.plot(n[late], fit(n, mean, shape)[0][late], "--", color="black", linewidth=0.9)


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set_xscale("log")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("rounds n")
    axes.set_ylabel(label)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
