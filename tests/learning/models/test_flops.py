"""Operations counted on the model itself, against sums by hand."""

import numpy as np
import pytest
import torch

from fedsim.learning.data.shapes import TokenShape
from fedsim.learning.models.flops import training_flops
from fedsim.learning.models.images import CNN3, MobileNetV2
from fedsim.learning.models.sequences import CharLSTM, TextAttention, TextCNN
from fedsim.learning.models.settings import MLP
from fedsim.registry import Component


def test_counting_costs_no_luck():
    torch.manual_seed(3)
    before = torch.random.get_rng_state().numpy().copy()
    training_flops(MLP(hidden=(5,)), (1, 4, 4), 3)
    np.testing.assert_array_equal(torch.random.get_rng_state().numpy(), before)


class Attended(Component):
    """torch's own attention on a sequence of vectors, which it computes by one operation where it may."""

    def build(self, shape, classes):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.MultiheadAttention(shape[1], 2, batch_first=True)

            def forward(self, x):
                return self.layer(x, x, x, need_weights=False)[0].mean(1)

        return Module()


# 32 x 32 to 30, pooled 15, to 13, pooled 6, to 4, pooled 2; then 512-128-64-32-10.
CONVOLUTIONS = 30**2 * 32 * 3 * 9 + 13**2 * 64 * 32 * 9 + 4**2 * 128 * 64 * 9
DENSE = 512 * 128 + 128 * 64 + 64 * 32 + 32 * 10
# Pooling of 3 words from 10 numbers to 7, and three dense layers.
POOLED = 3 * (10 * 7 + 7) + 10 * 6 + 6 * 6 + 6 * 9
OVER_WORDS = TextCNN(filters=10, window=3, hidden=6, pooling=7, embedding=4)


@pytest.mark.parametrize(
    ("model", "shape", "classes", "multiply_adds"),
    [
        (MLP(), (1, 28, 28), 10, 784 * 32 + 32 * 16 + 16 * 10),
        (CNN3(), (3, 32, 32), 10, CONVOLUTIONS + DENSE),
        # Four products of a width of 8 for 5 words, and two between all pairs of words.
        (Attended(), (5, 8), 8, 4 * 5 * 8 * 8 + 2 * 5 * 5 * 8),
        # Vectors of 3 words of width 4: three products to 2 heads of 5, and two between words.
        (TextAttention(heads=2, head_width=5, hidden=6, pooling=7), (3, 4), 9, 3 * 3 * 4 * 10 + 2 * 9 * 10 + POOLED),
        (OVER_WORDS, (3, 4), 9, 3 * 10 * 4 * 3 + POOLED),
        # Looking words up costs nothing.
        (OVER_WORDS, TokenShape(3, 1000), 9, 3 * 10 * 4 * 3 + POOLED),
        # Four gates of 6 units for each of 5 characters, from inputs and states; two layers; a dense layer at the end.
        (CharLSTM(embedding=3, hidden=6, layers=2), TokenShape(5, 11), 11, 20 * 6 * 9 + 20 * 6 * 12 + 6 * 11),
    ],
)
def test_operations_by_hand(model, shape, classes, multiply_adds):
    assert training_flops(model, shape, classes) == 3 * 2 * multiply_adds


def test_grouped_convolutions_of_mobilenet_by_hand():
    """Its first block on 32 x 32 pixels: the stem, one 3 x 3 convolution for each of 32 channels, 1 x 1 to 16."""
    whole = training_flops(MobileNetV2(), (1, 32, 32), 10)
    # From 1 to 2 channels only the stem grows.
    assert training_flops(MobileNetV2(), (2, 32, 32), 10) - whole == 6 * 32**2 * 32 * 9
    module = MobileNetV2().build((1, 32, 32), 10)
    side, expected = 32, 32**2 * 32 * 9
    for layer in [part for part in module.features[1:].modules() if isinstance(part, torch.nn.Conv2d)]:
        side //= layer.stride[0]
        expected += side**2 * layer.out_channels * (layer.in_channels // layer.groups) * layer.kernel_size[0] ** 2
    assert whole == 6 * (expected + 1280 * 10)
