"""The models that a scenario can name; torch is imported when one is built."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Protocol, runtime_checkable

from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.learning.data.shapes import Shape, TokenShape, TypedShape
from fedsim.registry import Component, Registry
from fedsim.units import Bound

if TYPE_CHECKING:
    from torch import nn

Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)]


class Trains(Component):
    """What all models of fedsim have in common.

    Attributes
    ----------
    train : names of layers or parameters that are trained, or patterns of them such as ``"features.1*"``
        All by default. The others keep their first numbers and are not sent.
    """

    train: Names = ()


def chosen(module: "nn.Module", train: Sequence[str]) -> "nn.Module":
    """Return a module, of whose parameters those with the given names want a gradient; unchanged without any."""
    known = [name for name, _ in module.named_parameters()]
    for pattern in train:
        if not any(_fits(name, (pattern,)) for name in known):
            raise ScenarioError(
                f"learning.model.train: {pattern!r} fits no parameter; allowed: names or patterns of {', '.join(known)}"
            )
    for name, parameter in module.named_parameters() if train else ():
        parameter.requires_grad_(_fits(name, train))
    return module


def _fits(name: str, patterns: Sequence[str]) -> bool:
    """Return whether one of some patterns is about a parameter or a layer that has it."""
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for pattern in patterns)


TEXT_MODELS = "text-cnn, text-attention, char-lstm"


def of_images(shape: Shape, kind: str, least: int) -> tuple[int, int, int]:
    """Return channels, height and width, or raise `ScenarioError` if samples are no images or too small."""
    if isinstance(shape, TokenShape | TypedShape) or len(shape) != 3:
        raise ScenarioError(f"learning.model: {kind} needs images, and these samples are {in_words(shape)}")
    channels, height, width = shape
    if min(height, width) < least:
        raise ScenarioError(
            f"learning.model: {kind} needs images of at least {least} x {least} pixels, these have {height} x {width}; "
            f"allowed here: mlp, or larger images (mnist, fashion-mnist, cifar-10)"
        )
    return channels, height, width


def of_numbers(shape: Shape, kind: str) -> Shape:
    if isinstance(shape, TokenShape):
        raise ScenarioError(
            f"learning.model: {kind} needs numbers, and these samples are {in_words(shape)}; allowed here: "
            f"{TEXT_MODELS}; for the task 'next-token' char-lstm with places = 'each'; whole numbers that are no "
            "tokens are given as float32"
        )
    if isinstance(shape, TypedShape):
        raise ScenarioError(
            f"learning.model: {kind} needs numbers of float32, and these samples are {in_words(shape)}; allowed: a "
            "model of your own, or samples of float32"
        )
    return shape


def of_text(shape: Shape, kind: str) -> TokenShape | tuple[int, int]:
    """Return length and vocabulary, or length and width of vectors; `ScenarioError` if samples are neither."""
    if isinstance(shape, TokenShape):
        return shape
    if len(shape) != 2 or isinstance(shape, TypedShape):
        raise ScenarioError(f"learning.model: {kind} needs text, and these samples are {in_words(shape)}")
    return shape[0], shape[1]


def in_words(shape: Shape) -> str:
    """Return what samples of a shape are.

    >>> in_words((3, 32, 32)), in_words((60,)), in_words(TokenShape(30, 5000))
    ('images of 3 x 32 x 32', 'numbers of shape (60,)', 'texts of 30 tokens')
    """
    if isinstance(shape, TokenShape):
        return f"texts of {shape.length} tokens"
    if isinstance(shape, TypedShape):
        return f"{shape.dtype} of shape {tuple(shape)}"
    return f"images of {' x '.join(map(str, shape))}" if len(shape) == 3 else f"numbers of shape {tuple(shape)}"


class ModelPart(Protocol):
    """What a scenario asks of a model."""

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        """Return a fresh module for samples of a shape, see `fedsim.learning.data.shapes`; torch's seed is set."""


@runtime_checkable
class CanNarrow(Protocol):
    """A model of layers in a row, whose width can be cut."""

    def narrowed(self, ratio: float) -> ModelPart:
        """Return the same model with a ratio in (0, 1) of the channels of each hidden layer, its arrays named alike."""


@dataclass(frozen=True)
class Architecture:
    """A model without its numbers."""

    model: ModelPart
    shape: Shape
    classes: int

    def build(self) -> "nn.Module":
        return self.model.build(self.shape, self.classes)


class MLP(Trains):
    """A multilayer perceptron: flatten, dense layers with ReLU, a dense layer onto the classes.

    With the default widths it is the MNIST model of the PAUSE code, 784-32-16-10 with 25,818 parameters. (The
    paper's text can be read as a convolutional network; the code is this.)

    Attributes
    ----------
    hidden : widths of the hidden layers; none make it a softmax regression

    Examples
    --------
    >>> sum(one.numel() for one in MLP().build((1, 28, 28), 10).parameters())  # PAUSE's 784-32-16-10
    25818
    >>> MLP(hidden=(64, 16)).narrowed(0.25).hidden
    (16, 4)
    """

    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False), Bound(0, 2**16)] = (32, 16)

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        from torch import nn

        widths = [math.prod(of_numbers(shape, MODELS.kind_of(self))), *self.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Linear(widths[-1], classes))

    def narrowed(self, ratio: float) -> ModelPart:
        return MLP(hidden=tuple(math.ceil(width * ratio) for width in self.hidden), train=self.train)


class LogisticRegression(Trains):
    """Multinomial logistic regression: one dense layer from all numbers of a sample onto the classes."""

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        from torch import nn

        numbers = math.prod(of_numbers(shape, MODELS.kind_of(self)))
        return nn.Sequential(nn.Flatten(), nn.Linear(numbers, classes))


MODELS: Final = Registry(
    "model",
    "fedsim.models",
    ("build",),
    {
        "mlp": "fedsim.learning.models.settings:MLP",
        "logistic-regression": "fedsim.learning.models.settings:LogisticRegression",
        "cnn3": "fedsim.learning.models.images:CNN3",
        "cnn5": "fedsim.learning.models.images:CNN5",
        "fedsampling-cnn": "fedsim.learning.models.images:FedSamplingCNN",
        "resnet-18": "fedsim.learning.models.images:ResNet18",
        "resnet-34": "fedsim.learning.models.images:ResNet34",
        "mobilenet-v2": "fedsim.learning.models.images:MobileNetV2",
        "shufflenet-v2": "fedsim.learning.models.images:ShuffleNetV2",
        "text-cnn": "fedsim.learning.models.sequences:TextCNN",
        "text-attention": "fedsim.learning.models.sequences:TextAttention",
        "char-lstm": "fedsim.learning.models.sequences:CharLSTM",
    },
    default="mlp",
    foreign="fedsim.learning.models.own.handed:HandedModel",
)


def own_name(model: ModelPart) -> str | None:
    """Return the name of a model of the user's own, as a scenario has it; None for one of fedsim's."""
    kind = MODELS.kind_of(model)
    return kind if ":" in kind else None
