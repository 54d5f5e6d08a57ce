"""A figure of a division of data: samples of each client with each label."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.history.figures.writing import COLOURS, as_it_is, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TICKS: Final = 12
_MOST_COLUMNS: Final = 600
"""Fewer than the pixels of the axes, so that each column is seen."""


def draw_division(counts: IntArray, title: str = "", out: str | Path | None = None) -> "Figure":
    """Return a figure with the samples of each client, above, and of each client and label, below.

    Where there are more clients than columns of pixels, a column has several clients in a row and shows the greatest
    number of them.
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator

    clients, labels = counts.shape
    each = -(-clients // _MOST_COLUMNS)
    starts = np.arange(0, clients, each)
    shown = np.maximum.reduceat(counts, starts)
    sizes = np.maximum.reduceat(counts.sum(axis=1), starts)
    most = max(1, int(counts.max()))
    figure = new_figure(height=4.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    width = each if clients > _MOST_TICKS else 0.8
    above.bar(starts + (each - 1) / 2, sizes, width=width, color=COLOURS[0])
    above.set_ylabel("samples")
    as_it_is(above.set_title(""), title)
    above.grid(visible=True, axis="y", alpha=0.3)
    edges = (-0.5, starts.size * each - 0.5, -0.5, labels - 0.5)
    look = {"cmap": "Blues", "vmin": 0, "vmax": most, "interpolation": "nearest"}
    image = below.imshow(shown.T, aspect="auto", origin="lower", extent=edges, **look)
    below.set_xlim(-0.5, clients - 0.5)
    below.set_xlabel("client" if each == 1 else f"client (the greatest number of each {each} in a row)")
    below.set_ylabel("label")
    for axis, count in ((below.xaxis, clients), (below.yaxis, labels)):
        few = count <= _MOST_TICKS
        axis.set_major_locator(FixedLocator(range(count)) if few else MaxNLocator(_MOST_TICKS, integer=True))
    figure.colorbar(image, ax=below, label="samples")
    save(figure, out)
    return figure
