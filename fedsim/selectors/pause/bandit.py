"""Common parts of bandits: observed rewards of each client, and the choice of the greatest values."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray, filled
from fedsim.selectors.contracts import RoundView
from fedsim.selectors.sampling import grown


class Rewards:
    """Observed rewards of each client, as sums and counts over client ids."""

    def __init__(self) -> None:
        self._sum: FloatArray = np.zeros(0)
        self._count: IntArray = np.zeros(0, dtype=np.int64)

    def add(self, client: IntArray, reward: FloatArray) -> None:
        """Add one reward for each id; ids may occur more than once. Shapes (n,)."""
        self._grow(int(client.max(initial=-1)) + 1)
        np.add.at(self._sum, client, reward)
        np.add.at(self._count, client, 1)

    def ucb(self, view: RoundView, pulls: IntArray | None, confidence: float, zeta: float = 1.0) -> FloatArray:
        """Return ``zeta mean + sqrt(confidence / pulls)`` of each candidate, shape (n,); infinite if never tried.

        Without ``pulls`` they are the rewards observed.
        """
        self._grow(view.clients)
        count = self._count[view.client]
        tried = count > 0
        if pulls is None:
            pulls = count
        else:
            tried &= pulls > 0
        # Of a large crowd few clients are tried at first.
        known = tried.nonzero()[0]
        bound = filled(count.size, np.inf)
        bound[known] = self._sum[view.client[known]] / count[known] * zeta + np.sqrt(confidence / pulls[known])
        return bound

    def _grow(self, clients: int) -> None:
        self._sum, self._count = grown(self._sum, clients), grown(self._count, clients)


def greatest(values: FloatArray, m: int, rng: np.random.Generator | None = None) -> IntArray:
    """Return the positions of the m greatest values in ascending order, in O(K)."""
    return greatest_in_order(values, m, None if rng is None else rng.permutation(values.size))


def greatest_in_order(values: FloatArray, m: int, order: IntArray | None = None) -> IntArray:
    """Return the positions of the m greatest values in ascending order, in O(K)."""
    least = np.partition(values, values.size - m)[values.size - m]
    enough = values >= least
    if np.count_nonzero(enough) == m:
        return np.asarray(enough.nonzero()[0])
    better = (values > least).nonzero()[0]
    missing, length = m - better.size, 2 * (m - better.size)
    if order is None:
        equal = (values == least).nonzero()[0]
    else:
        # The first ones of a long order are found without a look at the rest.
        while (equal := order[:length][values[order[:length]] == least]).size < missing:
            length *= 4
    return np.sort(np.concatenate([better, equal[:missing]]))
