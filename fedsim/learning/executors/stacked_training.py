"""Training of a cohort in slots: all steps of a timeline, one after the other, each for all slots at once."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import IntArray, Vector
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult
from fedsim.learning.executors.stacked_draws import SlotDraws
from fedsim.learning.executors.stacked_graph import ModuleOfSlots, Run
from fedsim.learning.executors.stacked_optimizers import SlotOptimizer, rows_of
from fedsim.learning.executors.stacked_plan import IDLE, BatchTable, Timeline, draw_batches, plan
from fedsim.learning.executors.stacked_samples import Samples
from fedsim.learning.local_training import LocalTraining

_CHUNK_BYTES: Final = 2**25
"""Memory that the images of steps gathered at once may take."""


_WIDTH: Final = 8
"""Batches are filled up to a multiple of so many samples, so that activations of all slots are aligned alike."""


class SlotTraining:
    """Models of the clients at work, one above the other, and what trains them.

    All batches are computed in one shape: idle slots and short batches are filled up, with weight 0. So a result has
    the same bits whatever clients are beside it. A model whose samples see each other (batch normalisation) or that
    draws random numbers (dropout) gets every batch in its own size; slots whose next batch has another size wait.

    Parameters
    ----------
    module : the module of the slots
    samples : the data
    local : local training
    classes : number of classes
    smallest_batch : 1, or 2 for a model with batch normalisation
    """

    def __init__(
        self, module: ModuleOfSlots, samples: Samples, local: LocalTraining, classes: int, smallest_batch: int
    ) -> None:
        self._module, self._samples, self._local = module, samples, local
        self._classes, self._smallest_batch = classes, smallest_batch
        self._models = rows_of(module.slots, module.count + module.buffers, samples.device)
        self._pieces = module.pieces(self._models)
        self._buffers = self._pieces[len(self._pieces) - module.buffer_count :]
        self._optimizer = SlotOptimizer(self._models[:, : module.count], local)
        self._draws = SlotDraws(samples.device, module.slots)
        self._steps: dict[int, Run] = {}
        self._padded_to = self._find_padding()

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        """Return what each client learns."""
        batches = [draw_batches(job, self._local, self._smallest_batch) for job in jobs]
        timeline = plan([one.sizes for one in batches], self._module.slots, self._padded_to)
        table = BatchTable(batches, self._padded_to or self._local.batch_size)
        ended: dict[int, tuple[Vector, dict[str, Vector]]] = {}
        at_work: set[int] = set()
        for steps in self._chunks(timeline):
            size, which = int(timeline.sizes[steps.start]), timeline.batch[steps]
            images, labels = self._samples.batch(table.rows[which, :size])
            targets = self._targets(labels, table.weights[which, :size])
            found = []
            for step, *batch in zip(range(steps.start, steps.stop), images, targets, strict=True):
                for slot, client in timeline.starts.get(step, ()):
                    at_work.add(slot)
                    self._start(slot, jobs[client], batches[client].seed)
                active = np.flatnonzero(timeline.batch[step] != IDLE)
                found.append(self._step(batch[0], batch[1], active, sorted(at_work.difference(active.tolist()))))
                for slot, client in timeline.ends.get(step, ()):
                    at_work.remove(slot)
                    ended[client] = self._end(slot, jobs[client])
            losses = torch.stack(found).gather(3, labels.unsqueeze(3)).squeeze(3).neg_()
            table.losses[which, :size] = losses.cpu().numpy()
        scores = table.scores()
        return [
            TrainingResult(difference, *scores[client], state)
            for client, (difference, state) in sorted(ended.items(), key=lambda item: item[0])
        ]

    def _chunks(self, timeline: Timeline) -> Iterator[slice]:
        """Yield steps in a row whose batches have one size and whose images fit into memory."""
        edges = np.flatnonzero(np.diff(timeline.sizes)) + 1
        for first, stop in itertools.pairwise([0, *edges.tolist(), timeline.sizes.size]):
            images = self._module.slots * int(timeline.sizes[first])
            length = max(1, _CHUNK_BYTES // (images * self._samples.image_bytes))
            yield from (slice(start, min(start + length, stop)) for start in range(first, stop, length))

    def _targets(self, labels: Tensor, weights: Vector) -> Tensor:
        """Return minus the weight of each sample at its label, else 0; shape (..., classes)."""
        targets = torch.zeros((*labels.shape, self._classes), device=labels.device)
        return targets.scatter_(-1, labels.unsqueeze(-1), self._samples.sent(-weights).unsqueeze(-1))

    def _start(self, slot: int, job: TrainingJob, seed: int) -> None:
        self._models[slot] = self._samples.sent(job.base.copy())
        self._optimizer.start(slot, job.state)
        self._draws.seed(slot, seed)

    def _end(self, slot: int, job: TrainingJob) -> tuple[Vector, dict[str, Vector]]:
        """Return what a slot's client has learned, and the state of its optimiser."""
        difference = self._models[slot].cpu().numpy() - job.base
        difference.flags.writeable = False
        return difference, self._optimizer.state(slot) if self._local.keep_optimizer_state else {}

    def _step(self, images: Tensor, targets: Tensor, active: IntArray, waiting: Sequence[int]) -> Tensor:
        """Do a step of the active slots; return the log-probabilities of all, shape (slots, n, classes)."""
        self._draws.activate(active.tolist())
        size = images.shape[1]
        if size not in self._steps:
            self._steps[size], _ = self._module.step(self._pieces, images, targets, self._draws)
        gradient, found, *buffers = self._steps[size](*self._pieces, images, targets)
        changing = (self._models, *self._optimizer.changing) if waiting else ()
        kept = [rows[waiting] for rows in changing]
        self._optimizer.step(gradient, active)
        for piece, after in zip(self._buffers, buffers, strict=True):
            piece.copy_(after)
        for rows, before in zip(changing, kept, strict=True):
            rows[waiting] = before
        return found

    def _find_padding(self) -> int | None:
        """Return the size that all batches are filled up to, or None if the model must see them as they are."""
        slots, size, count = self._module.slots, self._local.batch_size, self._samples.count
        few, _ = self._samples.batch(np.arange(3) % count)
        if self._buffers or self._module.mixes_samples(few):
            padded_to = None
        else:
            padded_to = size = -(-size // _WIDTH) * _WIDTH
        images, labels = self._samples.batch(np.arange(slots * size).reshape(slots, size) % count)
        targets = self._targets(labels, np.zeros(labels.shape, dtype=np.float32))
        self._steps[size], draws = self._module.step(self._pieces, images, targets, self._draws)
        return None if draws else padded_to
