"""Figures of runs: curves, clients' accuracies, divisions of data. matplotlib is loaded when a figure is drawn."""

from typing import TYPE_CHECKING

from fedsim.history.figures.curves import draw as draw
from fedsim.history.figures.durations import draw_durations as draw_durations
from fedsim.history.figures.fairness import draw_clients as draw_clients
from fedsim.history.figures.writing import save as save

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
