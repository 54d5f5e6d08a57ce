"""One client's training, and the scores of a model, on one thread: the arithmetic that has one set of bits."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.arrays import FloatArray, Vector, read_only
from fedsim.errors import PartError
from fedsim.learning.executors.batches import Batches, Drawing
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import StateError, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.objective import Objective, OwnLoss, Seen
from fedsim.learning.executors.optimizers import Optimizer, in_order
from fedsim.learning.executors.own_code import named_faults, sandbox_of
from fedsim.learning.generators import ONE_AT_A_TIME, kept_generators, seed_generators, torch_generator
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.pooling import pool_before_relu
from fedsim.learning.models.settings import own_name
from fedsim.learning.tasks.contracts import TASK
from fedsim.learning.torch_modes import fast_modes

_OF_BATCHES: Final = 0x5DEECE66D
"""Makes the seed of made batches of that of dropout."""


class Trainer:
    """Trains and scores with one module, whose numbers each call loads anew.

    A result depends on the call alone. All calls are made within `turn`.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        data, self.setup, self.device = setup.data, setup, torch.device(device)
        self._data, self._keeps = data, setup.local.keep_optimizer_state
        self._inputs = Inputs(data, self.device)
        last = self.device.type == "cpu"
        self.flat = build_flat(
            setup.model, data.shape, setup.outputs, setup.seed, channels_last=last, device=self.device
        )
        pool_before_relu(self.flat.module)
        self.sandbox = sandbox_of(setup, self.flat)
        self._own_loss = OwnLoss(setup, self.flat) if setup.algorithm.has_loss else None
        self._objective, self._task = Objective(setup), TASK.checked(setup.task)
        self._optimizer = Optimizer(self.flat.parameters.data[None], setup)
        self._gradient = self.flat.gradient[None]
        self.drawing = Drawing(setup.local, self.flat.layout.smallest_batch)
        self.set_rate = self._optimizer.set_rate
        self._loaded: Vector | None = None
        self._missed: Counter[int] = Counter()
        """In how many steps of the present training parameters had no gradient, by their places."""
        self.then: Callable[[], None] | None = None
        """Called after each training."""
        self._makes_batches, self._draws = self._task.makes_batches, torch.Generator()
        self.forward = self._forward if setup.precision == "float32" else self._forward_in_bfloat16

    def compute(self, job: Any, place: int | None = None, *, seeds: bool = True) -> Any:
        """Return a training's result or the sums of a chunk; an error names the user's part and the job's place."""
        is_training = isinstance(job, TrainingJob)
        with named_faults(self.setup, place if is_training else None):
            found = self.train(job, seeds=seeds) if is_training else self.score(job)
            if is_training and self.then is not None:
                self.then()
            return found

    def computed(self, jobs: Sequence[Any], first: int = 0) -> list[Any]:
        """Return the results of jobs in one turn; that of the first of them has this place."""
        with self.turn():
            return [self.compute(job, place) for place, job in enumerate(jobs, first)]

    def train(self, job: TrainingJob, *, seeds: bool = True) -> TrainingResult:
        """Return what a client learns; without ``seeds`` generators are left alone, which threads share."""
        batches = self.drawing.batches(job)
        if self._makes_batches:
            # Draws of their own, so that those of dropout stay what they are.
            self._draws.manual_seed(batches.seed ^ _OF_BATCHES)
        self.start(job)
        losses, seen = list[tuple[float, int]](), list[Seen]()
        rates = () if job.rates is None else job.rates.tolist()
        with self._alone(batches.seed if seeds else None):
            for images, labels in self._shown(batches):
                if rates:
                    self.set_rate(rates[len(losses)])
                loss, kept = self.step(images, labels)
                losses.append((loss.item(), len(labels)))
                if len(seen) < batches.first_pass:
                    seen.append(kept)
        return self.result(job, losses, seen)

    def score(self, chunk: Chunk) -> FloatArray:
        """Return the sums of a chunk's model, shape (m,), or of each of its samples, shape (n, m)."""
        if self.sandbox is not None or self._loaded is not chunk.base:
            self.flat.load(chunk.base)
            self.flat.module.eval()
            self._loaded = chunk.base
        if self.sandbox is None:
            return self._sums(chunk)
        with self._alone(chunk.start):
            return self._sums(chunk)

    def _alone(self, seed: int | None) -> AbstractContextManager[None]:
        """Let what is computed inside depend on the module's numbers and the seed alone."""
        if seed is not None:
            seed_generators(seed, every=self.sandbox is not None)
        return self.sandbox or contextlib.nullcontext()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Compute on one thread, and put the process's generators back; one caller of this process at a time."""
        with one_thread(self.setup), kept_generators(every=self.sandbox is not None):
            yield

    def draws(self) -> bool:
        """Return whether a pass through torch's own layers draws random numbers."""
        inputs = self._inputs.of(torch.from_numpy(self._data.train_x[:2].copy()).to(self.device))
        with one_thread(self.setup), torch_generator(0), torch.no_grad():
            before = torch.default_generator.get_state()
            self.flat.module.train()
            self.forward(inputs)
            drawn = not torch.equal(torch.default_generator.get_state(), before)
        self.flat.load(self.flat.layout.initial)
        return drawn

    def _sums(self, chunk: Chunk) -> FloatArray:
        images, labels = self._samples(chunk)
        with torch.no_grad() if self.sandbox is not None else torch.inference_mode():
            scores = self.forward(images)
            if chunk.each:
                return np.asarray(self._objective.sums(scores, labels).double().cpu().numpy())
            if self._objective.is_short:
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                return np.array([float(loss), float((scores.argmax(1) == labels).sum())])
            return np.asarray(self._objective.sums(scores, labels).double().sum(0).cpu().numpy())

    def start(self, job: TrainingJob) -> None:
        """Take over all that a job brings but its samples."""
        self.flat.load(job.base)
        self.flat.module.train()
        if self._own_loss is not None:
            self._own_loss.anchors = job.anchors
        self._loaded = None
        self._missed.clear()
        state = in_order(job.state, self.flat.layout.parameters, self.flat.inward)
        self._optimizer.start([0], [state], [None if job.offset is None else self.flat.inward(job.offset)])

    def step(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Seen]:
        """Do a step on a batch; return its mean loss, and what the losses of its samples are made of."""
        self._gradient.zero_()
        scores = self.forward(images)
        loss, kept = self._objective.mean(scores, labels)
        own = self._own_loss
        torch.autograd.backward(loss if own is None else own(loss, scores, images, labels))
        still = [] if self.sandbox is None else self.flat.settle()
        self._missed.update(place.start for place in still)
        self._optimizer.step(self._gradient, still=still)
        return loss, kept

    def result(self, job: TrainingJob, losses: Sequence[tuple[float, int]], seen: Sequence[Seen]) -> TrainingResult:
        """Return what the module has learned, with the losses of its batches and those of its first pass."""
        if self._missed and self.setup.local.optimizer == "adam":
            self._check_gradients(len(losses))
        total, passed = 0.0, 0
        for loss, count in losses:
            total += loss * count
            passed += count
        loss_rms = float(self._objective.of_samples(seen).double().square().mean().sqrt())
        difference = self.flat.numbers()
        difference -= job.base
        state = self._optimizer.state() if self._keeps else {}
        state = in_order(state, self.flat.layout.parameters, self.flat.outward)
        return TrainingResult(read_only(difference), total / passed, loss_rms, state)

    def _check_gradients(self, steps: int) -> None:
        """Refuse parameters without a gradient in some steps, where the optimiser counts the steps of each."""
        for entry in self.flat.layout.entries:
            if 0 < self._missed[entry.offset] < steps:
                raise StateError(
                    f"model {own_name(self.setup.model)}: {entry.name} has no gradient in some batches",
                    "allowed with the optimizer 'adam': parameters with a gradient in every batch, or in none",
                )

    def _forward(self, images: Tensor) -> Tensor:
        """Return float32 scores, of a module that computes them in another type too: losses are sums over samples."""
        scores = self.flat.module(images)
        if not isinstance(scores, Tensor):
            model = own_name(self.setup.model)
            raise PartError(f"model {model} gave {type(scores).__name__} in training", "allowed: a tensor of scores")
        return scores.float()

    def _forward_in_bfloat16(self, images: Tensor) -> Tensor:
        """Return them of convolutions and dense layers that compute, as their gradients, in bfloat16."""
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            return self._forward(images)

    def _shown(self, planned: Batches) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and targets of each batch; an epoch's inputs are gathered and computed at once."""
        sizes, used = planned.sizes.tolist(), 0
        for start in range(0, len(sizes), planned.first_pass):
            own = sizes[start : start + planned.first_pass]
            rows = planned.rows[used : used + sum(own)]
            used += rows.size
            inputs = self._inputs.of(torch.from_numpy(self._data.train_x[rows]).to(self.device))
            labels = torch.from_numpy(self._data.train_y[rows]).to(self.device)
            batches = zip(torch.split(inputs, own), torch.split(labels, own), strict=True)
            yield from (self._task.batch(*batch, self._draws) for batch in batches) if self._makes_batches else batches

    def _samples(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        data = self._data
        if chunk.rows is None:
            place = slice(chunk.start, chunk.stop)
            samples, labels = data.test_x[place].copy(), data.test_y[place].copy()
        else:
            samples, labels = data.taken(chunk.rows)
        images = torch.from_numpy(samples).to(self.device)
        return self._inputs.of(images), torch.from_numpy(labels).to(self.device)


@contextlib.contextmanager
def one_thread(setup: TrainingSetup) -> Iterator[None]:
    """Let torch compute on one thread, and by its fastest kernels if bits may differ; one caller at a time.

    The number of threads belongs to the whole process, so that a concurrent caller that sets it back would change sums.
    """
    with ONE_AT_A_TIME:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with fast_modes() if setup.fast else contextlib.nullcontext():
                yield
        finally:
            torch.set_num_threads(before)
