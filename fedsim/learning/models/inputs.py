"""What a module takes, made of the samples of a data set: the one place where types and scales are changed."""

import warnings
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.shapes import Shape, TokenShape, TypedShape

_CHANNELS: Final = -3


class Inputs:
    """Makes of images float32 in [-1, 1] with the channels first, and of tokens their vectors if the set has some."""

    def __init__(self, data: Dataset, device: torch.device | None = None) -> None:
        self._scale = None if data.pixel_max is None else 2.0 / data.pixel_max
        self._vectors = None if data.vectors is None else tensor(data.vectors).to(device)

    def computed(self, samples: Tensor) -> Tensor:
        """Return samples of shape (..., h, w, c) or (..., length) as float32, or unchanged if nothing is to convert."""
        if self._scale is not None:
            return torch.mul(samples.contiguous(), self._scale).sub_(1.0)
        return samples if self._vectors is None else self._vectors[samples]

    def arranged(self, computed: Tensor) -> Tensor:
        """Return the result of `computed` in the shape that a module takes.

        Images are a view with the channels last in memory, which torch convolves and pools about twice as fast on a
        CPU.
        """
        return computed if self._scale is None else computed.movedim(-1, _CHANNELS)

    def of(self, samples: Tensor) -> Tensor:
        return self.arranged(self.computed(samples))


def tensor(array: NDArray[Any]) -> Tensor:
    with warnings.catch_warnings():
        # torch warns of read-only arrays.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


def blank(shape: Shape) -> Tensor:
    """Return one sample of zeros, as a module takes it."""
    if isinstance(shape, TokenShape):
        return torch.zeros((1, shape.length), dtype=torch.int64)
    if isinstance(shape, TypedShape):
        return tensor(np.zeros((1, *shape), dtype=shape.dtype))
    return torch.zeros((1, *shape))
