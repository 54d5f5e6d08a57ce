"""How the server turns delivered updates into the next model.

A rule of your own is a `fedsim.Part` with a method ``aggregate(base, differences, weights)``.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsim.parts import Catalogue, Part

Vector = NDArray[np.float32]


class Aggregator(Protocol):
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


class FedAvg(Part):
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


AGGREGATORS: Final = Catalogue(
    "aggregator",
    "fedsim.aggregators",
    ("aggregate",),
    {"fedavg": "fedsim.learning.aggregation:FedAvg"},
    default="fedavg",
)
