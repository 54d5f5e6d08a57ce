"""Bars of studies: what a difference in seconds is made of, and what moves the time to a target most."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedsim.history import save
from fedsim.history.figures.writing import COLOURS, as_it_is, new_figure
from fedsim.studies.comparing.why import NAMES, Why
from fedsim.studies.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_why(found: Sequence[Why], out: str | Path | None = None) -> "Figure":
    """Return stacked bars of the factors of each difference: what makes it longer to the right, shorter to the left."""
    known = [one for one in found if one.pairs]
    figure, axes = _empty(len(known))
    for at, one in enumerate(known):
        right = left = 0.0
        for colour, name in zip((*COLOURS, "#999999"), NAMES, strict=True):
            seconds = one.factors[name][0]
            axes.barh(
                at, seconds, left=right if seconds > 0 else left, color=colour, label=NAMES[name] if not at else None
            )
            right, left = right + max(seconds, 0.0), left + min(seconds, 0.0)
        low, high = one.interval
        axes.plot([low, high], [at, at], color="white", linewidth=5)
        axes.plot([low, high], [at, at], color="black", linewidth=2)
        axes.plot([one.difference], [at], "o", color="white", markeredgecolor="black")
    _name(axes, [one.variant for one in known])
    baseline = known[0].baseline if known else ""
    axes.set_xlabel(f"seconds more than {baseline}\ndot and line: their sum with its interval")
    figure.legend(frameon=False, loc="outside upper center", ncols=3, fontsize=7)
    save(figure, out)
    return figure


def draw_tornado(
    names: Sequence[str], low: Sequence[float], high: Sequence[float], label: str, out: str | Path
) -> None:
    """Write bars from the effect of the lower value of each field to that of the higher one, greatest at the top."""
    figure, axes = _empty(len(names))
    for values, colour, text in ((low, COLOURS[0], "lower value"), (high, COLOURS[1], "higher value")):
        axes.barh(range(len(names)), values, color=colour, alpha=0.8, label=text)
    axes.invert_yaxis()
    _name(axes, names)
    axes.set_xlabel(label)
    axes.legend(frameon=False, fontsize=8)
    save(figure, out)


def draw_points(
    points: Sequence[Sequence[float]], front: Sequence[tuple[float, ...]], goals: Sequence[Metric], out: str | Path
) -> None:
    """Write points in two metrics, and as steps what is reached for at most, or at least, so much of the first one."""
    figure = new_figure(7.5, 4.4)
    axes = figure.add_subplot()
    steps = "steps-pre" if goals[0].better > 0 else "steps-post"
    axes.plot(*zip(*points, strict=True), "o", color=COLOURS[5], label="tried")
    axes.plot(*zip(*sorted(front), strict=True), "o-", color=COLOURS[1], label="beaten by no other", drawstyle=steps)
    as_it_is(axes.xaxis.label, goals[0].label)
    as_it_is(axes.yaxis.label, goals[1].label)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, out)


def _empty(bars: int) -> "tuple[Figure, Axes]":
    figure = new_figure(7.5, 1.6 + 0.35 * max(bars, 1))
    axes = figure.add_subplot()
    axes.axvline(0.0, color="grey", linewidth=0.8)
    return figure, axes


def _name(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), list(names))
    for text, name in zip(axes.get_yticklabels(), names, strict=True):
        as_it_is(text, name)
