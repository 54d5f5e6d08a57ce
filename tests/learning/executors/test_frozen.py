"""Parameters that need no gradient stay as they are under every executor, as a plain loop of torch leaves them."""

import copy

import numpy as np
import pytest
from torch import nn

from fedsim import Component
from fedsim.learning import ExecutorChoice, LocalTraining, Scaffold, TrainingJob, TrainingSetup
from fedsim.learning.models.flat_module import build_flat
from tests.support.plain_loop import trained
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
    first = [TrainingJob(base, np.arange(i, i + 30), 1.0, np.random.default_rng(i), offset=offset) for i in (0, 20, 40)]
    wanted = [trained(setup, copy.deepcopy(job))[0] for job in first]
    for result, expected in zip(ExecutorChoice(kind).build(setup).train(first), wanted, strict=True):
        np.testing.assert_allclose(result.difference, expected, rtol=1e-3, atol=2e-6)
        assert np.abs(result.difference).max() > 0.01
