"""Curves of methods over several seeds, drawn as papers draw them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from study_scripts import panels

from fedsim.arrays import FloatArray
from fedsim.history.figures.writing import COLOURS
from fedsim.studies.figures.bands import band

Curve = tuple[FloatArray, FloatArray]
_COLOURS: Final = (*COLOURS, "#808080")


def draw(
    curves: Mapping[str, Sequence[Curve]],
    labels: tuple[str, str],
    title: str = "",
    target: float | None = None,
    dashed: Collection[str] = (),
) -> Figure:
    """Return a figure with the mean curve of each name that has runs, and its 95 % interval where they are several.

    A name without runs keeps its colour, so that figures of one study have the same ones; ``target`` is an ordinate
    that a table tells times of.
    """
    figure, (axes,) = panels(xlabel=labels[0], ylabel=labels[1])
    for at, (name, runs) in enumerate(curves.items()):
        if runs:
            of, colour = band([(np.asarray(x), np.asarray(y)) for x, y in runs], 0.95), _COLOURS[at % len(_COLOURS)]
            style = "--" if name in dashed else "-"
            axes.step(of.x, of.mean, where="post", label=name, color=colour, lw=1.5, ls=style)
            axes.fill_between(of.x, of.low, of.high, step="post", color=colour, alpha=0.15, lw=0)
    if target is not None:
        axes.axhline(target, color="grey", lw=1.0, ls=":", label=f"target {100 * target:g} %")
    axes.set_title(title, fontsize=10)
    axes.set(xlim=(0.0, None), ylim=(0.0, None))
    axes.legend(fontsize=8, frameon=False)
    return figure
