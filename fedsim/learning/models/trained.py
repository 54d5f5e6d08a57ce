"""A model with its numbers; torch is imported when its module is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fedsim.learning.models.settings import Architecture

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["Module", "TrainedModel"]


@dataclass(frozen=True)
class TrainedModel:
    """The architecture of a model and its arrays."""

    architecture: Architecture
    arrays: Mapping[str, NDArray[Any]]

    def module(self) -> "Module":
        """Return a fresh module with these numbers, in evaluation mode."""
        from fedsim.learning.models.rebuilding import rebuilt

        return rebuilt(self.architecture, self.arrays)
