"""What FedSUV makes of declared features: one scale for all of them, a kernel over them, and a basis for the kernel.

The paper calls x_i a client's feature vector and leaves units, kernel and length scale open.
"""

from typing import Final, Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist, pdist

from fedsim.arrays import FloatArray, IntArray

Scaling = Literal["rank", "range", "none"]
KernelName = Literal["rbf", "matern52"]

_LOOKED_AT: Final = 4096
"""Most clients among whom basis points are looked for."""
_MEASURED: Final = 1024
"""Most clients whose distances give the length scale."""
_CHUNK: Final = 8192
"""Clients whose kernel values are held at once."""


class Scaler:
    """Brings each column of the features to [0, 1], by the clients it was made from.

    Parameters
    ----------
    features : array of shape (n, f), n >= 1, finite
    scaling : ``"rank"``, ``"range"`` or ``"none"``
        Ranks are mid-ranks over n, between 0 and 1: they do not depend on units and keep a few very fast devices from
        pressing all others together. A range maps least and greatest to 0 and 1. A column without spread becomes
        1/2. ``"none"`` leaves everything as it is.
    """

    def __init__(self, features: FloatArray, scaling: Scaling) -> None:
        self.scaling = scaling
        self._knots: list[tuple[FloatArray, FloatArray]] = []
        if scaling == "none":
            return
        for column in features.T:
            values, counts = np.unique(column, return_counts=True)
            if values.size == 1:
                places = np.array([0.5])
            elif scaling == "rank":
                places = (np.cumsum(counts) - counts / 2) / column.size
            else:
                places = (values - values[0]) / (values[-1] - values[0])
            self._knots.append((values, places))

    def scale(self, features: FloatArray) -> FloatArray:
        """Return features of any clients, shape (n, f), scaled; beyond the known values they stay at the ends."""
        if self.scaling == "none":
            return np.array(features, dtype=np.float64)
        columns = [np.interp(column, *knots) for column, knots in zip(features.T, self._knots, strict=True)]
        return np.stack(columns, axis=1)

    def regressors(self, scaled: FloatArray) -> FloatArray:
        """Return the rows x of the linear model (4): centred, with a constant, none longer than 1.

        LinUCB's bound is stated for norms of at most 1, and the constant lets validity be different from 0 in the
        middle of the crowd. Without scaling a row is the feature vector as it is, the paper's ``theta . x``.
        """
        if self.scaling == "none":
            return scaled
        rows = np.concatenate([2.0 * scaled - 1.0, np.ones((len(scaled), 1))], axis=1)
        return np.asarray(rows / np.sqrt(rows.shape[1]))


def median_distance(scaled: FloatArray) -> float:
    """Return the median distance between (at most 1024, evenly chosen) clients, or 1 where they are all alike."""
    distances = pdist(scaled[:: -(-len(scaled) // _MEASURED)])
    return (float(np.median(distances)) if distances.size else 0.0) or 1.0


class Basis:
    """A few clients by whom the kernel between all clients is told, found by pivoted Cholesky.

    Each client's utility is its part in the span of the basis points' utilities plus a remainder. Remainders of
    different clients count as independent, which makes the process the fully independent training conditional of
    Snelson and Ghahramani, "Sparse Gaussian processes using pseudo-inputs", NIPS 2006. Its variances are exact a
    priori; with remainders of zero so is everything else.

    Parameters
    ----------
    scaled : array of shape (n, f)
        Clients from whom points are taken: at most 4096 of them, evenly chosen.
    kernel : ``"rbf"`` exp(-d^2 / 2 l^2), or ``"matern52"``; both have variance 1
    length_scale : float > 0
    most : int >= 0
        Most points.
    tolerance : float
        No more points are taken once no remainder (of those looked at) has a greater variance.
    """

    def __init__(
        self, scaled: FloatArray, kernel: KernelName, length_scale: float, most: int, tolerance: float
    ) -> None:
        self.kernel, self.length_scale = kernel, length_scale
        looked_at = scaled[:: -(-len(scaled) // _LOOKED_AT)]
        pivots, rows = self._pivot(looked_at, min(most, len(looked_at)), tolerance)
        self.points = looked_at[pivots]
        self._triangle = rows[:, pivots].T

    @property
    def size(self) -> int:
        """Number of points m."""
        return len(self.points)

    def covariance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the kernel between rows, shape (n, m)."""
        distance = cdist(left, right) / self.length_scale
        if self.kernel == "rbf":
            return np.asarray(np.exp(-0.5 * distance**2))
        distance *= np.sqrt(5.0)
        return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance))

    def place(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coordinates, shape (n, m), whose products are covariances, and variances of the remainders, (n,)."""
        coordinates = np.empty((len(scaled), self.size))
        for low in range(0, len(scaled), _CHUNK):
            part = self.covariance(scaled[low : low + _CHUNK], self.points).T
            coordinates[low : low + _CHUNK] = solve_triangular(
                self._triangle, part, lower=True, overwrite_b=True, check_finite=False
            ).T
        return coordinates, np.maximum(1.0 - np.einsum("nm,nm->n", coordinates, coordinates), 0.0)

    def _pivot(self, points: FloatArray, most: int, tolerance: float) -> tuple[IntArray, FloatArray]:
        """Return pivots and the rows of the Cholesky factor, each pivot the point told worst by those before."""
        remainder = np.ones(len(points))
        rows, pivots = np.zeros((most, len(points))), np.zeros(most, dtype=np.int64)
        for i in range(most):
            worst = int(np.argmax(remainder))
            if remainder[worst] <= tolerance:
                return pivots[:i], rows[:i]
            pivots[i] = worst
            row = self.covariance(points[worst : worst + 1], points)[0] - rows[:i, worst] @ rows[:i]
            rows[i] = row / np.sqrt(remainder[worst])
            remainder = np.maximum(remainder - rows[i] ** 2, 0.0)
            remainder[pivots[: i + 1]] = 0.0
        return pivots, rows
