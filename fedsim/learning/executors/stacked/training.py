"""Training of a cohort in slots: all steps of a timeline, one after the other, each for all slots at once."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import FedsimError
from fedsim.learning.executors.batches import Batches, Samples
from fedsim.learning.executors.contracts import OptimizerState, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.optimizers import Optimizer, rows_of
from fedsim.learning.executors.stacked.draws import SlotDraws
from fedsim.learning.executors.stacked.graph import ModuleOfSlots
from fedsim.learning.executors.stacked.plan import IDLE, BatchTable, Timeline, plan
from fedsim.learning.executors.stacked.recorder import Run
from fedsim.learning.models.inputs import tensor

_CHUNK_BYTES: Final = 2**25
"""Memory of the images of steps gathered at once."""

_WIDTH: Final = 8
"""Batches are filled up to a multiple of this number of samples, so that activations of all slots are aligned alike."""


class UnlikeError(Exception):
    """A step has other bits in this many slots than in few."""


class SlotTraining:
    """Trains the models of several clients, one above the other.

    All batches are computed in one shape: idle slots and short batches are filled up, with weight 0. So a result has
    the same bits whatever clients are beside it. A model whose samples affect each other (batch normalisation) or that
    draws random numbers (dropout) gets every batch in its own size; slots whose next batch has another size wait.
    """

    def __init__(
        self,
        module: ModuleOfSlots,
        samples: Samples,
        setup: TrainingSetup,
        few: "SlotTraining | None" = None,
    ) -> None:
        self._module, self._samples, self._local, self._few = module, samples, setup.local, few
        self._classes = setup.outputs
        self.slots = module.slots
        self._models = rows_of(module.slots, module.count + module.buffers)
        self._pieces = module.pieces(self._models)
        self._buffers = self._pieces[len(self._pieces) - module.buffer_count :]
        self._optimizer = Optimizer(self._models[:, : module.count], setup)
        self._draws = SlotDraws(module.slots)
        self._steps: dict[int, Run] = {}
        self.padded_to: int | None = few.padded_to if few else self._find_padding()

    def train(self, jobs: Sequence[TrainingJob], batches: Sequence[Batches]) -> list[TrainingResult]:
        timeline = plan([one.sizes for one in batches], self.slots, self.padded_to)
        table = BatchTable(batches, self.padded_to or self._local.batch_size)
        rates = _rates(jobs)
        ended: dict[int, tuple[Vector, OptimizerState]] = {}
        at_work: set[int] = set()
        for steps in self._chunks(timeline):
            size, which = int(timeline.sizes[steps.start]), timeline.batch[steps]
            images, labels = self._samples.batch(tensor(table.rows[which, :size]))
            weights, targets = self._targets(labels, table.weights[which, :size])
            run, found = self._run(size), []
            for step, *batch in zip(range(steps.start, steps.stop), images, weights, targets, strict=True):
                if starting := timeline.starts.get(step):
                    at_work.update(slot for slot, _ in starting)
                    self._start(starting, jobs, batches)
                now = None if rates is None else rates[timeline.batch[step]]
                found.append(self._step(run, batch, timeline.batch[step], at_work, now))
                if ending := timeline.ends.get(step):
                    at_work.difference_update(slot for slot, _ in ending)
                    ended.update(self._end(ending, jobs))
            losses = torch.stack(found)
            if self._module.is_softmax:
                losses = losses.gather(3, labels.unsqueeze(3)).squeeze(3).neg_()
            table.losses[which, :size] = losses.numpy()
        results = zip(range(len(jobs)), table.scores(), strict=True)
        return [TrainingResult(ended[client][0], *scores, ended[client][1]) for client, scores in results]

    def _chunks(self, timeline: Timeline) -> Iterator[slice]:
        """Yield steps in a row whose batches have one size and whose images fit into memory."""
        edges = np.flatnonzero(np.diff(timeline.sizes)) + 1
        for first, stop in itertools.pairwise([0, *edges.tolist(), timeline.sizes.size]):
            images = self.slots * int(timeline.sizes[first])
            length = max(1, _CHUNK_BYTES // (images * self._samples.input_bytes))
            yield from (slice(start, min(start + length, stop)) for start in range(first, stop, length))

    def _targets(self, labels: Tensor, weights: Vector) -> tuple[Tensor, Tensor]:
        """Return weight and target of each sample, as `ModuleOfSlots.step` takes them."""
        sent = tensor(weights)
        if not self._module.is_softmax:
            return sent, labels
        sent = sent.unsqueeze(-1)
        targets = torch.zeros((*labels.shape, self._classes))
        return sent, targets.scatter_(-1, labels.unsqueeze(-1), -sent)

    def _start(
        self, starting: Sequence[tuple[int, int]], jobs: Sequence[TrainingJob], batches: Sequence[Batches]
    ) -> None:
        slots = [slot for slot, _ in starting]
        chosen = [jobs[client] for _, client in starting]
        self._models[slots] = tensor(np.stack([job.base for job in chosen]))
        self._optimizer.start(slots, [job.state for job in chosen], [job.offset for job in chosen])
        if self.padded_to is None:
            for slot, client in starting:
                self._draws.seed(slot, batches[client].seed)

    def _end(
        self, ending: Sequence[tuple[int, int]], jobs: Sequence[TrainingJob]
    ) -> Iterator[tuple[int, tuple[Vector, OptimizerState]]]:
        """Yield the clients that have ended with what they have learned, and the states of their optimisers."""
        models = self._models[[slot for slot, _ in ending]].numpy()
        for (slot, client), model in zip(ending, models, strict=True):
            difference = model - jobs[client].base
            difference.flags.writeable = False
            yield client, (difference, self._optimizer.state(slot) if self._local.keep_optimizer_state else {})

    def _step(
        self, run: Run, batch: Sequence[Tensor], batches: IntArray, at_work: set[int], rates: FloatArray | None
    ) -> Tensor:
        """Do a step of the slots that have a batch; return log-probabilities or losses, as `ModuleOfSlots.step`."""
        if self.padded_to is not None:
            gradient, found = run(*self._pieces, *batch)
            self._optimizer.step(gradient, (), rates)
            return found
        active = np.flatnonzero(batches != IDLE).tolist()
        waiting = sorted(at_work.difference(active))
        self._draws.activate(active)
        gradient, found, *buffers = run(*self._pieces, *batch)
        self._optimizer.step(gradient, waiting, rates)
        for piece, after in zip(self._buffers, buffers, strict=True):
            piece[active] = after[active]
        return found

    def _find_padding(self) -> int | None:
        """Return the size that all batches are filled up to, or None if the model needs them in their own size."""
        size = self._local.batch_size
        few, _ = self._samples.batch(torch.arange(3) % self._samples.count)
        if self._buffers or self._module.mixes_samples(few):
            self._traced(size)
            return None
        size = -(-size // _WIDTH) * _WIDTH
        return None if self._traced(size) else size

    def _run(self, size: int) -> Run:
        if size not in self._steps:
            self._traced(size)
            if self._few is not None and not self._is_like(self._few, size):
                raise UnlikeError
            if self._example_step(size, 1).dim() > 2:
                raise FedsimError(
                    f"learning.model: a step on {size} samples has other bits in another place of the executor "
                    "'stacked'; allowed: the executors 'sequential' and 'processes'"
                )
        return self._steps[size]

    def _is_like(self, few: "SlotTraining", size: int) -> bool:
        """Return whether a step on batches of a size has the bits that it has in few slots."""
        few._run(size)
        return torch.equal(self._example_step(size, few.slots), few._example_step(size, few.slots))

    def _traced(self, size: int) -> bool:
        """Trace a step on batches of a size; return whether it draws at random."""
        self._steps[size], draws = self._module.step(self._pieces, *self._example(size, self.slots), self._draws)
        return draws

    def _example(self, size: int, different: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return images, weights and targets of a batch for each slot, as many different ones as asked for."""
        slot = np.arange(self.slots) % different
        rows = (slot[:, None] * size + np.arange(size)) % self._samples.count
        images, labels = self._samples.batch(tensor(rows))
        return images, *self._targets(labels, np.full(rows.shape, 1 / size, dtype=np.float32))

    def _example_step(self, size: int, different: int) -> Tensor:
        """Return the bits of all results of a step on different samples and models, shape (different, n).

        If slots with the same samples and models have other bits, all bits are returned, shape (groups, different, n).
        """
        rows = 0.1 * torch.randn((different, self._models.shape[1]), generator=torch.Generator().manual_seed(0))
        before = self._models.clone()
        with self._draws.kept():
            for slot in range(self.slots):
                self._draws.seed(slot, slot % different)
            self._draws.activate(range(self.slots))
            self._models.copy_(rows.repeat(self.slots // different, 1))
            found = self._steps[size](*self._pieces, *self._example(size, different))
        self._models.copy_(before)
        bits = torch.cat([one.float().reshape(self.slots, -1) for one in found], dim=1).view(torch.int32)
        bits = bits.view(-1, different, bits.shape[1])
        return bits[0] if torch.equal(bits, bits[:1].expand_as(bits)) else bits


def _rates(jobs: Sequence[TrainingJob]) -> FloatArray | None:
    """Return the learning rate of each batch of all clients, 0 without a batch; None for that of the settings."""
    found = [job.rates for job in jobs if job.rates is not None]
    return np.concatenate([*found, np.zeros(1)]) if found else None
