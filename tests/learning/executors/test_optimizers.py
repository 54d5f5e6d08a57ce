"""Optimisers on a flat module against torch's own, bit by bit."""

import pytest
import torch
from torch import nn

from fedsim.learning import MLP, LocalTraining, TrainingSetup
from fedsim.learning.executors.optimizers import Optimizer
from fedsim.learning.models.flat_module import FlatModule
from tests.support.tiny_images import Tiny


def of(flat, local):
    return Optimizer(flat.parameters.data[None], TrainingSetup(MLP(), Tiny().load(), local, 0))


@pytest.mark.parametrize(("kind", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)])
def test_steps_are_those_of_torch(kind, momentum):
    flat = FlatModule(nn.Linear(7, 5))
    reference = nn.Parameter(flat.parameters.detach().clone())
    more = {"momentum": momentum} if kind == "sgd" else {"fused": True}
    torchs = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind]([reference], lr=0.3, **more)
    ours = of(flat, LocalTraining(optimizer=kind, learning_rate=0.3, momentum=momentum))
    generator = torch.Generator().manual_seed(1)
    ours.start([0], [{}])
    for step in range(6):
        slope = torch.randn(40, generator=generator)
        flat.gradient.copy_(slope)
        reference.grad = slope
        torchs.step()
        ours.step(flat.gradient[None])
        if step == 2:
            ours.start([0], [ours.state()])
        assert torch.equal(flat.parameters, reference)
    adam = ["exp_avg", "exp_avg_sq", "step"] if kind == "adam" else []
    assert sorted(ours.state()) == (["momentum_buffer"] if momentum else adam)
