"""The weighted mean of updates."""

from typing import ClassVar

import numpy as np

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.aggregation.contracts import Aggregator, Updates


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
