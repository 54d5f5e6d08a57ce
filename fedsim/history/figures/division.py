"""A figure of a division of data: samples of each client with each label."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fedsim.arrays import IntArray
from fedsim.history.figures.style import COLOURS, DOTS_PER_INCH
from fedsim.history.figures.writing import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TICKS: Final = 12


def draw_division(counts: IntArray, title: str = "", out: str | Path | None = None) -> "Figure":
    """Return a figure with the samples of each client, above, and of each client and label, below.

    Parameters
    ----------
    counts : samples of each client with each label, shape (K, labels)
    title : above the figure
    out : file to write, in the format of its ending
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    clients, labels = counts.shape
    most = max(1, int(counts.max()))
    figure = Figure(figsize=(6.4, 4.8), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    above.bar(np.arange(clients), counts.sum(axis=1), width=1.0 if clients > _MOST_TICKS else 0.8, color=COLOURS[0])
    above.set_ylabel("samples")
    above.set_title(title)
    above.grid(visible=True, axis="y", alpha=0.3)
    image = below.imshow(
        counts.T, aspect="auto", origin="lower", cmap="Blues", vmin=0, vmax=most, interpolation="nearest"
    )
    below.set_xlim(-0.5, clients - 0.5)
    below.set_xlabel("client")
    below.set_ylabel("label")
    for axis, count in ((below.xaxis, clients), (below.yaxis, labels)):
        axis.set_major_locator(MaxNLocator(min(_MOST_TICKS, count), integer=True))
    figure.colorbar(image, ax=below, label="samples")
    if out is not None:
        save(figure, out)
    return figure
