"""Networks for images: their numbers of parameters, and training one above the other as one by one."""

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


@pytest.mark.parametrize("kind", ["cnn5", "fedsampling-cnn", "resnet-18", "resnet-34", "mobilenet-v2", "shufflenet-v2"])
def test_what_is_no_image_or_too_small_is_refused(kind):
    for shape, words in (((1, 7, 7), "at least"), ((60,), "samples"), (TokenShape(4, 9), "texts of 4 tokens")):
        with pytest.raises(ScenarioError, match=rf"^learning\.model: {kind} needs images.*{words}"):
            MODELS.make(kind).build(shape, 3)


def test_words_are_no_numbers():
    other = (
        "allowed here: text-cnn, text-attention, char-lstm; for the task 'next-token' char-lstm with places = 'each'"
    )
    for kind in ("mlp", "logistic-regression"):
        with pytest.raises(
            ScenarioError, match=f"{kind} needs numbers, and these samples are texts of 4 tokens; {other}"
        ):
            MODELS.make(kind).build(TokenShape(4, 9), 3)
