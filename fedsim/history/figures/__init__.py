"""Figures of runs: curves, clients' accuracies, divisions of data. matplotlib is loaded when a figure is drawn."""

from fedsim.history.figures.curves import draw
from fedsim.history.figures.fairness import draw_clients
from fedsim.history.figures.writing import save

__all__ = ["draw", "draw_clients", "save"]
