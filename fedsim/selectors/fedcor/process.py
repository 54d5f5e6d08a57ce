"""A Gaussian process over the changes of clients' losses in a round, with a covariance of low rank.

Client k has a point x_k of few dimensions. The covariance of the changes of clients i and k is ``x_i . x_k``, and the
square of the noise more for i = k: the linear kernel of FedCor (section 4.3 and its published code). The published code
climbs to points of high marginal likelihood by Adam. For the linear kernel and a given noise the greatest marginal
likelihood has a closed form, which is used here: the principal components of the samples, with their variances less
that of the noise (Tipping and Bishop, "Probabilistic Principal Component Analysis", Journal of the Royal Statistical
Society B 61(3), 1999, equation 7).
"""

from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.sampling import grown

_LEAST_VARIANCE: Final = 1e-300


class LossProcess:
    """The covariance of changes of loss, from samples of all clients."""

    def __init__(self, dimension: int, noise: float, history: int, gamma: float, *, centred: bool) -> None:
        self.dimension, self.noise, self.history, self.gamma = dimension, noise, history, gamma
        self.centred = centred
        self.points: FloatArray = np.zeros((0, 0))
        self.own: FloatArray = np.zeros(0)
        self._samples: dict[int, tuple[IntArray, FloatArray]] = {}

    @property
    def knows(self) -> bool:
        """Whether there is a covariance."""
        return self.points.size > 0

    def learn(self, round_: int, client: IntArray, change: FloatArray) -> None:
        """Add the changes of clients' losses in a round, of shape (n,), and forget samples that are too old."""
        if client.size:
            self._samples[round_] = client, change
        self._samples = {number: told for number, told in self._samples.items() if number + self.history >= round_}

    def fit(self, clients: int) -> None:
        """Fit the covariance of K clients to the samples; without samples it stays as it is."""
        if not self._samples:
            return
        change, weight = self._matrix(clients)
        known = ~np.isnan(change)
        total = np.maximum(weight @ known, _LEAST_VARIANCE)
        mean = weight @ np.where(known, change, 0.0) / total if self.centred else np.zeros(clients)
        # A change that is not known counts as the mean.
        rest = np.where(known, change - mean, 0.0) * np.sqrt(weight / weight.sum())[:, None]
        _, scale, axes = np.linalg.svd(rest, full_matrices=False)
        spread = np.sqrt(np.maximum(scale**2 - self.noise**2, 0.0))[: self.dimension]
        self.points = axes[: self.dimension].T * spread
        self.own = np.full(clients, self.noise**2)
        met = known.any(axis=0)
        self.own[~met] += float(np.square(self.points[met]).sum(axis=1).mean())

    def _matrix(self, clients: int) -> tuple[FloatArray, FloatArray]:
        """Return the samples, NaN where one is not known, shape (S, K), and their weights, shape (S,)."""
        newest = max(self._samples)
        change = np.full((len(self._samples), clients), np.nan)
        for row, (client, value) in enumerate(self._samples.values()):
            change[row, client] = value
        return change, np.array([self.gamma ** (newest - number) for number in self._samples])

    def greedy(self, size: int, share: FloatArray, allowed: BoolArray, discount: FloatArray) -> IntArray:
        """Return the clients that are expected to lower the global loss most, one after the other.

        The next one has the greatest ``discount_k sum_i p_i S_ik / sqrt(S_kk)`` (section 4.2): by how much the mean
        change of the global loss falls when that of client k falls by one standard deviation. After each one, S becomes
        the covariance given its change, ``S_ij - S_ik S_kj / S_kk``.
        """
        self.points = _rows(self.points, share.size)
        self.own = grown(self.own, share.size, float(self.own.max(initial=0.0)))
        points, free = self.points, allowed.copy()
        total = points @ (points.T @ share) + self.own * share
        variance = np.square(points).sum(axis=1) + self.own
        taken: list[int] = []
        columns: list[FloatArray] = []
        for _ in range(size):
            index = discount * total / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
            k = int(np.argmax(np.where(free, index, -np.inf)))
            taken.append(k)
            free[k] = False
            column = points @ points[k]
            column[k] += self.own[k]
            for earlier in columns:
                column -= earlier * earlier[k]
            column /= np.sqrt(max(column[k], _LEAST_VARIANCE))
            columns.append(column)
            total = total - column * float(column @ share)
            variance = np.maximum(variance - np.square(column), 0.0)
        return np.array(taken, dtype=np.int64)


def _rows(points: FloatArray, clients: int) -> FloatArray:
    """Return points with a row of zeros for each client that has none."""
    return np.pad(points, ((0, max(clients - len(points), 0)), (0, 0)))
