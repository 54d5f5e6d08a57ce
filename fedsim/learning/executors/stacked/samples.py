"""Batches of the data set for all slots."""

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedsim.arrays import IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.inputs import Inputs, tensor

_COMPUTED_BYTES: Final = 2**26
"""Largest set of samples whose inputs stay in memory."""
_BYTES: Final = 4
"""Of a number of an input; tokens of a text have twice as many."""


class _Kept(NamedTuple):
    """Samples and their targets."""

    samples: Tensor
    computed: bool
    labels: Tensor


class Samples:
    """The training set and the test set, whose inputs are computed once where they are small."""

    def __init__(self, data: Dataset) -> None:
        self._inputs = Inputs(data)
        self.input_bytes = _BYTES * math.prod(self._inputs.computed(self.sent(data.train_x[:1])).shape)
        self._train, self._test = self._kept(data.train_x, data.train_y), self._kept(data.test_x, data.test_y)
        self.test_rows, self.count = np.arange(len(data.test_y)), len(data.train_y)

    def sent(self, values: NDArray[Any]) -> Tensor:
        return tensor(values)

    def batch(self, rows: IntArray, *, of_test: bool = False) -> tuple[Tensor, Tensor]:
        """Return inputs of shape (..., c, h, w) for images, else (..., a, b, ...), and targets."""
        kept = self._test if of_test else self._train
        chosen = self.sent(rows.reshape(-1))
        taken = kept.samples.index_select(0, chosen).view(*rows.shape, *kept.samples.shape[1:])
        targets = kept.labels.index_select(0, chosen).view(*rows.shape, *kept.labels.shape[1:])
        computed = taken if kept.computed else self._inputs.computed(taken)
        return self._inputs.arranged(computed), targets

    def _kept(self, samples: NDArray[Any], labels: NDArray[Any]) -> _Kept:
        fits = len(samples) * self.input_bytes <= _COMPUTED_BYTES
        sent = self.sent(samples)
        return _Kept(self._inputs.computed(sent) if fits else sent, fits, self.sent(labels))
