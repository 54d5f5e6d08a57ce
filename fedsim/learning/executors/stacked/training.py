"""Training of a cohort in slots: all steps of its clients, one after the other, each for all slots at once."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fedsim.arrays import FloatArray, IntArray, Vector, read_only
from fedsim.errors import FedsimError
from fedsim.learning.executors.batches import Batches, Samples
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.optimizers import Optimizer
from fedsim.learning.executors.spreading import unlike
from fedsim.learning.executors.stacked.step import ModelsOfSlots
from fedsim.learning.models.inputs import tensor
from fedsim.learning.models.settings import own_name

_CHUNK_BYTES: Final = 2**25
"""Memory of the images of steps gathered at once."""
_WIDTH: Final = 8
"""Batches are filled up to a multiple of this number of samples, so that activations of all slots are aligned alike."""
_IDLE: Final = -1
"""In place of a batch: the slot has none at that step."""


class SlotTraining:
    """Trains the models of several clients, one above the other.

    All batches are computed in one shape: idle slots and short batches are filled up, with weight 0. So a result has
    the same bits whatever clients are beside it. A model whose samples affect each other (batch normalisation) or that
    draws random numbers (dropout) gets every batch in its own size; slots whose next batch has another size wait.
    """

    def __init__(
        self, models: ModelsOfSlots, samples: Samples, setup: TrainingSetup, few: "SlotTraining | None" = None
    ) -> None:
        self._models, self._samples, self._setup, self._few = models, samples, setup, few
        self._optimizer = Optimizer(models.numbers[:, : models.count], setup, models.trained)
        self._checked = set[int]()
        self.padded_to: int | None = few.padded_to if few else self._find_padding()

    def train(self, jobs: Sequence[TrainingJob], batches: Sequence[Batches]) -> list[TrainingResult]:
        """Return what each client learns; clients with about as many batches are trained together."""
        slots, found = self._models.slots, dict[int, TrainingResult]()
        order = sorted(range(len(jobs)), key=lambda client: -batches[client].sizes.size)
        for first in range(0, len(order), slots):
            chosen = order[first : first + slots]
            results = self._together([jobs[one] for one in chosen], [batches[one] for one in chosen])
            found.update(zip(chosen, results, strict=True))
        return [found[client] for client in range(len(jobs))]

    def _together(self, jobs: Sequence[TrainingJob], batches: Sequence[Batches]) -> list[TrainingResult]:
        models, slots, padded_to = self._models, range(len(jobs)), self.padded_to
        table = _Batches(batches, padded_to or self._setup.local.batch_size)
        which, sizes = table.timeline(models.slots, padded_to)
        unlikes, places = unlike(jobs)
        bases = list(map(tensor, unlikes))
        for slot, place in enumerate(places):
            models.numbers[slot] = bases[place]
        self._optimizer.start(slots, [job.state for job in jobs], [job.offset for job in jobs])
        if padded_to is None:
            models.draws.begin([one.seed for one in batches])
        rates, last = _rates(jobs), which[:, slots].argmax(0)
        ending = {step: np.flatnonzero(last == step).tolist() for step in set(last.tolist())}
        ended = dict[int, tuple[Vector, dict[str, Vector]]]()
        for steps in self._chunks(sizes):
            size, shown = int(sizes[steps.start]), which[steps]
            images, labels = self._samples.batch(tensor(table.rows[shown, :size]))
            weights, targets = self._targets(labels, table.weights[shown, :size])
            found = []
            for step, *batch in zip(range(steps.start, steps.stop), images, weights, targets, strict=True):
                now, waiting = which[step], list[int]()
                if padded_to is None:
                    models.draws.active = np.flatnonzero(now != _IDLE).tolist()
                    waiting = np.flatnonzero((now[slots] == _IDLE) & (last > step)).tolist()
                stepped, count = models.step(*batch), len(models.trained)
                one, *buffers = stepped[count:]
                self._optimizer.step_of_arrays(stepped[:count], waiting, None if rates is None else rates[now])
                for piece, after in zip(models.buffers, buffers, strict=True):
                    piece[models.draws.active] = after[models.draws.active]
                found.append(one)
                if step in ending:
                    ended.update(self._ended(ending[step], jobs))
            losses = torch.stack(found)
            if models.is_softmax:
                losses = losses.gather(3, labels.unsqueeze(3)).squeeze(3).neg_()
            table.losses[shown, :size] = losses.numpy()
        scores = table.scores()
        return [TrainingResult(ended[slot][0], *scores[slot], ended[slot][1]) for slot in slots]

    def _ended(
        self, slots: Sequence[int], jobs: Sequence[TrainingJob]
    ) -> Iterator[tuple[int, tuple[Vector, dict[str, Vector]]]]:
        """Yield slots with what their clients have learned, and the states of their optimisers."""
        for slot in slots:
            difference = read_only(self._models.numbers[slot].numpy() - jobs[slot].base)
            yield slot, (difference, self._optimizer.state(slot) if self._setup.local.keep_optimizer_state else {})

    def _chunks(self, sizes: IntArray) -> Iterator[slice]:
        """Yield steps in a row whose batches have one size and whose images fit into memory."""
        edges = np.flatnonzero(np.diff(sizes)) + 1
        for first, stop in itertools.pairwise([0, *edges.tolist(), sizes.size]):
            images = self._models.slots * int(sizes[first])
            length = max(1, _CHUNK_BYTES // (images * self._samples.input_bytes))
            yield from (slice(start, min(start + length, stop)) for start in range(first, stop, length))

    def _targets(self, labels: Tensor, weights: Vector) -> tuple[Tensor, Tensor]:
        """Return weight and target of each sample, as `ModelsOfSlots.step` takes them."""
        sent = tensor(weights)
        if not self._models.is_softmax:
            return sent, labels
        sent = sent.unsqueeze(-1)
        targets = torch.zeros((*labels.shape, self._setup.outputs))
        return sent, targets.scatter_(-1, labels.unsqueeze(-1), -sent)

    def _find_padding(self) -> int | None:
        """Return the size that all batches are filled up to, or None if the model needs them in their own size."""
        padded = -(-self._setup.local.batch_size // _WIDTH) * _WIDTH
        images, targets = self._samples.batch(tensor(np.linspace(0, self._samples.count - 1, padded).astype(np.int64)))
        sizes = own_name(self._setup.model) is not None and not self._models.buffers
        mixes, scores = self._models.mixes(images, sizes=sizes)
        spread = slice(None, None, padded // _WIDTH)
        if self._models.objective.mixes_samples(scores[spread], targets[spread]):
            raise FedsimError(
                f"learning.task: losses of {type(self._setup.task).__name__} depend on the other samples of a batch, "
                "which the executor 'stacked' fills up; allowed: the executors 'sequential' and 'processes'"
            )
        if self._models.buffers or mixes:
            self._record(self._setup.local.batch_size)
            return None
        return None if self._record(padded) else padded

    def _record(self, size: int) -> bool:
        """Record a step on batches of a size; return whether it draws at random."""
        return self._models.record(*self._example(size, self._models.slots))

    def is_sound(self, sizes: set[int]) -> bool:
        """Return whether steps on batches of some sizes have the bits that they have in few slots.

        Refuse a step that has other bits in another place among few.
        """
        few, sizes = self._few, ({self.padded_to} if self.padded_to else sizes) - self._checked
        if few is not None:
            few.is_sound(sizes)
        different = few._models.slots if few is not None else 1
        for size in sorted(sizes):
            if size not in self._models.steps:
                self._record(size)
            here = self._bits(size, different)
            there = few._bits(size, different) if few is not None else here[:1]
            if torch.equal(here, there.expand_as(here)):
                self._checked.add(size)
            elif few is not None:
                return False
            else:
                raise FedsimError(
                    f"learning.model: a step on {size} samples has other bits in another place of the executor "
                    "'stacked'; allowed: the executors 'sequential' and 'processes'"
                )
        return True

    def _bits(self, size: int, different: int) -> Tensor:
        """Return the bits of a step on as many different samples and models over and over, shape (m, different, n)."""
        models = self._models
        numbers = 0.1 * torch.randn((different, models.numbers.shape[1]), generator=torch.Generator().manual_seed(0))
        models.numbers.copy_(numbers.repeat(models.slots // different, 1))
        models.draws.begin([slot % different for slot in range(models.slots)])
        found = models.step(*self._example(size, different))
        bits = torch.cat([one.float().reshape(models.slots, -1) for one in found], dim=1).view(torch.int32)
        return bits.view(-1, different, bits.shape[1])

    def _example(self, size: int, different: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return images, weights and targets of a batch for each slot, as many different ones as asked for."""
        slot = np.arange(self._models.slots) % different
        rows = (slot[:, None] * size + np.arange(size)) % self._samples.count
        images, labels = self._samples.batch(tensor(rows))
        return images, *self._targets(labels, np.full(rows.shape, 1 / size, dtype=np.float32))


