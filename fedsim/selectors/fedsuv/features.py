"""Scaling of declared features, a kernel over them, and a low-rank basis of the kernel, for FedSUV.

The paper calls x_i a client's feature vector and leaves units, kernel and length scale open.
"""

from typing import Final, Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist, pdist

from fedsim.arrays import FloatArray, IntArray

Scaling = Literal["rank", "range", "none"]
KernelName = Literal["rbf", "matern52"]

_POOL: Final = 4096
"""Largest number of clients among which basis points are searched."""
_MEASURED: Final = 1024
"""Largest number of clients whose distances give the length scale."""
_CHUNK: Final = 8192
"""Number of clients whose kernel values are in memory at once."""


class Scaler:
    """A map of each column of features to [0, 1], fitted to some clients."""

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
        """Return features of any clients scaled, shape (n, f); values beyond those of the fit are clipped."""
        if self.scaling == "none":
            return np.array(features, dtype=np.float64)
        columns = [np.interp(column, *knots) for column, knots in zip(features.T, self._knots, strict=True)]
        return np.stack(columns, axis=1)

    def regressors(self, scaled: FloatArray) -> FloatArray:
        """Return the rows x of the linear model (4), centred, with a constant, of norm at most 1; shape (n, f + 1).

        LinUCB's bound holds for norms of at most 1, and the constant allows for a validity other than 0 at the centre.
        Without scaling a row is the feature vector itself, shape (n, f), the paper's ``theta . x``.
        """
        if self.scaling == "none":
            return scaled
        rows = np.concatenate([2.0 * scaled - 1.0, np.ones((len(scaled), 1))], axis=1)
        return np.asarray(rows / np.sqrt(rows.shape[1]))


def median_distance(scaled: FloatArray) -> float:
    """Return the median distance between at most 1024 evenly chosen rows; 1 if all are equal. Shape (n, f)."""
    distances = pdist(scaled[:: -(-len(scaled) // _MEASURED)])
    return (float(np.median(distances)) if distances.size else 0.0) or 1.0


def covariance(kernel: KernelName, length_scale: float, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the kernel, of variance 1, between rows of shapes (n, f) and (m, f), shape (n, m)."""
    distance = cdist(left, right) / length_scale
    if kernel == "rbf":
        return np.asarray(np.exp(-0.5 * distance**2))
    distance *= np.sqrt(5.0)
    return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance))


class Basis:
    """A low-rank basis of the kernel between all clients: points among the clients, found by pivoted Cholesky.

    Each client's utility is its part in the span of the basis points' utilities plus a remainder. Remainders of
    different clients are modelled as independent: the fully independent training conditional of Snelson and
    Ghahramani, "Sparse Gaussian processes using pseudo-inputs", NIPS 2006. Its prior variances are exact; with
    remainders of zero the posterior is exact as well.
    """

    def __init__(
        self, scaled: FloatArray, kernel: KernelName, length_scale: float, most: int, tolerance: float
    ) -> None:
        self.kernel, self.length_scale = kernel, length_scale
        pool = scaled[:: -(-len(scaled) // _POOL)]
        pivots, rows = self._pivot(pool, min(most, len(pool)), tolerance)
        self.points = pool[pivots]
        self._triangle = rows[:, pivots].T

    @property
    def size(self) -> int:
        return len(self.points)

    def covariance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return covariance(self.kernel, self.length_scale, left, right)

    def place(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coordinates, shape (n, m), whose products are covariances, and variances of remainders, shape (n,)."""
        coordinates = np.empty((len(scaled), self.size))
        for low in range(0, len(scaled), _CHUNK):
            part = self.covariance(scaled[low : low + _CHUNK], self.points).T
            coordinates[low : low + _CHUNK] = solve_triangular(
                self._triangle, part, lower=True, overwrite_b=True, check_finite=False
            ).T
        return coordinates, np.maximum(1.0 - np.einsum("nm,nm->n", coordinates, coordinates), 0.0)

    def _pivot(self, points: FloatArray, most: int, tolerance: float) -> tuple[IntArray, FloatArray]:
        """Return pivots, shape (m,), and rows of the Cholesky factor; each pivot has the largest remainder."""
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
