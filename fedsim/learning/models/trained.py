"""A model with its numbers; torch is imported when its module is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import RunError
from fedsim.learning.generators import own_generators
from fedsim.learning.models.settings import Architecture
from fedsim.learning.torch_modes import own_modes

if TYPE_CHECKING:
    from torch.nn import Module as Module


@dataclass(frozen=True)
class TrainedModel:
    """The architecture of a model and its arrays."""

    architecture: Architecture
    arrays: Mapping[str, NDArray[Any]]

    @own_modes()
    def module(self) -> "Module":
        """Return a fresh module with these numbers, in evaluation mode; torch's random state stays as it is."""
        import torch

        with own_generators(0):
            module = self.architecture.build()
        beside = {name: one for name, one in module.state_dict().items() if not isinstance(one, torch.Tensor)}
        arrays = {name: torch.from_numpy(np.array(values)) for name, values in self.arrays.items()}
        try:
            module.load_state_dict(beside | arrays)
        except RuntimeError as error:
            name = type(self.architecture.model).__name__
            raise RunError(f"model: the arrays do not fit {name}: {error}") from None
        return module.eval()
