"""The executor "one at a time": trains one client after the other in this process."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsim.learning.contracts import Evaluation
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.lineage.handles import TrainingResult, TrainingTask
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.flat_module import FlatModule
from fedsim.learning.models.settings import ModelPart

# Small enough for a chunk's activations to stay in the cache of one core.
_CHUNK = 200

T = TypeVar("T")


class SequentialExecutor:
    """Trains clients one after the other, on one thread, bitwise the same on every run.

    Parameters
    ----------
    model : settings of the model
    data : Dataset
    local : LocalTraining
    seed : int in [0, 2**63)
        Of the initial weights, which torch draws by its default rules.

    Attributes
    ----------
    flat : FlatModule
    initial : float32 vector, the model of version 0
    """

    def __init__(self, model: ModelPart, data: Dataset, local: LocalTraining, seed: int) -> None:
        self._data, self._local = data, local
        self._test_x, self._test_y = (torch.from_numpy(part.copy()) for part in (data.test_x, data.test_y))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.flat = FlatModule(model.build(data.shape, data.classes))
        self.initial = self.flat.vector.numpy().copy()
        self.initial.flags.writeable = False
        self._optimizer = _optimizer(self.flat.parameters, local)

    @property
    def smallest_batch(self) -> int:
        """Fewest samples a batch must have: 2 with batch normalisation, else 1."""
        return 2 if self.flat.has_batch_norm else 1

    @property
    def exempt_mask(self) -> NDArray[np.bool_]:
        """Coordinates that a privacy mechanism may let pass in clear: batch normalisation and buffers."""
        return self.flat.exempt_mask

    @property
    def parameters(self) -> int:
        """How many coordinates of a model, the first ones, are parameters; the others are buffers."""
        return self.flat.parameters.numel()

    def train(self, tasks: Sequence[TrainingTask]) -> list[TrainingResult]:
        """Return what each client learns; results depend on their own task alone.

        The luck of a task comes from its own generator: first the seed of torch's draws (dropout), then one
        permutation of the samples per epoch.
        """
        with _one_thread():
            return [self._train(task) for task in tasks]

    def evaluate(self, vector: NDArray[np.float32]) -> Evaluation:
        """Return accuracy and mean loss on the whole test set.

        Chunks are of a fixed size and each is computed on one thread, so that the result does not depend on
        how many threads share them.
        """
        scores = self._scores(vector, self._test_chunk, range(0, len(self._data.test_y), _CHUNK))
        right, loss = np.sum(scores, axis=0) / len(self._data.test_y)
        return Evaluation(accuracy=float(right), loss=float(loss))

    def score(self, vector: NDArray[np.float32], rows: Sequence[NDArray[np.int64]]) -> list[Evaluation]:
        """Return how good a model is on each of several parts of the training set.

        Each part is passed in chunks of its own, so that its numbers do not depend on the other parts.
        """
        chunks = [part[start : start + _CHUNK] for part in rows for start in range(0, part.size, _CHUNK)]
        owner = np.repeat(np.arange(len(rows)), [-(-part.size // _CHUNK) for part in rows])
        totals = np.zeros((len(rows), 2))
        np.add.at(totals, owner, self._scores(vector, self._training_chunk, chunks))
        return [
            Evaluation(accuracy=right / part.size, loss=loss / part.size)
            for (right, loss), part in zip(totals.tolist(), rows, strict=True)
        ]

    def _train(self, task: TrainingTask) -> TrainingResult:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(task.rng.integers(2**63)))
            self.flat.load(task.base)
            self.flat.module.train()
            self._set_state(task.state)
            loss, loss_rms = self._run(task)
        difference = self.flat.vector.numpy() - task.base
        difference.flags.writeable = False
        return TrainingResult(difference, loss, loss_rms, self._get_state())

    def _run(self, task: TrainingTask) -> tuple[float, float]:
        """Do the task's batches; return the mean loss over the samples passed and the first pass's `loss_rms`."""
        module, step, gradient = self.flat.module, self._optimizer.step, self.flat.gradient
        weights, proximal = self.flat.parameters.data, self._local.proximal
        start = weights.clone() if proximal else weights
        first_pass = int(self._local.batches_per_epoch(task.rows.size, self.smallest_batch))
        total, passed = 0.0, 0
        seen: list[tuple[Tensor, Tensor]] = []
        for images, labels in self._batches(task):
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

    def _batches(self, task: TrainingTask) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield images and labels of each batch; an epoch's images are gathered and scaled at once."""
        size, count = self._local.batch_size, task.rows.size
        each = int(self._local.batches_per_epoch(count, self.smallest_batch))
        left = int(self._local.batches(count, task.work, self.smallest_batch))
        while left:
            now = min(each, left)
            rows = task.rows[task.rng.permutation(count)[: now * size]]
            images = _scaled(torch.from_numpy(self._data.train_x[rows]), self._data.pixel_max)
            labels = torch.from_numpy(self._data.train_y[rows])
            yield from zip(torch.split(images, size), torch.split(labels, size), strict=True)
            left -= now

    def _scores(
        self, vector: NDArray[np.float32], chunk: Callable[[T], tuple[Tensor, Tensor]], parts: Sequence[T]
    ) -> NDArray[np.float64]:
        """Return right answers and summed loss of a model on each part, shape (parts, 2)."""
        self.flat.load(vector)
        self.flat.module.eval()

        def score(part: T) -> tuple[float, float]:
            images, labels = chunk(part)
            with torch.inference_mode():
                scores = self.flat.module(_scaled(images, self._data.pixel_max))
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                return float((scores.argmax(1) == labels).sum()), float(loss)

        workers = min(torch.get_num_threads(), len(parts))
        with _one_thread():
            if workers <= 1:
                return np.array([score(part) for part in parts]).reshape(-1, 2)
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return np.array(list(pool.map(score, parts)))

    def _test_chunk(self, start: int) -> tuple[Tensor, Tensor]:
        return self._test_x[start : start + _CHUNK], self._test_y[start : start + _CHUNK]

    def _training_chunk(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self._data.train_x[rows]), torch.from_numpy(self._data.train_y[rows])

    def _set_state(self, state: Mapping[str, NDArray[np.float32]]) -> None:
        self._optimizer.state.clear()
        if state:
            self._optimizer.state[self.flat.parameters] = {
                name: torch.from_numpy(values.copy()) for name, values in state.items()
            }

    def _get_state(self) -> dict[str, NDArray[np.float32]]:
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
