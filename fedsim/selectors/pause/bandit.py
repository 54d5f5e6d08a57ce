"""What bandits share: what they have seen of each client, and a choice of the greatest values."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray


class Rewards:
    """The rewards observed of each client, as sums and counts over ids; grows with the crowd."""

    def __init__(self) -> None:
        self._sum: FloatArray = np.zeros(0)
        self._count: IntArray = np.zeros(0, dtype=np.int64)

    def add(self, client: IntArray, reward: FloatArray) -> None:
        """Add one reward for each of the ids."""
        if client.size:
            self._make_room(int(client.max()) + 1)
        np.add.at(self._sum, client, reward)
        np.add.at(self._count, client, 1)

    def count(self, client: IntArray) -> IntArray:
        """Return how many rewards were observed of each of the ids."""
        if client.size:
            self._make_room(int(client.max()) + 1)
        return self._count[client]

    def mean(self, client: IntArray) -> FloatArray:
        """Return the mean reward of each of the ids; NaN where none was observed."""
        count = self.count(client)
        return np.asarray(np.divide(self._sum[client], count, out=np.full(client.size, np.nan), where=count > 0))

    def _make_room(self, clients: int) -> None:
        missing = clients - self._count.size
        if missing > 0:
            self._sum = np.pad(self._sum, (0, missing))
            self._count = np.pad(self._count, (0, missing))


def greatest(values: FloatArray, m: int, rng: np.random.Generator | None = None) -> IntArray:
    """Return the positions of the m greatest values in ascending order, in O(K).

    Parameters
    ----------
    values : array of shape (K,), no NaN
    m : int from 1 to K
    rng : generator, optional
        Draws among equals; without one the first positions win.
    """
    shuffled = np.arange(values.size) if rng is None else rng.permutation(values.size)
    values = values[shuffled]
    least = np.partition(values, values.size - m)[values.size - m]
    better = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: m - better.size]
    return np.sort(shuffled[np.concatenate([better, equal])])
