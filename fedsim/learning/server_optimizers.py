"""How the server turns delivered updates into the next model.

A rule of your own is a `fedsim.Component` with a method ``aggregate(base, differences, weights)``.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import Vector
from fedsim.registry import Component, Registry

_SUM_TOLERANCE: Final = 1e-9
"""By how much weights of a mean may miss 1, far above the rounding of a sum of thousands."""


class ServerOptimizer(Protocol):
    """What a learner asks of an aggregation rule."""

    def aggregate(self, base: Vector, differences: Sequence[Vector], weights: NDArray[np.float64]) -> Vector:
        """Return the next model.

        Parameters
        ----------
        base : float32 vector of shape (d,)
            The current global model.
        differences : one float32 vector of shape (d,) per update, in a fixed order
        weights : float64 array, one per update, as the server chose them
        """
        ...


class FedAvg(Component):
    """Federated averaging: base + sum of w_k h_k over the updates h_k (McMahan et al., AISTATS 2017).

    With weights that sum to one and all updates from the same base this is the average of the clients' models,
    equation 2 of the PAUSE paper; batch normalisation's statistics are averaged like weights. Sums are taken
    in float64 in the order of the updates and rounded to float32 once.
    """

    def aggregate(self, base: Vector, differences: Sequence[Vector], weights: NDArray[np.float64]) -> Vector:
        """Return the next model."""
        total = base.astype(np.float64)
        for difference, weight in zip(differences, weights.tolist(), strict=True):
            total += weight * difference.astype(np.float64)
        return total.astype(np.float32)


def difference_from(current: Vector, base: Vector, sent: Vector) -> Vector:
    """Return how far base + sent is from the current model, in float64 and rounded to float32 once.

    Where both are the same model it is what was sent, bit by bit.
    """
    if np.array_equal(base, current):
        return sent
    return (sent.astype(np.float64) + base - current).astype(np.float32)


def weighted_mean(vectors: Sequence[Vector], weights: NDArray[np.float64]) -> Vector:
    """Return the weighted mean of whole models: sums in float64, in their order, rounded to float32 once."""
    total = np.zeros(vectors[0].size)
    for vector, weight in zip(vectors, weights.tolist(), strict=True):
        total += weight * vector.astype(np.float64)
    return total.astype(np.float32)


def checked_weights(
    weights: NDArray[np.float64], count: int, what: str, *, of_a_mean: bool = False
) -> NDArray[np.float64]:
    """Return a copy of weights, or refuse them.

    Raises
    ------
    ValueError
        Unless they are ``count`` finite numbers; for a mean, at least 0 and of sum 1.
    """
    chosen = np.array(weights, dtype=np.float64)
    if chosen.shape != (count,) or not np.all(np.isfinite(chosen)):
        raise ValueError(f"weights: {weights!r}; one finite number for each of {count} {what}")
    if of_a_mean and (np.any(chosen < 0) or abs(chosen.sum() - 1) > _SUM_TOLERANCE):
        raise ValueError(f"weights: {weights!r}; for a mean of {what} they are at least 0 and sum to 1")
    return chosen


SERVER_OPTIMIZERS: Final = Registry(
    "aggregator",
    "fedsim.aggregators",
    ("aggregate",),
    {"fedavg": "fedsim.learning.server_optimizers:FedAvg"},
    default="fedavg",
)
