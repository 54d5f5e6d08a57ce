"""Networks: their numbers of parameters, and what they refuse."""

import pytest
import torch
from torch import nn

from fedsim.errors import ScenarioError
from fedsim.learning import MODELS
from fedsim.learning.data.shapes import TokenShape

COLOUR = 3, 32, 32
STEM = 7 * 7 * 3 * 64 - 3 * 3 * 3 * 64

# By hand, layer after layer: weights and biases of convolutions, two numbers for each channel that is normalised.
CNN5 = [896, 9248, 18496, 36928, 131200, 2 * (32 + 64 + 64), 128 * 64 + 64, 64 * 32 + 32, 32 * 10 + 10]
FEDSAMPLING = [32 * 26, 128 * (32 * 25 + 1), 2048 * 512 + 512, 2 * (512 * 512 + 512), 512 * 62 + 62]


@pytest.mark.parametrize(
    ("kind", "shape", "classes", "parameters"),
    [
        ("logistic-regression", (60,), 10, 610),
        ("mlp", (1, 28, 28), 10, 25_818),
        ("cnn3", COLOUR, 10, 170_474),
        ("cnn5", COLOUR, 10, sum(CNN5)),
        ("fedsampling-cnn", (1, 28, 28), 62, sum(FEDSAMPLING)),
        # torchvision's pages give 11,689,512, 21,797,672, 3,504,872 and 2,278,604 for 1,000 classes. The last layer has
        # 990 classes less, and the stem of the residual networks 3 x 3 instead of 7 x 7 weights.
        ("resnet-18", COLOUR, 10, 11_689_512 - 990 * 513 - STEM),
        ("resnet-34", COLOUR, 10, 21_797_672 - 990 * 513 - STEM),
        ("mobilenet-v2", COLOUR, 10, 3_504_872 - 990 * 1281),
        ("shufflenet-v2", COLOUR, 10, 2_278_604 - 990 * 1025),
        # Convolution, pooling, three dense layers; with 18 classes and vectors of 300 numbers.
        ("text-cnn", (30, 300), 18, 400 * 901 + 400 * 200 + 401 + 400 * 256 + 256 + 256 * 257 + 257 * 18),
        ("text-attention", (30, 300), 18, 3 * 300 * 400 + 400 * 200 + 401 + 400 * 256 + 256 + 256 * 257 + 257 * 18),
        # Vectors of 66 characters; four gates with two biases, from 8 and 256 inputs and 256 states; dense layer.
        ("char-lstm", TokenShape(80, 66), 66, 66 * 8 + 1024 * (8 + 256 + 2) + 1024 * (256 + 256 + 2) + 257 * 66),
    ],
)
def test_models_have_the_published_numbers_of_parameters(kind, shape, classes, parameters):
    with torch.device("meta"):
        module = MODELS.make(kind).build(shape, classes)
    assert sum(one.numel() for one in module.parameters()) == parameters


@pytest.mark.parametrize(("kind", "side"), [("resnet-18", 4), ("mobilenet-v2", 2), ("shufflenet-v2", 4)])
def test_32_pixels_become_the_places_that_are_said(kind, side):
    with torch.device("meta"):  # places without numbers
        module, pixels = MODELS.make(kind).build((1, 32, 32), 10).eval(), torch.zeros(2, 1, 32, 32)
    seen = []
    last = [part for part in module.modules() if isinstance(part, nn.Conv2d)][-1]
    last.register_forward_hook(lambda _, __, found: seen.append(tuple(found.shape[2:])))
    with torch.no_grad():
        assert module(pixels).shape == (2, 10)
    assert seen == [(side, side)]


IMAGES = "cnn5", "fedsampling-cnn", "resnet-18", "resnet-34", "mobilenet-v2", "shufflenet-v2"
OF_TEXTS = (
    "numbers, and these samples are texts of 4 tokens; allowed here: text-cnn, text-attention, char-lstm; for the task "
    "'next-token' char-lstm with places = 'each'"
)


@pytest.mark.parametrize(
    ("kinds", "shape", "words"),
    [
        (("cnn3",), (1, 8, 8), "images of at least 22 x 22 pixels, these have 8 x 8"),
        (IMAGES, (1, 7, 7), "images.*at least"),
        (IMAGES, (60,), "images.*samples"),
        (IMAGES, TokenShape(4, 9), "images.*texts of 4 tokens"),
        (("mlp", "logistic-regression"), TokenShape(4, 9), OF_TEXTS),
        (("text-cnn", "text-attention", "char-lstm"), (1, 8, 8), "(text|tokens), and these samples are images"),
    ],
)
def test_samples_that_a_model_does_not_take_are_refused(kinds, shape, words):
    for kind in kinds:
        with pytest.raises(ScenarioError, match=rf"^learning\.model: {kind} needs {words}"):
            MODELS.make(kind).build(shape, 3)
