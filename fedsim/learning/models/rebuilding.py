"""A module made again from its architecture and its numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedsim.errors import RunError
from fedsim.learning.models.settings import Architecture


def rebuilt(architecture: Architecture, arrays: Mapping[str, NDArray[Any]]) -> nn.Module:
    """Return a fresh module with the numbers given, in evaluation mode; torch's random state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        module = architecture.build()
    try:
        module.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in arrays.items()})
    except RuntimeError as error:
        raise RunError(f"model: the arrays do not fit {type(architecture.model).__name__}: {error}") from None
    return module.eval()
