"""Krum and Multi-Krum: the updates that have the nearest neighbours."""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning.aggregation.contracts import Aggregator, Updates


class Krum(Aggregator):
    """The one update whose nearest neighbours are nearest; weights are not read.

    Blanchard, El Mhamdi, Guerraoui and Stainer, "Machine learning with adversaries: Byzantine tolerant gradient
    descent", NeurIPS 2017. Of n updates, f of which may be wrong, the score of one is the sum of its squared distances
    to the ``n - f - 2`` nearest others. The smallest score wins, of equal ones the first. It needs ``2 f + 3`` updates.
    Distances are those of parameters; buffers of batch normalisation are those of the winner. It holds 4 n d bytes for
    n updates of d numbers, and takes n (n - 1) / 2 distances.

    Attributes
    ----------
    byzantine : int >= 0
        f, how many updates of an aggregation may be wrong.
    """

    byzantine: Annotated[int, Field(ge=0, le=10**6)]

    @property
    def least_updates(self) -> int:
        return 2 * self.byzantine + 3

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        return np.array(updates[_best(updates[:, :parameters], self.byzantine)[0]])


class MultiKrum(Aggregator):
    """The mean of the updates with the best scores of Krum; weights are not read.

    Blanchard et al., NeurIPS 2017, section 4: scores are computed once, and the m updates with the smallest ones are
    averaged, each alike. With m of 1 it is Krum, with m of n the plain mean. It needs ``2 f + 3`` updates, and m. It
    holds 4 n d bytes for n updates of d numbers.

    Attributes
    ----------
    byzantine : int >= 0
        f, how many updates of an aggregation may be wrong.
    averaged : int >= 1
        m, how many updates are averaged.
    """

    byzantine: Annotated[int, Field(ge=0, le=10**6)]
    averaged: Annotated[int, Field(ge=1, le=10**6)]

    @property
    def least_updates(self) -> int:
        return max(2 * self.byzantine + 3, self.averaged)

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        best = np.sort(_best(updates[:, :parameters], self.byzantine)[: self.averaged])
        total = np.zeros(updates.shape[1])
        for place in best.tolist():
            total += updates[place]
        return np.asarray(total / best.size, dtype=np.float32)


def _best(vectors: Updates, byzantine: int) -> IntArray:
    """Return the indices of vectors by ascending score, shape (n,)."""
    count = len(vectors)
    squares = np.zeros((count, count))
    for one in range(count):
        for other in range(one + 1, count):
            # Differences in float64: products of nearly equal vectors would lose all digits.
            apart = vectors[one].astype(np.float64) - vectors[other]
            squares[one, other] = squares[other, one] = apart @ apart
    # A number that is not finite is as far as can be.
    squares[~np.isfinite(squares)] = np.inf
    np.fill_diagonal(squares, np.inf)
    nearest = np.sort(squares, axis=1)[:, : count - byzantine - 2]
    return np.argsort(nearest.sum(axis=1), kind="stable")
