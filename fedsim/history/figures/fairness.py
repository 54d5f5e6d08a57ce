"""A figure of how the accuracy of a model is spread over the clients."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedsim.errors import RunError
from fedsim.history.fairness import last_accuracies
from fedsim.history.figures.writing import add_legend, look_of, new_figure, save
from fedsim.history.tables import Tables

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


def draw_clients(
    histories: Sequence[Tables], *, labels: Sequence[str] | None = None, out: str | Path | None = None
) -> "Figure":
    """Return a figure with the accuracies of all clients in ascending order, a curve for each run.

    The abscissa is the share of clients: where a curve is at 0.1, a tenth of the clients have that accuracy or less.
    The accuracies are those of the last evaluation that was made on local test samples.
    """
    names = [history.name for history in histories] if labels is None else labels
    figure = new_figure()
    axes = figure.add_subplot()
    drawn: list[Artist] = []
    shown: list[str] = []
    for i, (history, label) in enumerate(zip(histories, names, strict=True)):
        number, accuracy = last_accuracies(history)
        if not accuracy.size:
            raise RunError(
                f"{label}: holds no accuracy of clients to draw; a run with results.evaluate_clients = 'last' or a "
                "number has it"
            )
        ascending = np.sort(accuracy)
        drawn += axes.plot(
            np.arange(accuracy.size + 1) / accuracy.size,
            np.concatenate([ascending[:1], ascending]),
            drawstyle="steps-pre",
            linewidth=1.5,
            **look_of(i),
        )
        shown.append(f"{label}, round {number}")
    axes.set_xlabel("share of the clients, ascending by accuracy")
    axes.set_ylabel("accuracy on the client's test samples")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.grid(visible=True, alpha=0.3)
    add_legend(axes, drawn, shown)
    save(figure, out)
    return figure
