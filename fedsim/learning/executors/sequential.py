"""The executor "one at a time": trains one client after the other in this process."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.errors import FedsimError
from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import SEQUENTIAL, EvaluationJob, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.flat_module import build_flat

# Small enough for a chunk's activations to stay in the cache of one core.
_CHUNK: Final = 200

Chunk = tuple[Tensor, Tensor]
"""Images, uint8 of shape (n, h, w, c), and their labels, shape (n,)."""


class SequentialExecutor:
    """Trains clients one after the other, each on one thread, with the same bits on every run.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Attributes
    ----------
    fingerprint : `SEQUENTIAL`
    max_batch : 256, whose results take 26 MB with the 25,818 parameters of PAUSE's perceptron
    flat : the one module that all jobs share

    Raises
    ------
    FedsimError
        If another device or precision is asked for.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        if device != "cpu":
            raise FedsimError(f"device: {device!r} is not allowed with the executor 'sequential'; allowed: 'cpu'")
        if setup.precision != "float32":
            raise FedsimError(f"precision: {setup.precision!r} is not allowed with the executor 'sequential'")
        data = setup.data
        self._data, self._local = data, setup.local
        self._test_x, self._test_y = (torch.from_numpy(part.copy()) for part in (data.test_x, data.test_y))
        self.flat = build_flat(setup.model, data.shape, data.classes, setup.seed)
        self._optimizer = _optimizer(self.flat.parameters, setup.local)
        # Another module, because an evaluation may run in another thread while a training does.
        self._evaluated = build_flat(setup.model, data.shape, data.classes, setup.seed)

    def train(self, jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
        """Return what each client learns."""
        with _one_thread():
            return [self._train(job) for job in jobs]

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        """Return accuracy and mean loss of each job.

        Samples of a job are passed in chunks of a fixed size, each on one thread, so that a result depends neither on
        the other jobs nor on how many threads share the chunks.
        """
        found: list[Evaluation] = []
        for _, group in groupby(jobs, lambda job: id(job.model)):
            found += self._evaluate(list(group))
        return found

    def _evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        """Return the evaluations of jobs of one model."""
        sizes = [len(self._test_y) if job.rows is None else job.rows.size for job in jobs]
        chunks = [(job.rows, start) for job, size in zip(jobs, sizes, strict=True) for start in range(0, size, _CHUNK)]
        owner = np.repeat(np.arange(len(jobs)), [-(-size // _CHUNK) for size in sizes])
        totals = np.zeros((len(jobs), 2))
        np.add.at(totals, owner, self._scores(jobs[0].model, chunks))
        return [
            Evaluation(accuracy=right / size, loss=loss / size)
            for (right, loss), size in zip(totals.tolist(), sizes, strict=True)
        ]

    def _train(self, job: TrainingJob) -> TrainingResult:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(job.rng.integers(2**63)))
            self.flat.load(job.base)
            self.flat.module.train()
            self._set_state(job.state)
            loss, loss_rms = self._run(job)
        difference = self.flat.vector.numpy() - job.base
        difference.flags.writeable = False
        return TrainingResult(difference, loss, loss_rms, self._get_state())

    def _run(self, job: TrainingJob) -> tuple[float, float]:
        """Do the job's batches; return the mean loss over the samples passed and the first pass's `loss_rms`."""
        module, step, gradient = self.flat.module, self._optimizer.step, self.flat.gradient
        weights, proximal = self.flat.parameters.data, self._local.proximal
        start = weights.clone() if proximal else weights
        first_pass = int(self._local.batches_per_epoch(job.rows.size, self.flat.layout.smallest_batch))
        total, passed = 0.0, 0
        seen: list[tuple[Tensor, Tensor]] = []
        for images, labels in self._batches(job):
            gradient.zero_()
            # The two steps of functional.cross_entropy, bit by bit; the first is also what the squares are made of.
            log_probabilities = functional.log_softmax(module(images), dim=1)
            loss = functional.nll_loss(log_probabilities, labels)
            torch.autograd.backward(loss)
            if proximal:
                gradient.add_(weights - start, alpha=proximal)
            step()
            total += loss.item() * len(labels)
            passed += len(labels)
            if len(seen) < first_pass:
                seen.append((log_probabilities.detach(), labels))
        return total / passed, _loss_rms(seen)

    def _batches(self, job: TrainingJob) -> Iterator[Chunk]:
        """Yield images and labels of each batch; an epoch's images are gathered and scaled at once."""
        size, count = self._local.batch_size, job.rows.size
        each = int(self._local.batches_per_epoch(count, self.flat.layout.smallest_batch))
        left = int(self._local.batches(count, job.work, self.flat.layout.smallest_batch))
        while left:
            now = min(each, left)
            rows = job.rows[job.rng.permutation(count)[: now * size]]
            images = _scaled(torch.from_numpy(self._data.train_x[rows]), self._data.pixel_max)
            labels = torch.from_numpy(self._data.train_y[rows])
            yield from zip(torch.split(images, size), torch.split(labels, size), strict=True)
            left -= now

    def _scores(self, model: Vector, chunks: Sequence[tuple[IntArray | None, int]]) -> FloatArray:
        """Return right answers and summed loss of a model on each chunk, shape (chunks, 2)."""
        self._evaluated.load(model)
        self._evaluated.module.eval()

        def score(chunk: tuple[IntArray | None, int]) -> tuple[float, float]:
            images, labels = self._samples(*chunk)
            with torch.inference_mode():
                scores = self._evaluated.module(_scaled(images, self._data.pixel_max))
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                return float((scores.argmax(1) == labels).sum()), float(loss)

        workers = min(torch.get_num_threads(), len(chunks))
        with _one_thread():
            if workers <= 1:
                return np.array([score(chunk) for chunk in chunks]).reshape(-1, 2)
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return np.array(list(pool.map(score, chunks)))

    def _samples(self, rows: IntArray | None, start: int) -> Chunk:
        """Return a chunk of samples of the training set, or of the test set, from a place on."""
        if rows is None:
            return self._test_x[start : start + _CHUNK], self._test_y[start : start + _CHUNK]
        chosen = rows[start : start + _CHUNK]
        return torch.from_numpy(self._data.train_x[chosen]), torch.from_numpy(self._data.train_y[chosen])

    def _set_state(self, state: Mapping[str, Vector]) -> None:
        self._optimizer.state.clear()
        if state:
            self._optimizer.state[self.flat.parameters] = {
                name: torch.from_numpy(values.copy()) for name, values in state.items()
            }

    def _get_state(self) -> dict[str, Vector]:
        if not self._local.keep_optimizer_state:
            return {}
        state = self._optimizer.state[self.flat.parameters]
        return {name: value.numpy().copy() for name, value in state.items() if isinstance(value, Tensor)}


def _loss_rms(batches: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the root mean square of single samples' losses, from their classes' log-probabilities and labels."""
    log_probabilities, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
    losses = functional.nll_loss(log_probabilities, labels, reduction="none").double()
    return float(losses.square().mean().sqrt())


def _optimizer(parameters: torch.nn.Parameter, local: LocalTraining) -> torch.optim.Optimizer:
    # On one flat parameter the fused Adam is the fastest form, while SGD gains nothing from it.
    if local.optimizer == "adam":
        return torch.optim.Adam([parameters], lr=local.learning_rate, fused=True)
    return torch.optim.SGD([parameters], lr=local.learning_rate, momentum=local.momentum, foreach=False)


def _scaled(images: Tensor, pixel_max: int) -> Tensor:
    """Return uint8 images (n, h, w, c) as float32 in [-1, 1] of shape (n, c, h, w), channels last in memory.

    That is ``(pixel / pixel_max - 0.5) / 0.5``. With the channels last, torch convolves and pools about twice
    as fast on a CPU.
    """
    return torch.mul(images.contiguous(), 2.0 / pixel_max).sub_(1.0).permute(0, 3, 1, 2)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
