"""Operations counted on the model itself, against sums by hand."""

import numpy as np
import pytest
import torch

from fedsim.learning.models.flops import training_flops
from fedsim.learning.models.settings import CNN3, MLP


def test_a_perceptron_by_hand():
    multiply_adds = 784 * 32 + 32 * 16 + 16 * 10
    assert training_flops(MLP(), (1, 28, 28), 10) == 3 * 2 * multiply_adds


def test_a_convolutional_network_by_hand():
    """32 x 32 to 30, pooled 15, to 13, pooled 6, to 4, pooled 2; then 512-128-64-32-10."""
    convolutions = 30**2 * 32 * 3 * 9 + 13**2 * 64 * 32 * 9 + 4**2 * 128 * 64 * 9
    dense = 512 * 128 + 128 * 64 + 64 * 32 + 32 * 10
    assert training_flops(CNN3(), (3, 32, 32), 10) == 3 * 2 * (convolutions + dense)


def test_counting_costs_no_luck():
    torch.manual_seed(3)
    before = torch.random.get_rng_state().numpy().copy()
    training_flops(MLP(hidden=(5,)), (1, 4, 4), 3)
    np.testing.assert_array_equal(torch.random.get_rng_state().numpy(), before)


@pytest.mark.parametrize("width", [1, 7])
def test_operations_grow_with_the_model(width):
    assert training_flops(MLP(hidden=(width,)), (1, 4, 4), 3) == 6 * (16 * width + 3 * width)