class _Batches:
    """All batches of some clients, one row each, and a last row for slots that have none."""

    def __init__(self, clients: Sequence[Batches], width: int) -> None:
        sizes = np.concatenate([one.sizes for one in clients])
        self._first = np.cumsum([0, *(one.sizes.size for one in clients)])
        self._sizes, self._first_pass = sizes, [one.first_pass for one in clients]
        # A batch is filled up with its last sample.
        places = (np.cumsum(sizes) - sizes)[:, None] + np.minimum(np.arange(width), sizes[:, None] - 1)
        self.rows = np.concatenate([one.rows for one in clients])[np.concatenate([places, places[:1]])]
        self._real = np.arange(width) < sizes[:, None]
        self.weights = np.zeros(self.rows.shape, dtype=np.float32)
        np.divide(self._real, sizes[:, None], out=self.weights[:-1], casting="unsafe")
        self.losses = np.zeros(self.rows.shape, dtype=np.float32)

    def timeline(self, slots: int, padded_to: int | None) -> tuple[IntArray, IntArray]:
        """Return which batch each slot has at each step, shape (steps, slots), and the size of a step's batches.

        Of several sizes the one that most slots have next comes first, and of those the largest.
        """
        following, ends = self._first[:-1].copy(), self._first[1:]
        if padded_to is not None:
            number = following + np.arange((ends - following).max())[:, None]
            which = np.full((len(number), slots), _IDLE)
            which[:, : ends.size] = np.where(number < ends, number, _IDLE)
            return which, np.full(len(number), padded_to)
        steps, shown = [], []
        while (left := np.flatnonzero(following < ends)).size:
            sizes, count = np.unique(self._sizes[following[left]], return_counts=True)
            shown.append(sizes[count == count.max()].max())
            chosen = left[self._sizes[following[left]] == shown[-1]]
            steps.append(np.full(slots, _IDLE))
            steps[-1][chosen] = following[chosen]
            following[chosen] += 1
        return np.array(steps), np.array(shown)

    def scores(self) -> list[tuple[float, float]]:
        """Return mean loss and `loss_rms` of each client."""
        losses = np.where(self._real, self.losses[:-1], 0.0).astype(np.float64)
        begins = self._first[:-1]
        means = np.add.reduceat(losses.sum(1), begins) / np.add.reduceat(self._sizes, begins)
        number = np.arange(len(losses)) - np.repeat(begins, np.diff(self._first))
        early = number < np.repeat(self._first_pass, np.diff(self._first))
        squares = np.add.reduceat(np.square(losses).sum(1) * early, begins)
        roots = np.sqrt(squares / np.add.reduceat(self._sizes * early, begins))
        return list(zip(means.tolist(), roots.tolist(), strict=True))


def _rates(jobs: Sequence[TrainingJob]) -> FloatArray | None:
    """Return the learning rate of each batch of all clients, 0 without a batch; None for that of the settings."""
    found = [job.rates for job in jobs if job.rates is not None]
    return np.concatenate([*found, np.zeros(1)]) if found else None
