"""What a training lowers on a batch: the loss of a task, or that of a local algorithm; and the metrics of a task."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.arrays import Vector
from fedsim.code_digest import is_builtin
from fedsim.learning.algorithms.contracts import ALGORITHM, Batch
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.own_code import sandbox_of
from fedsim.learning.models.flat_module import FlatModule, build_flat
from fedsim.learning.models.pooling import pool_before_relu
from fedsim.learning.tasks.contracts import TASK
from fedsim.learning.tasks.of_labels import Accuracy, Classification

Seen = tuple[Tensor, ...]
"""What the losses of a batch's samples are made of."""

_LAYERS: Final = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Objective:
    def __init__(self, setup: TrainingSetup) -> None:
        self._task = TASK.checked(setup.task)
        self._metrics = setup.scores.metrics
        self.is_softmax = type(setup.task) is Classification
        self.is_short = self.is_softmax and [type(one) for one in setup.task.metrics] == [Accuracy]
        self._is_own = not is_builtin(type(setup.task))

    def mean(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Seen]:
        """Return the mean loss of a batch, and what `of_samples` needs of it.

        Cross-entropy is computed in the two steps of torch's own function, bit by bit, since the first one is needed.
        """
        if not self.is_softmax:
            losses = self.losses(scores, targets)
            return losses.mean(), (losses.detach(),)
        log_probabilities = functional.log_softmax(scores, dim=1)
        return functional.nll_loss(log_probabilities, targets), (log_probabilities.detach(), targets)

    def of_samples(self, seen: Sequence[Seen]) -> Tensor:
        """Return the loss of each sample of some batches, shape (n,)."""
        parts = [torch.cat(one) for one in zip(*seen, strict=True)]
        return functional.nll_loss(parts[0], parts[1], reduction="none") if self.is_softmax else parts[0]

    def losses(self, scores: Tensor, targets: Tensor) -> Tensor:
        found: Tensor = self._task.losses(scores, targets)
        return found

    def mixes_samples(self, scores: Tensor, targets: Tensor) -> bool:
        """Return whether the losses of some samples depend on the others of a batch, or on their number.

        No task of fedsim's does, so these are not tried.
        """
        if not self._is_own:
            return False
        half, found = len(scores) // 2, self.losses(scores, targets)
        own, right = scores[:half], targets[:half]
        other = self.losses(torch.cat([own, own.flip(0)]), torch.cat([right, right.roll(1, 0)]))[:half]
        same = torch.allclose(found[:half], other, rtol=0.0, atol=0.0, equal_nan=True)
        fewer = (self.losses(scores[:size], targets[:size]) for size in range(1, len(scores)))
        return not (same and all(torch.allclose(found[: len(one)], one, 1e-4, 1e-6, equal_nan=True) for one in fewer))

    def widths(self, scores: Tensor, targets: Tensor, outputs: int) -> dict[str, tuple[int, int]]:
        """Return how many sums each metric gives for a sample, and how many it declares, by its name."""
        return {one.name: (int(one.sums(scores, targets).shape[1]), one.width(outputs)) for one in self._metrics}

    def sums(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return loss and sums of the metrics of each sample, shape (n, `Scores.width`)."""
        own = self.losses(scores, targets)[:, None]
        return torch.cat([own, *(one.sums(scores, targets) for one in self._metrics)], dim=1)


class OwnLoss:
    """Gives the loss of a local algorithm that has one of its own scores, labels and representations."""

    def __init__(self, setup: TrainingSetup, flat: FlatModule) -> None:
        self._algorithm = ALGORITHM.checked(setup.algorithm)
        self._trained = _Representation(flat)
        data = setup.data
        self._other = build_flat(setup.model, data.shape, setup.outputs, setup.seed, channels_last=True)
        pool_before_relu(self._other.module)
        self._other.module.eval()
        self._alone = sandbox_of(setup, self._other) or nullcontext()
        self._compared = _Representation(self._other)
        self.anchors: Mapping[str, Vector] = {}
        """Models of the present training to compare with."""

    def __call__(self, data: Tensor, scores: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch whose images have just passed the module that is trained."""
        anchors = {}
        for name, vector in self.anchors.items():
            self._other.load(vector)
            with self._alone, torch.no_grad():
                self._other.module(images)
            anchors[name] = self._compared.taken()
        found: Tensor = self._algorithm.loss(Batch(data, scores, labels, self._trained.taken(), anchors))
        return found


class _Representation:
    """The input of the dense or convolutional layer that is executed last, in the module's last pass."""

    def __init__(self, flat: FlatModule) -> None:
        self._found: Tensor | None = None
        if (layer := _last_layer(flat)) is not None:
            keep: Callable[..., None] = self._keep
            layer.register_forward_pre_hook(keep)

    def taken(self) -> Tensor | None:
        """Return it, shape (n, features), and let go of it; None for a module without such a layer."""
        found, self._found = self._found, None
        return None if found is None else found.flatten(1).float()

    def _keep(self, _module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._found = inputs[0]


def _last_layer(flat: FlatModule) -> nn.Module | None:
    """Return the layer around the array that is executed last; an array may belong to a part of its layer."""
    for place in reversed(flat.layout.executed or [entry.name for entry in flat.layout.entries]):
        while place := place.rpartition(".")[0]:
            if isinstance(part := flat.module.get_submodule(place), _LAYERS):
                return part
    return None
