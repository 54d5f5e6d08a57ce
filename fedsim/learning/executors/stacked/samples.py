"""The data set on the device, and batches of it for all slots."""

import warnings
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsim.arrays import IntArray
from fedsim.learning.data.datasets import Dataset

_SCALED_BYTES: Final = 2**26
"""Largest set of images that is scaled once and for all."""


class Samples:
    """Samples of the training set and of the test set, moved to the device once.

    Parameters
    ----------
    data : images and labels
    device : where they go

    Attributes
    ----------
    device : where they are
    test_rows : all rows of the test set, shape (n,)
    count : samples of the training set
    image_bytes : of a scaled image
    """

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.device, self._scale = device, 2.0 / data.pixel_max
        with warnings.catch_warnings():
            # torch warns of read-only arrays; these are only read.
            warnings.simplefilter("ignore", UserWarning)
            self._train = self._kept(data.train_x), self.sent(data.train_y)
            self._test = self._kept(data.test_x), self.sent(data.test_y)
        self.test_rows, self.count = np.arange(len(data.test_y)), len(data.train_y)
        self.image_bytes = 4 * data.train_x[0].size

    def sent(self, values: NDArray[Any]) -> Tensor:
        """Return an array on the device."""
        return torch.from_numpy(values).to(self.device)

    def batch(self, rows: IntArray, *, of_test: bool = False) -> tuple[Tensor, Tensor]:
        """Return images, float32 in [-1, 1] of shape (..., c, h, w), and labels.

        Parameters
        ----------
        rows : of any shape
        of_test : whether they are rows of the test set
        """
        every, labels = self._test if of_test else self._train
        chosen = self.sent(rows.reshape(-1))
        images = every.index_select(0, chosen).view(*rows.shape, *every.shape[1:])
        scaled = images if images.is_floating_point() else self._scaled(images)
        return scaled.movedim(-1, -3), labels.index_select(0, chosen).view(rows.shape)

    def _kept(self, images: NDArray[np.uint8]) -> Tensor:
        sent = self.sent(images)
        return self._scaled(sent) if 4 * images.size <= _SCALED_BYTES else sent

    def _scaled(self, images: Tensor) -> Tensor:
        return torch.mul(images, self._scale).sub_(1.0)
