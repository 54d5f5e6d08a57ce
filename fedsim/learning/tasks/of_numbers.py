"""Regression: each sample has one or several numbers."""

from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.scoring import in_columns
from fedsim.learning.tasks.contracts import Metrics
from fedsim.learning.tasks.ignored import Ignored, IgnoringMetric, IgnoringTask, counted, errors, means


class _OfNumbers(IgnoringMetric):
    """Adds up a mean over the numbers of each sample; where some are ignored, over all numbers that count."""

    targets: ClassVar[str] = "numbers"

    def _summed(self, values: Any, targets: Any) -> Any:
        if not self.ignore:
            return means(values, targets, ())[:, None]
        known = counted(targets, self.ignore).float()
        return in_columns(values.flatten(1).sum(1), known.flatten(1).sum(1))


class MeanSquaredError(_OfNumbers):
    """Mean of the squared errors of all numbers."""

    name: ClassVar[str] = "mean-squared-error"

    def sums(self, scores: Any, targets: Any) -> Any:
        return self._summed(errors(scores, targets, self.ignore or ()).square(), targets)


class MeanAbsoluteError(_OfNumbers):
    """Mean of the absolute errors of all numbers."""

    name: ClassVar[str] = "mean-absolute-error"

    def sums(self, scores: Any, targets: Any) -> Any:
        return self._summed(errors(scores, targets, self.ignore or ()).abs(), targets)


class Regression(IgnoringTask):
    """Numbers of float32, shape (n, k) or (n, ...), as are the scores; squared errors by default.

    Attributes
    ----------
    metrics : entries of `METRICS`
    loss : ``"squared"``, ``"absolute"`` or ``"huber"``
        Of each number; the loss of a sample is the mean over its numbers. Huber's is half the square up to an error
        of 1, and beyond it the absolute error minus one half.
    ignore : float or several
        Targets equal to it count for nothing, in the loss and in metrics, such as numbers that are not known. The loss
        of a sample is then the mean over its numbers that count; without any, 0.

    Examples
    --------
    >>> import torch
    >>> scores, targets = torch.tensor([[0.5, 3.0]]), torch.zeros(1, 2)
    >>> [float(Regression(loss=one).losses(scores, targets)) for one in ("squared", "absolute", "huber")]
    [4.625, 1.75, 1.3125]
    >>> float(Regression(ignore=-1.0).losses(scores, torch.tensor([[0.0, -1.0]])))
    0.25
    """

    targets: ClassVar[str] = "numbers"

    metrics: Metrics = (MeanSquaredError(), MeanAbsoluteError())
    loss: Literal["squared", "absolute", "huber"] = "squared"
    ignore: Ignored[float] = ()

    def outputs(self, data: Dataset) -> int:
        if data.train_y.dtype != np.float32 or data.train_y.ndim < 2:
            whole = "; whole numbers become so by y.astype('float32')" if data.train_y.dtype.kind in "iu" else ""
            raise DataError(
                "learning.task: 'regression' needs targets of float32 of shape (n, k), and those of this data set are "
                f"{data.targets_in_words}{whole}"
            )
        return int(data.train_y.shape[-1])

    def losses(self, scores: Any, targets: Any) -> Any:
        error = errors(scores, targets, self.ignore)
        if self.loss == "squared":
            each = error.square()
        elif self.loss == "absolute":
            each = error.abs()
        else:
            size = error.abs()
            inner = size.clamp_max(1.0)
            each = inner * (size - 0.5 * inner)
        return means(each, targets, self.ignore)
