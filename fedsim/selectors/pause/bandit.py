"""Common parts of bandits: observed rewards of each client, and the choice of the greatest values."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray, filled
from fedsim.selectors.sampling import grown


class Rewards:
    """Observed rewards of each client, as sums and counts over client ids."""

    def __init__(self) -> None:
        self._sum: FloatArray = np.zeros(0)
        self._count: IntArray = np.zeros(0, dtype=np.int64)

    def add(self, client: IntArray, reward: FloatArray) -> None:
        """Add one reward for each id; ids may occur more than once. Shapes (n,)."""
        self._grow(client)
        np.add.at(self._sum, client, reward)
        np.add.at(self._count, client, 1)

    def count(self, client: IntArray) -> IntArray:
        """Return the number of rewards observed of each client, shape of ``client``."""
        self._grow(client)
        return self._count[client]

    def mean(self, client: IntArray) -> FloatArray:
        """Return the mean reward of each client, shape of ``client``; NaN without observations."""
        count = self.count(client)
        return np.asarray(np.divide(self._sum[client], count, out=filled(client.size, np.nan), where=count > 0))

    def _grow(self, client: IntArray) -> None:
        clients = int(client.max(initial=-1)) + 1
        self._sum, self._count = grown(self._sum, clients), grown(self._count, clients)


def greatest(values: FloatArray, m: int, rng: np.random.Generator | None = None) -> IntArray:
    """Return the positions of the m greatest values in ascending order, in O(K)."""
    return greatest_in_order(values, m, None if rng is None else rng.permutation(values.size))


def greatest_in_order(values: FloatArray, m: int, order: IntArray | None = None) -> IntArray:
    """Return the positions of the m greatest values in ascending order, in O(K)."""
    least = np.partition(values, values.size - m)[values.size - m]
    better = np.flatnonzero(values > least)
    missing = m - better.size
    if order is None:
        equal = np.flatnonzero(values == least)[:missing]
    else:
        # The first ones of a long order are found without a look at the rest.
        length = 2 * missing
        while (equal := order[:length][values[order[:length]] == least]).size < missing:
            length *= 4
        equal = equal[:missing]
    return np.sort(np.concatenate([better, equal]))
