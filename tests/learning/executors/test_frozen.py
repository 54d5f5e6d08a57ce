"""Parameters that need no gradient stay as they are under every executor, as a plain loop of torch leaves them."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsim import Component
from fedsim.learning import ExecutorChoice, LocalTraining, Scaffold, TrainingJob, TrainingSetup
from fedsim.learning.models.flat_module import build_flat
from tests.support.tiny_images import Tiny

DATA = Tiny().load()
LOCALS = {
    "momentum, decay and pull": {"momentum": 0.5, "weight_decay": 0.3, "proximal": 0.4, "clip_norm": 0.2},
    "Adam and decay": {"optimizer": "adam", "weight_decay": 0.3},
}


class HalfFrozen(Component):
    """A convolution that stays as it is, a layer that learns, and one whose weight alone stays."""

    def build(self, shape, classes):
        channels, height, width = shape
        module = nn.Sequential(
            nn.Conv2d(channels, 3, 3), nn.Flatten(), nn.Linear(3 * (height - 2) * (width - 2), 4), nn.Tanh(),
            nn.Linear(4, classes),
        )  # fmt: skip
        module[0].requires_grad_(False)
        module[4].weight.requires_grad_(False)
        return module


def plain(setup, base, rows, offset):
    """Return the difference after full batches by an optimiser of torch, which skips what needs no gradient."""
    torch.manual_seed(setup.seed)
    module, local = setup.model.build(DATA.shape, DATA.classes), setup.local
    every = [one for one in module.parameters() if one.requires_grad]
    nn.utils.vector_to_parameters(torch.from_numpy(base.copy()), every)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    momentum = {"momentum": local.momentum} if local.optimizer == "sgd" else {}
    found = kinds[local.optimizer](
        module.parameters(), lr=local.learning_rate, weight_decay=local.weight_decay, **momentum
    )
    pixels = (DATA.train_x[rows] / DATA.pixel_max - 0.5) / 0.5
    images = torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2)
    start = [one.detach().clone() for one in every]
    added = torch.split(torch.from_numpy(offset), [one.numel() for one in every])
    for _ in range(local.steps or 1):
        found.zero_grad()
        functional.cross_entropy(module(images), torch.from_numpy(DATA.train_y[rows])).backward()
        for one, old, more in zip(every, start, added, strict=True):
            one.grad += local.proximal * (one.detach() - old) + more.view(one.shape)
        if local.clip_norm is not None:
            nn.utils.clip_grad_norm_(every, local.clip_norm)
        found.step()
    return nn.utils.parameters_to_vector(every).detach().numpy() - base


@pytest.mark.parametrize("local", LOCALS.values(), ids=LOCALS)
@pytest.mark.parametrize("kind", ["sequential", "stacked", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_training_is_that_of_a_plain_loop(kind, local):
    """With offsets too, which an algorithm gives for all parameters alike."""
    table = {"learning_rate": 0.1, "batch_size": 40, "steps": 4, **local}
    setup = TrainingSetup(HalfFrozen(), DATA, LocalTraining.model_validate(table), seed=1, algorithm=Scaffold())
    layout = build_flat(setup.model, DATA.shape, DATA.classes, setup.seed).layout
    base, offset = layout.initial, np.linspace(-0.2, 0.3, layout.parameters, dtype=np.float32)
    _, height, width = DATA.shape
    assert base.size == 4 * (3 * (height - 2) * (width - 2) + 1) + DATA.classes
    jobs = [
        TrainingJob(base, np.arange(first, first + 30), 1.0, np.random.default_rng(first), offset=offset)
        for first in (0, 20, 40)
    ]
    found = ExecutorChoice(kind).build(setup).train(jobs)
    for job, result in zip(jobs, found, strict=True):
        wanted = plain(setup, base, job.rows, offset)
        np.testing.assert_allclose(result.difference, wanted, rtol=1e-3, atol=2e-6)
        assert np.abs(result.difference).max() > 0.01
