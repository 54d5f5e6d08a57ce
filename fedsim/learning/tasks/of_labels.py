"""Classification: each sample has one of several labels."""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import FloatArray
from fedsim.capabilities import LABELS
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.scoring import cross_entropy, joined, moved, one_hot
from fedsim.learning.tasks.contracts import Metric, Metrics
from fedsim.learning.tasks.ignored import Ignored, IgnoringTask, counted


def _labels_in(targets: NDArray[Any]) -> str:
    """Return which labels targets may hold: those of a column, whole numbers of another type, or places of a 1."""
    if targets.ndim != 2 or np.any(targets != np.rint(targets)):
        return ""
    if targets.shape[1] == 1:
        return "; labels are y[:, 0]" if targets.dtype.kind in "iu" else "; labels are whole numbers: y.astype(int)"
    one = np.all((targets == 0) | (targets == 1)) and np.all(targets.sum(axis=1) == 1)
    return "; labels are y.argmax(axis=1)" if one else ""


class Accuracy(Metric):
    """Share of the samples whose label has the highest score."""

    targets: ClassVar[str] = "labels"
    name: ClassVar[str] = "accuracy"

    def sums(self, scores: Any, targets: Any) -> Any:
        return (scores.argmax(1) == targets).float()[:, None]


class TopK(Metric):
    """Share of the samples whose label is among the k highest scores; of equal ones the first labels count as higher.

    Attributes
    ----------
    k : int >= 1
    """

    targets: ClassVar[str] = "labels"

    k: Annotated[int, Field(ge=1)] = 5

    @property
    def name(self) -> str:
        return f"top-{self.k}"

    def sums(self, scores: Any, targets: Any) -> Any:
        place = targets[:, None]
        own = scores.gather(1, place)
        above, equal = ((scores > own) | own.isnan()).sum(1, keepdim=True), (scores == own).cumsum(1).gather(1, place)
        return (above + equal <= self.k).float()


class MacroF1(Metric):
    """Mean over the labels of ``2 tp / (2 tp + fp + fn)``.

    The mean is over labels that a sample has or a model names, as in scikit-learn.
    """

    targets: ClassVar[str] = "labels"
    name: ClassVar[str] = "macro-f1"

    def width(self, outputs: int) -> int:
        """Three sums for each label: right predictions, predictions, samples."""
        return 3 * outputs

    def sums(self, scores: Any, targets: Any) -> Any:
        said, true = one_hot(scores.argmax(1), scores.shape[1]), one_hot(targets, scores.shape[1])
        return joined(said * true, said, true)

    def value(self, sums: FloatArray, samples: int) -> float:
        return macro_f1(sums)


def macro_f1(sums: FloatArray) -> float:
    """Return the mean of F1 over labels from the sums of `MacroF1.width`, shape (3 * labels,)."""
    right, said, true = sums.reshape(3, -1)
    met = said + true > 0
    return float(np.mean(2 * right[met] / (said + true)[met])) if met.any() else float("nan")


class Classification(IgnoringTask):
    """One label for each sample, in 0..classes-1; cross-entropy.

    Attributes
    ----------
    metrics : entries of `METRICS`
    flip : bool
        Whether each image of a training batch is mirrored with a chance of one half.
    shift : int >= 0
        Most pixels by which each image of a training batch is moved up or down, and to a side; what comes in is grey.
    ignore : int or several
        Labels whose samples are left out of training and tests, such as one for "unknown"; the run's notes count them.

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.zeros(2, 4), torch.tensor([1, 3])
    >>> [round(float(loss), 4) for loss in Classification().losses(scores, labels)]  # -log(1 / 4)
    [1.3863, 1.3863]
    >>> Classification(metrics=("accuracy", {"kind": "top-k", "k": 2})).metrics[1].name
    'top-2'
    """

    targets: ClassVar[str] = "labels"

    metrics: Metrics = (Accuracy(),)
    flip: bool = False
    shift: Annotated[int, Field(ge=0)] = 0
    ignore: Ignored[int] = ()

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({LABELS})

    @property
    def makes_batches(self) -> bool:
        return self.flip or self.shift > 0

    def outputs(self, data: Dataset) -> int:
        if data.classes is None:
            raise DataError(
                "learning.task: 'classification' needs a label for each sample, and the targets of this data set are "
                f"{data.targets_in_words}{_labels_in(data.train_y)}; allowed here: 'regression', 'next-token', "
                "'multi-label', or a task of your own"
            )
        if self.makes_batches and data.form != "images":
            raise DataError(
                f"learning.task: flip and shift move images, and these samples are {data.form}; allowed: "
                "flip = false and shift = 0"
            )
        if not self.ignore:
            return data.classes
        labels = np.concatenate([one[counted(one, self.ignore)] for one in (data.train_y, data.test_y)])
        return 1 + int(labels.max(initial=0))

    def losses(self, scores: Any, targets: Any) -> Any:
        return cross_entropy(scores, targets)

    def batch(self, inputs: Any, targets: Any, generator: Any) -> tuple[Any, Any]:
        return moved(inputs, generator, flip=self.flip, shift=self.shift), targets
