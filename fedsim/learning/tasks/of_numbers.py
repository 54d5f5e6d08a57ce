"""Regression: each sample has one or several numbers."""

from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.tasks.contracts import Metric, Metrics, Task
from fedsim.learning.tasks.shapes import check_numbers


class MeanSquaredError(Metric):
    """Mean of the squared errors of all numbers."""

    targets: ClassVar[str] = "numbers"
    name: ClassVar[str] = "mean-squared-error"

    def sums(self, scores: Any, targets: Any) -> Any:
        """Return the mean squared error of each sample, shape (n, 1)."""
        check_numbers(scores, targets)
        return (scores - targets).square().flatten(1).mean(1, keepdim=True)


class MeanAbsoluteError(Metric):
    """Mean of the absolute errors of all numbers."""

    targets: ClassVar[str] = "numbers"
    name: ClassVar[str] = "mean-absolute-error"

    def sums(self, scores: Any, targets: Any) -> Any:
        """Return the mean absolute error of each sample, shape (n, 1)."""
        check_numbers(scores, targets)
        return (scores - targets).abs().flatten(1).mean(1, keepdim=True)


class Regression(Task):
    """Numbers of float32, shape (n, k) or (n, ...); squared errors by default.

    Attributes
    ----------
    metrics : entries of `METRICS`
    loss : ``"squared"``, ``"absolute"`` or ``"huber"``
        Of each number; the loss of a sample is the mean over its numbers. Huber's is half the square up to an error
        of 1, and beyond it the absolute error minus one half.

    Examples
    --------
    >>> import torch
    >>> scores, targets = torch.tensor([[0.5, 3.0]]), torch.zeros(1, 2)
    >>> [float(Regression(loss=one).losses(scores, targets)) for one in ("squared", "absolute", "huber")]
    [4.625, 1.75, 1.3125]
    """

    targets: ClassVar[str] = "numbers"

    metrics: Metrics = (MeanSquaredError(), MeanAbsoluteError())
    loss: Literal["squared", "absolute", "huber"] = "squared"

    def outputs(self, data: Dataset) -> int:
        """Return the numbers of the last axis of a target."""
        if data.train_y.dtype != np.float32 or data.train_y.ndim < 2:
            raise DataError(
                "learning.task: 'regression' needs targets of float32 of shape (n, k), and those of this data set are "
                f"{data.targets_in_words}"
            )
        return int(data.train_y.shape[-1])

    def losses(self, scores: Any, targets: Any) -> Any:
        """Return the mean over the numbers of each sample, shape (n,)."""
        check_numbers(scores, targets)
        error = scores - targets
        if self.loss == "squared":
            each = error.square()
        elif self.loss == "absolute":
            each = error.abs()
        else:
            size = error.abs()
            inner = size.clamp_max(1.0)
            each = inner * (size - 0.5 * inner)
        return each.flatten(1).mean(1)
