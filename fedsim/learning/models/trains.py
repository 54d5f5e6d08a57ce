"""Which part of a model is trained: names of parameters, or patterns of them."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.registry import Component

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
