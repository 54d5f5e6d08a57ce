"""One client's training, and the scores of a model, on one thread: the arithmetic that has one set of bits."""

import contextlib
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.objective import Objective, Seen
from fedsim.learning.executors.optimizers import Optimizer, optimizer_of
from fedsim.learning.executors.own_loss import OwnLoss
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.pooling import pool_before_relu
from fedsim.learning.tasks.contracts import TASK

_TURN: Final = threading.RLock()
_OF_BATCHES: Final = 0x5DEECE66D
"""Makes the seed of made batches of that of dropout."""


class Trainer:
    """Trains and scores with one module, whose numbers each call loads anew.

    A result depends on the call alone. All calls are made within `one_thread`.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        data, self.setup = setup.data, setup
        self._data, self._local, self._inputs, self._pull = data, setup.local, Inputs(data), setup.pull
        self.flat = build_flat(setup.model, data.shape, setup.outputs, setup.seed, channels_last=True)
        pool_before_relu(self.flat.module)
        self._own_loss = OwnLoss(setup, self.flat) if setup.algorithm.has_loss else None
        self._objective, self._task = Objective(setup), TASK.checked(setup.task)
        self._makes_batches, self._draws = self._task.makes_batches, torch.Generator()
        self.forward = self.flat.module if setup.precision == "float32" else self._forward_in_bfloat16

    @cached_property
    def _optimizer(self) -> Optimizer:
        # Made by the first training, because with Adam torch then imports its compiler, which takes seconds.
        return optimizer_of(self._local, self.flat)

    def train(self, job: TrainingJob) -> TrainingResult:
        with torch.random.fork_rng(devices=[]):
            seed = int(job.rng.integers(2**63))
            torch.default_generator.manual_seed(seed)
            if self._makes_batches:
                # Draws of their own, so that those of dropout stay what they are.
                self._draws.manual_seed(seed ^ _OF_BATCHES)
            self.flat.load(job.base)
            self.flat.module.train()
            self._optimizer.start(job.state)
            loss, loss_rms = self._run(job)
        difference = self.flat.numbers()
        difference -= job.base
        difference.flags.writeable = False
        state = self._optimizer.state() if self._local.keep_optimizer_state else {}
        return TrainingResult(difference, loss, loss_rms, state)

    def load(self, model: Vector) -> None:
        """Load the model that `score` is about, shape (d,)."""
        self.flat.load(model)
        self.flat.module.eval()

    def score(self, chunk: Chunk) -> FloatArray:
        """Return the sums of the loaded model on a chunk, shape (m,), or of each of its samples, shape (n, m).

        Several threads may do so at once.
        """
        images, labels = self._samples(chunk)
        with torch.inference_mode():
            scores = self.forward(images)
            if chunk.each:
                return np.asarray(self._objective.sums(scores, labels).double().numpy())
            if self._objective.is_short:
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                return np.array([float(loss), float((scores.argmax(1) == labels).sum())])
            return np.asarray(self._objective.sums(scores, labels).double().sum(0).numpy())

    def _run(self, job: TrainingJob) -> tuple[float, float]:
        """Do the job's batches; return the mean loss over the samples passed and the first pass's `loss_rms`."""
        forward, step, gradient = self.forward, self._optimizer.step, self.flat.gradient
        weights, pull = self.flat.parameters.data, self._pull
        start = weights.clone() if pull else weights
        offset = None if job.offset is None else torch.from_numpy(self.flat.inward(job.offset))
        first_pass = int(self._local.batches_per_epoch(job.rows.size, self.flat.layout.smallest_batch))
        if (own := self._own_loss) is not None:
            own.start(job)
        total, passed = 0.0, 0
        seen: list[Seen] = []
        loss_of = self._objective.training
        decay, longest = self._local.weight_decay, self._local.clip_norm
        rates = () if job.rates is None else job.rates.tolist()
        for number, (images, labels) in enumerate(self._batches(job)):
            gradient.zero_()
            scores = forward(images)
            loss, kept = loss_of(scores, labels)
            torch.autograd.backward(loss if own is None else own(loss, scores, images, labels))
            if pull:
                gradient.add_(weights - start, alpha=pull)
            if offset is not None:
                gradient.add_(offset)
            if longest is not None:
                gradient.mul_((longest / gradient.norm()).clamp_max(1.0))
            if decay:
                gradient.add_(weights, alpha=decay)
            if rates:
                self._optimizer.set_rate(rates[number])
            step()
            total += loss.item() * len(labels)
            passed += len(labels)
            if len(seen) < first_pass:
                seen.append(kept)
        return total / passed, float(loss_of.losses(seen).double().square().mean().sqrt())

    def _forward_in_bfloat16(self, images: Tensor) -> Tensor:
        """Return float32 scores; convolutions, dense layers and their gradients compute in bfloat16."""
        with torch.autocast("cpu", torch.bfloat16):
            scores: Tensor = self.flat.module(images)
        return scores.float()

    def _batches(self, job: TrainingJob) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and targets of each batch; an epoch's inputs are gathered and computed at once."""
        size, count = self._local.batch_size, job.rows.size
        each = int(self._local.batches_per_epoch(count, self.flat.layout.smallest_batch))
        left = int(self._local.batches(count, job.work, self.flat.layout.smallest_batch))
        while left:
            now = min(each, left)
            rows = job.rows[job.rng.permutation(count)[: now * size]]
            inputs = self._inputs.of(torch.from_numpy(self._data.train_x[rows]))
            labels = torch.from_numpy(self._data.train_y[rows])
            batches = zip(torch.split(inputs, size), torch.split(labels, size), strict=True)
            yield from (self._made(*batch) for batch in batches) if self._makes_batches else batches
            left -= now

    def _made(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self._task.batch(inputs, targets, self._draws)
        return found

    def _samples(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        data = self._data
        if chunk.rows is None:
            place = slice(chunk.start, chunk.stop)
            samples, labels = data.test_x[place].copy(), data.test_y[place].copy()
        else:
            samples, labels = data.taken(chunk.rows)
        return self._inputs.of(torch.from_numpy(samples)), torch.from_numpy(labels)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread; one caller of this process at a time.

    The number of threads belongs to the whole process, so that a concurrent caller that sets it back would change sums.
    """
    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
