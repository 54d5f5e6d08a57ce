"""Batches of the training set for all slots."""

import math
from typing import Final

from torch import Tensor

from fedsim.arrays import IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.inputs import Inputs, tensor

_COMPUTED_BYTES: Final = 2**26
"""Largest set of samples whose inputs stay in memory."""
_BYTES: Final = 4
"""Of a number of an input; tokens of a text have twice as many."""


class Samples:
    """The training set, whose inputs are computed once where they are small."""

    def __init__(self, data: Dataset) -> None:
        self._inputs, samples = Inputs(data), tensor(data.train_x)
        self.input_bytes = _BYTES * math.prod(self._inputs.computed(samples[:1]).shape)
        self.count, self._labels = len(samples), tensor(data.train_y)
        self._computed = self.count * self.input_bytes <= _COMPUTED_BYTES
        self._samples = self._inputs.computed(samples) if self._computed else samples

    def batch(self, rows: IntArray) -> tuple[Tensor, Tensor]:
        """Return inputs of shape (..., c, h, w) for images, else (..., a, b, ...), and targets."""
        chosen = tensor(rows.reshape(-1))
        taken = self._samples.index_select(0, chosen).view(*rows.shape, *self._samples.shape[1:])
        targets = self._labels.index_select(0, chosen).view(*rows.shape, *self._labels.shape[1:])
        return self._inputs.arranged(taken if self._computed else self._inputs.computed(taken)), targets
