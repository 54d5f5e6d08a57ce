"""The training jobs of `updates_per_second.py`: data, models, and a plain PyTorch loop that does the same work.

The loop is what a reader of PyTorch's tutorials writes: `load_state_dict`, a fresh optimiser, `cross_entropy`,
`backward`, `step`, and a sum of state dictionaries; images are scaled and on the device before it starts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim import Component
from fedsim.arrays import IntArray
from fedsim.learning import CIFAR10, CNN3, MLP, Dataset, Digits, LocalTraining
from fedsim.learning.data.datasets import DatasetPart
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import ModelPart

TESTED = 100
"""Test samples that are kept: the jobs measure training."""

StateDict = dict[str, Tensor]


class Noise(Component):
    """Images and labels without meaning, of a stated shape."""

    samples: int
    height: int = 32
    channels: int = 3

    def load(self, data_dir: Path | None = None) -> Dataset:
        rng = np.random.default_rng(0)
        shape = self.height, self.height, self.channels
        train, test = (rng.integers(0, 256, (n, *shape), dtype=np.uint8) for n in (self.samples, TESTED))
        return Dataset(train, rng.integers(0, 10, self.samples), test, rng.integers(0, 10, TESTED), 10, 255)


class Shortened(Component):
    """Digits or CIFAR-10 with few test samples; noise of its shape where CIFAR-10 is not found."""

    of: str

    def load(self, data_dir: Path | None = None) -> Dataset:
        if self.found(data_dir):
            data = (Digits() if self.of == "digits" else CIFAR10()).load(data_dir)
            chosen = np.random.default_rng(0).permutation(len(data.test_y))[:TESTED]
            return Dataset(
                data.train_x, data.train_y, data.test_x[chosen], data.test_y[chosen], data.classes, data.pixel_max
            )
        return Noise(samples=50_000).load()

    def found(self, data_dir: Path | None) -> bool:
        return self.of == "digits" or CIFAR10().available(data_dir)


class SmallCNN(Component):
    """Convolutions 3 x 3 (each: ReLU, then 2 x 2 max-pooling) and dense layers with ReLU."""

    convolutions: tuple[int, ...]
    dense: tuple[int, ...]

    def build(self, shape: Shape, classes: int) -> nn.Module:
        channels, side = shape[0], shape[1]
        layers: list[nn.Module] = []
        for filters in self.convolutions:
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            channels, side = filters, side // 2
        layers.append(nn.Flatten())
        inputs = channels * side * side
        for outputs in self.dense:
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            inputs = outputs
        return nn.Sequential(*layers, nn.Linear(inputs, classes))


class ResNet18(Component):
    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torchvision.models import resnet18

        module: nn.Module = resnet18(num_classes=classes)
        return module


def plain_mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def plain_cnn3() -> nn.Module:
    """Return the model of J4, its layers in the order of the PAUSE code."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(outputs)]
    layers.append(nn.Flatten())
    for inputs, outputs in ((512, 128), (128, 64), (64, 32)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.BatchNorm1d(outputs)]
    return nn.Sequential(*layers, nn.Linear(32, 10))


@dataclass(frozen=True)
class Job:
    """A training job; `lines` are by device and precision the ratio to the plain loop that passes, and the goal.

    Executors do `longer` times as many rounds as the loop: what a run costs once is of no update.
    """

    what: str
    clients: int
    cohort: int
    rounds: int
    data: DatasetPart
    model: ModelPart
    local: LocalTraining
    lines: dict[tuple[str, str], tuple[float | None, float | None]]
    plain: Callable[[], nn.Module] | None = None
    longer: int = 1


