"""The loss of a local algorithm that has one of its own, on one client's batches."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from fedsim.learning.algorithms.contracts import ALGORITHM, Batch
from fedsim.learning.executors.contracts import TrainingJob, TrainingSetup
from fedsim.learning.executors.own_code import sandbox_of
from fedsim.learning.models.flat_module import FlatModule, build_flat
from fedsim.learning.models.pooling import pool_before_relu

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class OwnLoss:
    """Gives the algorithm's loss scores, labels and representations."""

    def __init__(self, setup: TrainingSetup, flat: FlatModule) -> None:
        self._algorithm = ALGORITHM.checked(setup.algorithm)
        self._trained = _Representation(flat)
        data = setup.data
        self._other = build_flat(setup.model, data.shape, setup.outputs, setup.seed, channels_last=True)
        pool_before_relu(self._other.module)
        self._other.module.eval()
        self._alone = sandbox_of(setup, self._other) or nullcontext()
        self._compared = _Representation(self._other)
        self._job: TrainingJob | None = None

    def start(self, job: TrainingJob) -> None:
        self._job = job

    def __call__(self, data: Tensor, scores: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch whose images have just passed the module that is trained."""
        anchors = {}
        for name, vector in ({} if self._job is None else self._job.anchors).items():
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
        layers = list(_layers(flat))
        if layers:
            keep: Callable[..., None] = self._keep
            layers[-1].register_forward_pre_hook(keep)

    def taken(self) -> Tensor | None:
        """Return it, shape (n, features), and let go of it; None for a module without such a layer."""
        found, self._found = self._found, None
        return None if found is None else found.flatten(1).float()

    def _keep(self, _module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._found = inputs[0]


def _layers(flat: FlatModule) -> Iterator[nn.Module]:
    """Yield the layer of each array of a module, as they are executed; an array may belong to a part of its layer."""
    for name in flat.layout.executed or [entry.name for entry in flat.layout.entries]:
        place = name
        while place:
            place = place.rpartition(".")[0]
            if isinstance(part := flat.module.get_submodule(place), _LAYERS):
                yield part
