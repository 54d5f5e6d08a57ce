"""Multi-label classification: each sample has any number of several labels."""

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.scoring import binary_cross_entropy, in_columns, joined
from fedsim.learning.tasks.contracts import Metrics
from fedsim.learning.tasks.ignored import Ignored, IgnoringMetric, IgnoringTask, check_numbers, counted, means
from fedsim.learning.tasks.of_labels import macro_f1

NoLabel = Annotated[int, Field(ge=2, le=255)]
"""A number of uint8 that is no label."""


class SubsetAccuracy(IgnoringMetric):
    """Share of the sets all of whose labels are right; a label is given to scores above 0.

    A sample has one set, or one at each place. A place counts if one of its labels does.
    """

    targets: ClassVar[str] = "label-sets"
    name: ClassVar[str] = "accuracy"

    ignore: Ignored[NoLabel] | None = None

    def sums(self, scores: Any, targets: Any) -> Any:
        check_numbers(scores, targets)
        right = (scores > 0) == (targets > 0)
        if not self.ignore:
            return right.all(-1).float().reshape(len(targets), -1).mean(1, keepdim=True)
        known = counted(targets, self.ignore)
        sets = known.any(-1)
        whole = (right | ~known).all(-1) & sets
        return in_columns(*(one.float().reshape(len(targets), -1).sum(1) for one in (whole, sets)))


class _OfSets(IgnoringMetric):
    """Counts right predictions, predictions and sets of each label."""

    targets: ClassVar[str] = "label-sets"

    ignore: Ignored[NoLabel] | None = None

    def width(self, outputs: int) -> int:
        """Three sums for each label: right predictions, predictions, sets."""
        return 3 * outputs

    def sums(self, scores: Any, targets: Any) -> Any:
        check_numbers(scores, targets)
        said, true = (scores > 0).float(), (targets > 0).float()
        if self.ignore:
            known = counted(targets, self.ignore)
            said, true = (one.masked_fill(~known, 0.0) for one in (said, true))
        each = (said * true, said, true)
        return joined(*(one.reshape(len(targets), -1, targets.shape[-1]).sum(1) for one in each))


class MicroF1OfSets(_OfSets):
    """F1 of all labels of all sets together; a label is given to scores above 0."""

    name: ClassVar[str] = "micro-f1"

    def value(self, sums: FloatArray, samples: int) -> float:
        right, said, true = sums.reshape(3, -1).sum(1)
        return float(2 * right / (said + true)) if said + true else float("nan")


class MacroF1OfSets(_OfSets):
    """Mean over the labels of F1; a label is given to scores above 0.

    Labels that no sample has and no model gives are left out, where scikit-learn counts them as 0.
    """

    name: ClassVar[str] = "macro-f1"

    def value(self, sums: FloatArray, samples: int) -> float:
        return macro_f1(sums)


class MultiLabel(IgnoringTask):
    """Any number of labels for each sample, or for each of its places; binary cross-entropy.

    Targets are uint8 of shape (n, k) or (n, ..., k), 1 for a label that there is; scores have the same shape.

    Attributes
    ----------
    metrics : entries of `METRICS`
    ignore : int from 2 to 255, or several
        Targets equal to it count for nothing, in the loss and in metrics, such as labels that are not known. The loss
        of a sample is then the mean over its labels that count, and 0 without any.

    Examples
    --------
    >>> import torch
    >>> labels = torch.tensor([[1, 0, 1]], dtype=torch.uint8)
    >>> round(float(MultiLabel().losses(torch.zeros(1, 3), labels)), 4)  # -log(1 / 2) for each label
    0.6931
    >>> round(float(MultiLabel(ignore=255).losses(torch.tensor([[0.0, 9.0]]), 255 - 254 * labels[:, :2])), 4)
    0.6931
    """

    targets: ClassVar[str] = "label-sets"

    metrics: Metrics = (SubsetAccuracy(), MicroF1OfSets(), MacroF1OfSets())
    ignore: Ignored[NoLabel] = ()

    def outputs(self, data: Dataset) -> int:
        if data.train_y.dtype != np.uint8 or data.train_y.ndim < 2:
            other = "; others of 0 and 1 become so by y.astype('uint8')" if data.train_y.ndim >= 2 else ""
            raise DataError(
                "learning.task: 'multi-label' needs targets of uint8 of shape (n, k), and those of this data set are "
                f"{data.targets_in_words}{other}"
            )
        known = {0, 1, data.target_fill, *self.ignore}
        if unknown := {*np.unique(data.train_y).tolist(), *np.unique(data.test_y).tolist()} - known:
            raise DataError(
                f"learning.task: 'multi-label' needs targets of 0 and 1, and those of ignore = {list(self.ignore)}; "
                f"found {min(unknown)}"
            )
        return int(data.train_y.shape[-1])

    def losses(self, scores: Any, targets: Any) -> Any:
        check_numbers(scores, targets)
        each = binary_cross_entropy(scores, targets)
        if self.ignore:
            each = each.masked_fill(~counted(targets, self.ignore), 0.0)
        return means(each, targets, self.ignore)
