"""Next tokens: each place of a text has a token that comes next."""

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator

from fedsim.arrays import FloatArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.tasks.contracts import Metric, Metrics, Task
from fedsim.learning.tasks.shapes import check_places


def _said(value: Any) -> Any:
    return "none" if value is None else value


Padding = Annotated[int | Literal["none"], BeforeValidator(_said)]
"""A whole number that counts for nothing; ``"none"``, or None in Python, if every place counts."""


class _OfTokens(Metric):
    """Counts places of texts, those of padding left out.

    Attributes
    ----------
    padding : target that counts for nothing, ``"none"`` if all count; that of the task by default
    """

    targets: ClassVar[str] = "tokens"

    padding: int | Literal["none"] | None = None

    def width(self, outputs: int) -> int:
        """Two sums: of the places, and how many count."""
        return 2

    def bound(self, task: Task) -> Self:
        if self.padding is None and isinstance(task, NextToken):
            return self.model_copy(update={"padding": task.padding})
        return self

    def _counted(self, targets: Any) -> Any:
        return _counted(targets, "none" if self.padding is None else self.padding)

    def _cross_entropy(self, scores: Any, targets: Any) -> Any:
        return _cross_entropy(scores, targets, "none" if self.padding is None else self.padding)


class TokenAccuracy(_OfTokens):
    """Share of the places whose next token has the highest score."""

    name: ClassVar[str] = "accuracy"

    def sums(self, scores: Any, targets: Any) -> Any:
        from fedsim.learning.models.scoring import in_columns

        check_places(scores, targets)
        counted = self._counted(targets)
        return in_columns(((scores.argmax(-1) == targets) * counted).sum(1), counted.sum(1))

    def value(self, sums: FloatArray, samples: int) -> float:
        return float(sums[0] / sums[1]) if sums[1] else float("nan")


class Perplexity(_OfTokens):
    """Exponential of the mean cross-entropy of all places."""

    name: ClassVar[str] = "perplexity"

    def sums(self, scores: Any, targets: Any) -> Any:
        from fedsim.learning.models.scoring import in_columns

        check_places(scores, targets)
        counted = self._counted(targets)
        return in_columns((self._cross_entropy(scores, targets) * counted).sum(1), counted.sum(1))

    def value(self, sums: FloatArray, samples: int) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(sums[0] / sums[1])) if sums[1] else float("nan")


class NextToken(Task):
    """The next token at each place of a text: int64 of shape (n, length); cross-entropy.

    A model gives scores of shape (n, length, tokens). The loss of a text is the mean over its places without padding,
    and 0 for a text of padding alone.

    Attributes
    ----------
    metrics : entries of `METRICS`
    padding : int or ``"none"``
        Target that counts for nothing; it fills up short texts. From 0 on it is a token; below 0, such as torch's
        -100, it is none. ``"none"``, or None in Python: every place counts.

    Examples
    --------
    >>> import torch
    >>> scores, targets = torch.zeros(1, 3, 5), torch.tensor([[4, 2, 0]])
    >>> round(float(NextToken().losses(scores, targets)), 4)  # log(5) at the two places without padding
    1.6094
    """

    targets: ClassVar[str] = "tokens"

    metrics: Metrics = (TokenAccuracy(), Perplexity())
    padding: Padding = 0

    def outputs(self, data: Dataset) -> int:
        if data.train_y.dtype != np.int64 or data.train_y.ndim != 2:
            raise DataError(
                "learning.task: 'next-token' needs targets of int64 of shape (n, length), and those of this data set "
                f"are {data.targets_in_words}"
            )
        parts = (data.train_y, data.test_y)
        least = min(int(one[one != self.padding].min(initial=0)) for one in parts)
        if least < 0:
            raise DataError(
                f"learning.task: 'next-token' needs targets that are tokens, from 0 on, or padding = {self.padding!r}; "
                f"found {least}"
            )
        return 1 + max(int(data.train_y.max()), int(data.test_y.max()), (data.vocabulary or 0) - 1)

    def losses(self, scores: Any, targets: Any) -> Any:
        check_places(scores, targets)
        counted = _counted(targets, self.padding)
        return (_cross_entropy(scores, targets, self.padding) * counted).sum(1) / counted.sum(1).clamp_min(1.0)


def _counted(targets: Any, padding: int | Literal["none"]) -> Any:
    """Return 1 for each target that counts and 0 for padding."""
    return (targets != (-1 if padding == "none" else padding)).float()


def _cross_entropy(scores: Any, targets: Any, padding: int | Literal["none"]) -> Any:
    """Return the cross-entropy of each target; that of token 0 for padding below 0."""
    from fedsim.learning.models.scoring import cross_entropy

    no_token = padding != "none" and padding < 0
    return cross_entropy(scores, targets.clamp_min(0) if no_token else targets)
