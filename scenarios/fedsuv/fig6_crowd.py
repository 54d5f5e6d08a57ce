"""The clients of FedSUV's section 6.3: a validity and a utility each, and what they lack of the best cohort."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.fedsuv.rectangles import Bounds, dominated
from fedsim.streams import Streams


@dataclass(frozen=True)
class Crowd:
    """Expectations of every client, in (0, 1), and FedSUV's x, shape (n, f)."""

    validity: FloatArray
    utility: FloatArray
    features: FloatArray

    def distance_to_front(self) -> FloatArray:
        """Return each client's distance to the nearest Pareto-optimal client (Definition 3) in the plane."""
        front = ~dominated(Bounds(self.validity, self.validity, self.utility, self.utility))
        across, along = (np.subtract.outer(one, one[front]) for one in (self.validity, self.utility))
        return np.asarray(np.hypot(across, along).min(axis=1))

    def regrets(self, chosen: IntArray) -> FloatArray:
        """Return what cohorts, one a row, lack by the area of section 5.3 and by the objective (OPT), shape (2, n)."""
        best, worth = area(self.validity, self.utility), self.validity * self.utility
        areas = [best - area(self.validity[one], self.utility[one]) for one in chosen]
        return np.array([areas, np.sort(worth)[-chosen.shape[1] :].mean() - worth[chosen].mean(axis=1)])


def make_crowd(clients: int, layout: str, features: str, seed: int) -> Crowd:
    """Return a crowd whose expectations are uniform on the unit square: on a grid or at random."""
    validity, utility = Streams(seed).generator("fig6-crowd").uniform(1e-6, 1 - 1e-6, (2, clients))
    if layout == "grid":
        side = round(clients**0.5)
        if side**2 != clients:
            raise SystemExit(f"--clients: {clients} is no square number, which a grid needs")
        utility, validity = (np.indices((side, side)).reshape(2, -1) + 0.5) / side
    if features == "means":
        return Crowd(validity, utility, np.stack([validity, utility], axis=1))
    # A stream of their own: both layouts of a seed have the same attributes.
    attributes = Streams(seed).generator("fig6-attributes")
    share = attributes.random(6)
    mixed = np.outer(validity, share) + np.outer(utility, 1 - share)
    return Crowd(validity, utility, mixed + 0.1 * attributes.standard_normal(mixed.shape))


def area(validity: FloatArray, utility: FloatArray) -> float:
    """Return V(A) of section 5.3, the area of the points below some of these in both coordinates."""
    order = np.argsort(-validity)
    widths = -np.diff(validity[order], append=0.0)
    return float(np.sum(widths * np.maximum.accumulate(utility[order])))
