"""The contract of an aggregation: how the updates of a cohort become one."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import Contract, Flag, Number, Numbers
from fedsim.arrays import FloatArray, Vector
from fedsim.capabilities import UPDATES
from fedsim.registry import Component, Registry

Updates = NDArray[np.float32]
"""One update in each row, shape (n, d)."""


class Aggregator(Component, ABC):
    """A rule that makes one update of several; derive from it, add options as fields, and write `combine`.

    It has all updates of an aggregation at once, in memory that grows with their number: 4 n d bytes for n updates of d
    numbers. The weighted mean alone adds updates one after the other.

    Attributes
    ----------
    adds_up : bool
        Whether it is the weighted mean. Then updates are added to the model as they come, and `combine` is not called.

    Examples
    --------
    >>> class Largest(Aggregator):
    ...     def combine(self, updates, weights, parameters):
    ...         return updates[np.argmax(np.abs(updates), axis=0), np.arange(updates.shape[1])]
    >>> updates = np.array([[1.0, -5.0], [3.0, 2.0]], dtype=np.float32)
    >>> Largest().combine(updates, np.array([0.5, 0.5]), 2).tolist(), Largest().least_updates
    ([3.0, -5.0], 1)
    """

    adds_up: ClassVar[bool] = False

    @property
    def requires(self) -> frozenset[str]:
        """The updates of clients at once, unless they are added up."""
        return frozenset(() if self.adds_up else {UPDATES})

    @property
    def least_updates(self) -> int:
        """Fewest updates for which the rule is what it says; a scenario must not aggregate fewer."""
        return 1

    @abstractmethod
    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        """Return what takes the place of the weighted mean, shape (d,), from these arguments alone.

        Parameters
        ----------
        updates : float32 array of shape (n, d), read-only
            What clients sent against the server's model, in the order of their dispatch; at least `least_updates`.
        weights : array of shape (n,), read-only
            Above 0, of sum 1. A rule that withstands wrong updates does not read them: a client that says it has many
            samples would count for many.
        parameters : int
            How many numbers of an update, the first ones, are parameters; the others are buffers.
        """


_KINDS: Final[Mapping[str, Any]] = {
    "adds_up": Flag(),
    "least_updates": Number(least=1, whole=True),
    "combine": Numbers(
        lambda given: given["updates"].shape[1:], least=-math.inf, infinite=True, nan=True, dtype=np.float32
    ),
}
AGGREGATION: Final = Contract("aggregation", Aggregator, _KINDS)

AGGREGATIONS: Final = Registry(
    "aggregation",
    "fedsim.aggregations",
    ("combine",),
    {
        "mean": "fedsim.learning.aggregation.contracts:Mean",
        "median": "fedsim.learning.aggregation.robust:Median",
        "trimmed-mean": "fedsim.learning.aggregation.robust:TrimmedMean",
        "krum": "fedsim.learning.aggregation.robust:Krum",
        "multi-krum": "fedsim.learning.aggregation.robust:MultiKrum",
    },
    default="mean",
)


class Mean(Aggregator):
    """The weighted mean: updates are added to the model one after the other, in memory that does not grow with them.

    By which weights, and whether these are those of a mean or of a sum, ``rounds.weights`` and the policy say.

    Examples
    --------
    >>> updates = np.array([[1.0, -4.0], [3.0, 0.0]], dtype=np.float32)
    >>> Mean().combine(updates, np.array([0.25, 0.75]), 2).tolist(), Mean.adds_up
    ([2.5, -1.0], True)
    """

    adds_up: ClassVar[bool] = True

    def combine(self, updates: Updates, weights: FloatArray, parameters: int) -> Vector:
        return np.asarray(weights @ updates, dtype=np.float32)