JOBS = {
    "J1": Job(
        "1000 clients x 50 samples 3x32x32, cohort 50, batch 10, CNN 32-64-64-128",
        *(1000, 50, 1),
        Noise(samples=50_000),
        SmallCNN(convolutions=(32, 64, 64), dense=(128,)),
        LocalTraining(learning_rate=0.01, batch_size=10),
        {("cpu", "float32"): (1.9, 3.0), ("cpu", "bfloat16"): (2.8, 3.0), ("cuda", "float32"): (25.0, None)},
    ),
    "J2": Job(
        "digits, 100 clients, cohort 20, batch 7, five epochs, MLP 64-32",
        *(100, 20, 30),
        Shortened(of="digits"),
        MLP(hidden=(64, 32)),
        LocalTraining(learning_rate=0.05, batch_size=7, epochs=5),
        {("cpu", "float32"): (10.0, 25.0), ("cuda", "float32"): (80.0, None)},
        plain_mlp,
        10,
    ),
    "J3": Job(
        "30 clients x 2000 samples 1x28x28, cohort 5, batch 50, CNN 8-16-16-32-32",
        *(30, 5, 1),
        Noise(samples=60_000, height=28, channels=1),
        SmallCNN(convolutions=(8, 16, 16), dense=(32, 32)),
        LocalTraining(learning_rate=0.05, batch_size=50),
        {("cpu", "float32"): (1.7, 3.0), ("cpu", "bfloat16"): (None, 3.0), ("cuda", "float32"): (7.0, None)},
    ),
    "J4": Job(
        "CIFAR-10, 30 clients, cohort 5, batch 20, Adam whose state is kept, cnn3 with batch normalisation",
        *(30, 5, 1),
        Shortened(of="cifar-10"),
        CNN3(),
        LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=20, max_batches=100, keep_optimizer_state=True),
        {("cpu", "float32"): (2.0, None), ("cuda", "float32"): (12.0, None)},
        plain_cnn3,
    ),
    "R18": Job(
        "CIFAR-10, 3500 clients, cohort 20, batch 10, ResNet-18 (FedSUV, Table 1)",
        *(3500, 20, 1),
        Shortened(of="cifar-10"),
        ResNet18(),
        LocalTraining(learning_rate=0.01, batch_size=10),
        {("cuda", "float32"): (12.0, None)},
    ),
}


class PlainLoop:
    """The same work as a plain eager PyTorch loop, one client after the other, with torch's default threads."""

    def __init__(self, job: Job, data: Dataset, rows: Sequence[IntArray], device: str) -> None:
        torch.manual_seed(0)
        self._job, self._rows, self._device = job, [torch.from_numpy(part).to(device) for part in rows], device
        self._module = (job.plain or (lambda: job.model.build(data.shape, data.classes)))().to(device)
        scaled = torch.from_numpy(data.train_x.copy()).permute(0, 3, 1, 2).float().mul_(2.0 / data.pixel_max).sub_(1.0)
        self._images = scaled.contiguous().to(device)
        self._labels = torch.from_numpy(data.train_y.copy()).to(device)
        self._moments: dict[int, dict] = {}

    def rounds(self, cohorts: Sequence[IntArray]) -> None:
        """Train each cohort from the mean model of the one before."""
        model = {name: value.clone() for name, value in self._module.state_dict().items()}
        for cohort in cohorts:
            share = 1.0 / len(cohort)
            total = {name: torch.zeros_like(value, dtype=torch.float32) for name, value in model.items()}
            for client in cohort.tolist():
                self._train(client, model)
                for name, value in self._module.state_dict().items():
                    total[name] += share * value
            model = {name: total[name].to(value.dtype) for name, value in model.items()}
        if self._device != "cpu":
            torch.cuda.synchronize()

    def _train(self, client: int, model: StateDict) -> float:
        module, local, rows = self._module, self._job.local, self._rows[client]
        module.load_state_dict(model)
        module.train()
        optimizer = self._optimizer(client)
        total, passed = torch.zeros((), device=self._device), 0
        for _ in range(local.epochs):
            order = rows[torch.randperm(len(rows), device=self._device)]
            for batch in order.split(local.batch_size):
                images, labels = self._images[batch], self._labels[batch]
                optimizer.zero_grad()
                loss = functional.cross_entropy(module(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(labels)
                passed += len(labels)
        if local.keep_optimizer_state:
            self._moments[client] = optimizer.state_dict()
        return total.item() / passed

    def _optimizer(self, client: int) -> torch.optim.Optimizer:
        local, parameters = self._job.local, self._module.parameters()
        if local.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=local.learning_rate, momentum=local.momentum)
        optimizer = torch.optim.Adam(parameters, lr=local.learning_rate)
        if client in self._moments:
            optimizer.load_state_dict(self._moments[client])
        return optimizer
