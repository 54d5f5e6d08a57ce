"""Which training samples each step of a client sees, and these samples as a module takes them."""

import math
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.contracts import TrainingJob
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.inputs import Inputs, tensor

_COMPUTED_BYTES: Final = 2**26
"""Largest set of samples whose inputs stay in memory."""
_MOST_CUTS: Final = 4096
"""Numbers of samples and shares of work whose cut into batches stays in memory."""
_BYTES: Final = 4
"""Of a number of an input; tokens of a text have twice as many."""


class Batches(NamedTuple):
    """The rows of one client's batches, one batch after the other, and the seed of what the model draws."""

    rows: IntArray
    sizes: IntArray
    first_pass: int
    seed: int


class Drawing:
    """Draws the batches of clients, each epoch in an order of its own."""

    def __init__(self, local: LocalTraining, smallest_batch: int) -> None:
        self._local, self._smallest_batch = local, smallest_batch
        self._cuts: dict[tuple[int, float], tuple[int, IntArray, list[int]]] = {}

    def batches(self, job: TrainingJob) -> Batches:
        each, sizes, used = self._cut(job.rows.size, job.work)
        seed = int(job.rng.integers(2**63))
        orders = [job.rng.permutation(job.rows.size)[:count] for count in used]
        return Batches(job.rows[np.concatenate(orders)], sizes, each, seed)

    def _cut(self, count: int, work: float) -> tuple[int, IntArray, list[int]]:
        """Return how many batches an epoch has, the sizes of all batches, and how many samples each epoch uses."""
        if (count, work) not in self._cuts:
            if len(self._cuts) == _MOST_CUTS:
                self._cuts.clear()
            local, size = self._local, self._local.batch_size
            each = int(local.batches_per_epoch(count, self._smallest_batch))
            sizes = np.full(int(local.batches(count, work, self._smallest_batch)), size)
            sizes[each - 1 :: each] = min(count - (each - 1) * size, size)
            used = [int(sizes[start : start + each].sum()) for start in range(0, sizes.size, each)]
            self._cuts[count, work] = each, sizes, used
        return self._cuts[count, work]


class Samples:
    """The training set on a device, whose inputs are computed once where they are small."""

    def __init__(self, data: Dataset, device: torch.device | None = None) -> None:
        self._inputs, samples = Inputs(data, device), tensor(data.train_x).to(device)
        self.input_bytes = _BYTES * math.prod(self._inputs.computed(samples[:1]).shape)
        self.count, self._targets = len(samples), tensor(data.train_y).to(device)
        self._computed = self.count * self.input_bytes <= _COMPUTED_BYTES
        self._samples = self._inputs.computed(samples) if self._computed else samples

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs of shape (..., c, h, w) for images, else (..., a, b, ...), and targets."""
        chosen = rows.reshape(-1)
        taken = self._samples.index_select(0, chosen).view(*rows.shape, *self._samples.shape[1:])
        targets = self._targets.index_select(0, chosen).view(*rows.shape, *self._targets.shape[1:])
        return self._inputs.arranged(taken if self._computed else self._inputs.computed(taken)), targets
