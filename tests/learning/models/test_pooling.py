"""Pooling before ReLU changes no bit."""

import pytest
import torch
from torch import nn

from fedsim.learning.models.pooling import pool_before_relu


def layers():
    return nn.Sequential(
        nn.Conv2d(2, 3, 3),
        nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.0)),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.Flatten(),
    )


def test_values_and_gradients_are_the_same_with_ties_too():
    one, other = layers(), layers()
    other.load_state_dict(one.state_dict())
    pool_before_relu(other)
    assert [type(layer).__name__ for layer in other] == ["Conv2d", "Sequential", "MaxPool2d", "ReLU", "Flatten"]
    assert [type(layer).__name__ for layer in other[1]] == ["MaxPool2d", "ReLU", "Dropout"]
    assert list(one.state_dict()) == list(other.state_dict())
    torch.manual_seed(3)
    images = torch.randn(5, 2, 13, 13).round()
    images[:, :, :6] = 1.0  # equal values in every window there
    found = []
    for module in (one, other):
        seen = images.clone().requires_grad_()
        scores = module(seen)
        scores.square().sum().backward()
        found.append((scores, seen.grad, *(parameter.grad for parameter in module.parameters())))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("second", [nn.MaxPool2d(2, return_indices=True), nn.AvgPool2d(2)])
def test_other_layers_stay_and_modules_with_a_forward_pass_of_their_own(second):
    net = nn.Module()
    net.body, module = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)), nn.Sequential(nn.ReLU(), second)
    pool_before_relu(module)
    pool_before_relu(net)
    assert type(module[0]) is type(net.body[0]) is nn.ReLU
