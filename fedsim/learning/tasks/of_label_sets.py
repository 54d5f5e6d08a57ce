"""Multi-label classification: each sample has any number of several labels."""

from typing import Any, ClassVar

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.tasks.contracts import Metric, Metrics, Task
from fedsim.learning.tasks.of_labels import macro_f1
from fedsim.learning.tasks.shapes import check_numbers


class SubsetAccuracy(Metric):
    """Share of the samples all of whose labels are right; a label is given to scores above 0."""

    targets: ClassVar[str] = "label-sets"
    name: ClassVar[str] = "accuracy"

    def sums(self, scores: Any, targets: Any) -> Any:
        """Return 1 for a sample with all labels right, shape (n, 1)."""
        check_numbers(scores, targets)
        return ((scores > 0) == (targets > 0)).all(1).float()[:, None]


class _OfSets(Metric):
    """Counts right answers, answers and samples of each label."""

    targets: ClassVar[str] = "label-sets"

    def width(self, outputs: int) -> int:
        """Return three sums for each label."""
        return 3 * outputs

    def sums(self, scores: Any, targets: Any) -> Any:
        """Return them for each sample, shape (n, 3 * labels)."""
        from fedsim.learning.models.scoring import joined

        check_numbers(scores, targets)
        said, true = (scores > 0).float(), (targets > 0).float()
        return joined(said * true, said, true)


class MicroF1OfSets(_OfSets):
    """F1 of all labels of all samples together; a label is given to scores above 0."""

    name: ClassVar[str] = "micro-f1"

    def value(self, sums: FloatArray, samples: int) -> float:
        """Return it; NaN if no label is given or due."""
        right, said, true = sums.reshape(3, -1).sum(1)
        return float(2 * right / (said + true)) if said + true else float("nan")


class MacroF1OfSets(_OfSets):
    """Mean over the labels of F1; a label is given to scores above 0.

    Labels that no sample has and no model gives are left out, where scikit-learn counts them as 0.
    """

    name: ClassVar[str] = "macro-f1"

    def value(self, sums: FloatArray, samples: int) -> float:
        """Return the mean."""
        return macro_f1(sums)


class MultiLabel(Task):
    """Any number of labels for each sample: uint8 of shape (n, k), 1 for a label that it has; binary cross-entropy.

    Attributes
    ----------
    metrics : entries of `METRICS`

    Examples
    --------
    >>> import torch
    >>> labels = torch.tensor([[1, 0, 1]], dtype=torch.uint8)
    >>> round(float(MultiLabel().losses(torch.zeros(1, 3), labels)), 4)  # -log(1 / 2) for each label
    0.6931
    """

    targets: ClassVar[str] = "label-sets"

    metrics: Metrics = (SubsetAccuracy(), MicroF1OfSets(), MacroF1OfSets())

    def outputs(self, data: Dataset) -> int:
        """Return the number of labels."""
        if data.train_y.dtype != np.uint8 or data.train_y.ndim != 2:
            raise DataError(
                "learning.task: 'multi-label' needs targets of uint8 of shape (n, k), and those of this data set are "
                f"{data.targets_in_words}"
            )
        if max(int(data.train_y.max()), int(data.test_y.max())) > 1:
            raise DataError("learning.task: 'multi-label' needs targets of 0 and 1")
        return int(data.train_y.shape[1])

    def losses(self, scores: Any, targets: Any) -> Any:
        """Return the mean binary cross-entropy over the labels of each sample, shape (n,)."""
        from fedsim.learning.models.scoring import binary_cross_entropy

        check_numbers(scores, targets)
        return binary_cross_entropy(scores, targets).mean(1)
