"""The sum of many clients' single steps, as weighted gradients of batches that hold several clients."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.executors.contracts import MergedJob, TrainingSetup
from fedsim.learning.executors.merged.draws import DrawsOfClients
from fedsim.learning.executors.trainer import Trainer

_TOGETHER: Final = 512
"""Samples of a batch; without draws of the clients it ends anywhere, also within a client."""


class MergedSteps:
    """Sums of single steps, for a model that says of each sample what it says of that sample alone."""

    def __init__(self, setup: TrainingSetup, trainer: Trainer) -> None:
        local, algorithm = setup.local, setup.algorithm
        self._local, self._trainer, self._draws = local, trainer, DrawsOfClients()
        plain = local.optimizer == "sgd" and local.clip_norm is None and not local.keep_optimizer_state
        own = algorithm.has_loss or algorithm.corrects or setup.task.makes_batches
        self._draws_at_random = False
        self.allowed = plain and not own and self._is_of_samples()

    def sum(self, job: MergedJob) -> FloatArray:
        """Return the weighted sum of the clients' differences, in float64, shape (d,)."""
        trainer, rows = self._trainer, list(job.rows)
        sizes = np.array([part.size for part in rows], dtype=np.int64)
        seeds = self._drawn(rows, job.generators) if self._draws_at_random else []
        trainer.begin(job.base)
        weights = np.repeat(job.weights / np.maximum(sizes, 1), sizes).astype(np.float32)
        every, total = np.concatenate(rows), np.zeros(trainer.flat.layout.parameters)
        ends = np.cumsum(sizes)
        for start, stop in _batches(ends if seeds else np.arange(1, every.size + 1)):
            if seeds:
                clients = slice(*np.searchsorted(ends, (start, stop), side="right"))
                self._draws.begin(seeds[clients], sizes[clients].tolist())
            drawing = self._draws if seeds else nullcontext()
            total += trainer.gradient_of(every[start:stop], weights[start:stop], drawing).numpy()
        if self._local.weight_decay:
            total += self._local.weight_decay * job.weights.sum() * trainer.flat.vector.double().numpy()
        if trainer.flat.frozen is not None:
            total[trainer.flat.frozen.numpy()] = 0.0
        total *= -self._local.learning_rate
        return np.asarray(trainer.flat.outward(total), dtype=np.float64)

    def _drawn(self, rows: list[IntArray], generators: Callable[[], Sequence[np.random.Generator]]) -> list[int]:
        """Return the seed of each client's draws, and bring its samples into the order of its first epoch."""
        seeds = []
        for place, rng in enumerate(generators()):
            seeds.append(int(rng.integers(2**63)))
            if rows[place].size > 1:
                rows[place] = rows[place][rng.permutation(rows[place].size)]
        return seeds

    def _is_of_samples(self) -> bool:
        """Return whether the module keeps no statistics, draws for each sample by itself, and mixes no samples.

        Nor does the loss. It is tried on a batch of three samples, the last of which is changed.
        """
        trainer = self._trainer
        if trainer.flat.buffers:
            return False
        trainer.begin(trainer.flat.layout.initial)
        inputs = trainer.inputs_of(np.arange(3) % trainer.samples)
        changed = inputs.clone()
        # Tokens are whole numbers from 0 on; 0 and 1 are in every vocabulary.
        changed[-1] = -changed[-1] + 0.25 if changed.is_floating_point() else (changed[-1] == 0).long()
        found, kept = [], []
        for batch in (inputs, changed):
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(0)
                before = torch.default_generator.get_state()
                found.append(trainer.forward(batch)[:-1])
                kept.append(torch.equal(before, torch.default_generator.get_state()))
        self._draws_at_random = not all(kept)
        alone = torch.equal(*found) and (all(kept) or self._draws_for_samples(inputs))
        drawn = np.random.default_rng(0).normal(0, 0.1, trainer.flat.vector.numel())
        trainer.begin(drawn.astype(np.float32))
        return alone and not trainer.mixes_losses()

    def _draws_for_samples(self, inputs: Tensor) -> bool:
        """Return whether the module draws for each sample by itself what it draws on a batch of three."""
        self._draws.begin([1, 2, 3], [1, 1, 1])
        with torch.no_grad(), torch.random.fork_rng(devices=[]), self._draws:
            self._trainer.forward(inputs)
        return not self._draws.refused


def _batches(ends: IntArray) -> Iterator[tuple[int, int]]:
    """Yield first and last place of each batch."""
    start, next_end = 0, 0
    while next_end < ends.size:
        found = int(np.searchsorted(ends, start + _TOGETHER, side="right"))
        next_end = max(found, next_end + 1)
        stop = int(ends[next_end - 1])
        yield start, stop
        start = stop
