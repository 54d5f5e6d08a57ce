"""Optimisers on a flat module against torch's own, bit by bit."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.learning import MLP, LocalTraining, TrainingSetup
from fedsim.learning.executors.optimizers import Optimizer, in_order
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


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_states_have_the_order_of_the_model(optimizer):
    """Two flat modules, one with its channels last, keep one and the same state."""
    momentum = {"momentum": 0.5} if optimizer == "sgd" else {}
    local = LocalTraining.model_validate({"optimizer": optimizer, "learning_rate": 0.1, **momentum})
    states = []
    for last in (False, True):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Flatten(), nn.Linear(16, 2))
        flat = FlatModule(module, channels_last=last)
        assert module[0].weight.is_contiguous(memory_format=torch.channels_last) is last
        ours, count = of(flat, local), flat.layout.parameters
        ours.start([0], [{}])
        for _ in range(2):
            flat.gradient.zero_()
            module(torch.linspace(-1, 1, 54).view(2, 3, 3, 3)).square().sum().backward()
            ours.step(flat.gradient[None])
            known = in_order(ours.state(), count, flat.outward)
            ours.start([0], [in_order(known, count, flat.inward)])
        states.append(
            {**in_order(ours.state(), count, flat.outward), "numbers": flat.numbers(), "initial": flat.layout.initial}
        )
    assert sorted(states[0]) == sorted(states[1])
    for name, part in states[0].items():
        np.testing.assert_allclose(part, states[1][name], rtol=1e-4, atol=1e-6, err_msg=name)
