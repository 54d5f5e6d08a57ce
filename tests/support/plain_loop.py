"""Local training as a plain loop over a module and an optimiser of torch, one client at a time."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedsim import Component
from fedsim.learning import TrainingJob, TrainingResult, TrainingSetup


class Convolutions(Component):
    """A small network with batch normalisation after a convolution and after a dense layer, and oblong windows."""

    def build(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        channels, height, width = shape
        inputs = 3 * ((height - 2) // 2) * ((width - 2) // 2)
        return nn.Sequential(
            nn.Conv2d(channels, 3, 3, bias=False),
            nn.BatchNorm2d(3),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(3, 3, (1, 3), padding=(0, 1), bias=False),
            nn.Flatten(),
            nn.Linear(inputs, 5, bias=False),
            nn.BatchNorm1d(5),
            nn.Linear(5, classes),
        )


class Dropping(Component):
    """A small network that drops whole channels and single numbers."""

    def build(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            nn.Conv2d(channels, 3, 3),
            nn.Tanh(),
            nn.Dropout2d(0.4),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(3 * (height - 2) * (width - 2), classes),
        )


class Centred(Component):
    """Takes the mean over the batch from each number, and keeps no statistics."""

    def build(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        class Centre(nn.Module):
            def forward(self, values: torch.Tensor) -> torch.Tensor:
                return values - values.mean(0, keepdim=True)

        return nn.Sequential(
            nn.Flatten(), nn.Linear(int(np.prod(shape)), 4, bias=False), Centre(), nn.Linear(4, classes)
        )


class Ending(Component):
    """Passes scores through a function of the layer and of them."""

    function: Callable[..., Any]

    def build(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        end = type("End", (nn.Module,), {"forward": self.function})
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes), end())


Kept = dict[str, list[torch.Tensor]]
BRANCHING = Ending(function=lambda _, scores: scores if scores.sum() > 0 else -scores)


def trained(setup: TrainingSetup, job: TrainingJob) -> tuple[np.ndarray, float, float, dict[str, np.ndarray]]:
    """Return difference, loss, loss_rms and the optimiser's state of one client."""
    local, data = setup.local, setup.data
    torch.manual_seed(setup.seed)
    module = setup.model.build(data.shape, data.classes)
    parameters = [one for one in module.parameters() if one.requires_grad]
    numbers = [*parameters, *module.buffers()]
    ends = np.cumsum([one.numel() for one in numbers])
    with torch.no_grad():
        for one, piece in zip(numbers, np.split(job.base, ends[:-1]), strict=True):
            one.copy_(torch.from_numpy(piece.copy()).view(one.shape))
    start = [one.detach().clone() for one in parameters]
    kept = _state(parameters, local, job.state)
    torch.manual_seed(int(job.rng.integers(2**63)))
    norm = any(isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d) for layer in module.modules())
    losses: list[torch.Tensor] = []
    first_pass = 0
    steps = int(local.batches(job.rows.size, job.work, 2 if norm else 1))
    for epoch in itertools.count():
        order = job.rng.permutation(job.rows.size)
        batches = [order[begin : begin + local.batch_size] for begin in range(0, order.size, local.batch_size)]
        whole = [batch for batch in batches if batch.size == local.batch_size]
        if local.short_batch == "skip" and whole:
            batches = whole
        for batch in batches:
            if steps == 0 or (norm and batch.size < 2):
                continue
            rows = job.rows[batch]
            samples = torch.from_numpy(data.train_x[rows])
            if data.form == "images":
                samples = ((samples / data.pixel_max - 0.5) / 0.5).permute(0, 3, 1, 2)
            module.zero_grad()
            each = functional.cross_entropy(module(samples), torch.from_numpy(data.train_y[rows]), reduction="none")
            torch.autograd.backward(each.mean() + _more(setup, job, parameters, start))
            nn.utils.clip_grad_norm_(parameters, local.clip_norm or float("inf"))
            _step(parameters, local, kept)
            losses.append(each.detach().double())
            steps -= 1
        if epoch == 0:
            first_pass = len(losses)
        if steps == 0:
            break
    after = torch.cat([one.detach().reshape(-1).float() for one in numbers]).numpy()
    squares = torch.cat(losses[:first_pass]).square().mean()
    state = {name: nn.utils.parameters_to_vector(values).numpy() for name, values in kept.items()}
    if local.optimizer == "adam":
        state["step"] = state["step"][:1].reshape(())
    mean = float(torch.cat(losses).mean())
    return after - job.base, mean, float(squares.sqrt()), state if local.keep_optimizer_state else {}


def _more(
    setup: TrainingSetup, job: TrainingJob, parameters: list[nn.Parameter], start: list[torch.Tensor]
) -> torch.Tensor:
    """Return what is added to the loss; without a pull and an offset it gives no parameter a gradient."""
    found = torch.zeros(())
    if setup.local.proximal:
        squares = [((one - old) ** 2).sum() for one, old in zip(parameters, start, strict=True)]
        found = found + setup.local.proximal / 2 * torch.stack(squares).sum()
    if job.offset is not None:
        added = torch.split(torch.from_numpy(job.offset), [one.numel() for one in parameters])
        found = found + torch.stack([one.flatten() @ part for one, part in zip(parameters, added, strict=True)]).sum()
    return found


def _state(parameters: list[nn.Parameter], local: Any, given: Mapping[str, np.ndarray]) -> Kept:
    """Return the state of torch's optimiser by its names: an array for each parameter, and Adam's steps."""
    of_sgd = ("momentum_buffer",) if local.momentum else ()
    names = ("exp_avg", "exp_avg_sq", "step") if local.optimizer == "adam" else of_sgd
    kept = {name: [torch.zeros(() if name == "step" else one.shape) for one in parameters] for name in names}
    for name, values in given.items():
        vector = torch.from_numpy(values.copy())
        nn.utils.vector_to_parameters(vector if values.ndim else vector.repeat(len(parameters)), kept[name])
    return kept


@torch.no_grad()
def _step(parameters: list[nn.Parameter], local: Any, kept: Kept) -> None:
    """Make a step by the functions of torch's optimisers, whose classes import its compiler, which takes seconds."""
    moved = [i for i, one in enumerate(parameters) if one.grad is not None]
    taken, slopes = [parameters[i] for i in moved], [parameters[i].grad for i in moved]
    state: Any = [[kept[name][i] for i in moved] for name in kept]
    settings = {"lr": local.learning_rate, "weight_decay": local.weight_decay, "maximize": False, "foreach": False}
    if local.optimizer == "adam":
        more: Any = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
        adam(taken, slopes, *state[:2], [], state[2], **settings, **more)
    else:
        buffers = state[0] if state else [None] * len(moved)
        sgd(taken, slopes, buffers, **settings, momentum=local.momentum, dampening=0.0, nesterov=False)


def bits(results: Iterable[TrainingResult]) -> list[tuple[bytes, float, float, dict[str, bytes]]]:
    return [
        (one.difference.tobytes(), one.loss, one.loss_rms, {name: a.tobytes() for name, a in one.state.items()})
        for one in results
    ]
