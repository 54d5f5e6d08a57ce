"""FedSUV's validity: the probability of a delivery in time, by ridge regression with a confidence bound (equation 4).

After Li, Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article recommendation"
(LinUCB), WWW 2010. With delta the share of failures that the bound may have, ``alpha = 1 + sqrt(ln(4 / delta) / 2)``.
"""

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from fedsim.arrays import BoolArray, FloatArray, IntArray


def alpha_of(delta: float) -> float:
    """Return the factor of the confidence bound.

    >>> round(alpha_of(0.1), 3)
    2.358
    """
    return 1.0 + math.sqrt(math.log(4.0 / delta) / 2.0)


class LinearBandit:
    """Validity as ``theta . x``: one parameter vector for all clients."""

    def __init__(self, columns: int, ridge: float, delta: float) -> None:
        self.alpha = alpha_of(delta)
        self._gram = ridge * np.eye(columns)
        self._response = np.zeros(columns)

    def observe(self, rows: FloatArray, tries: FloatArray, successes: FloatArray) -> None:
        """Add numbers of tries and deliveries, shape (n,), of clients with these rows, shape (n, d)."""
        self._gram += (rows * tries[:, None]).T @ rows
        self._response += rows.T @ successes

    def interval(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds (4) of each row's validity, shapes (n,), for rows of shape (n, d)."""
        factor = cho_factor(self._gram, lower=True)
        centre = rows @ cho_solve(factor, self._response)
        norm = np.sqrt(np.sum(solve_triangular(factor[0], rows.T, lower=True) ** 2, axis=0))
        return centre - self.alpha * norm, centre + self.alpha * norm


class DisjointBandit:
    """`LinearBandit` with one unit vector for each client, for clients without features.

    H is diagonal then: with n tries and s deliveries theta is ``s / (ridge + n)`` and the norm of x
    ``1 / sqrt(ridge + n)``.
    """

    def __init__(self, clients: int, ridge: float, delta: float) -> None:
        self.alpha, self.ridge = alpha_of(delta), ridge
        self._tries = np.zeros(clients)
        self._successes = np.zeros(clients)

    def observe(self, client: IntArray, delivered: BoolArray) -> None:
        """Add one try for each id, and whether it delivered; ids may occur more than once. Shapes (n,)."""
        np.add.at(self._tries, client, 1.0)
        np.add.at(self._successes, client, delivered)

    def interval(self, client: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of each client's validity, shapes (n,)."""
        weight = self.ridge + self._tries[client]
        centre, width = self._successes[client] / weight, self.alpha / np.sqrt(weight)
        return centre - width, centre + width
