"""Next tokens: each place of a text has a token that comes next."""

from typing import Any, ClassVar

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.models.scoring import cross_entropy, in_columns
from fedsim.learning.tasks.contracts import Metrics
from fedsim.learning.tasks.ignored import Ignored, IgnoringMetric, IgnoringTask, check_places, counted


class _OfTokens(IgnoringMetric):
    """Counts places of texts, those that are ignored left out."""

    targets: ClassVar[str] = "tokens"

    ignore: Ignored[int] | None = None

    def width(self, outputs: int) -> int:
        """Two sums: of the places, and how many count."""
        return 2


class TokenAccuracy(_OfTokens):
    """Share of the places whose next token has the highest score."""

    name: ClassVar[str] = "accuracy"

    def sums(self, scores: Any, targets: Any) -> Any:
        check_places(scores, targets)
        known = counted(targets, self.ignore or ()).float()
        return in_columns(((scores.argmax(-1) == targets) * known).sum(1), known.sum(1))


class Perplexity(_OfTokens):
    """Exponential of the mean cross-entropy of all places."""

    name: ClassVar[str] = "perplexity"

    def sums(self, scores: Any, targets: Any) -> Any:
        check_places(scores, targets)
        known = counted(targets, self.ignore or ())
        return in_columns(_cross_entropy(scores, targets, known).sum(1), known.float().sum(1))

    def value(self, sums: FloatArray, samples: int) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(super().value(sums, samples)))


class NextToken(IgnoringTask):
    """The next token at each place of a text: int64 of shape (n, length); cross-entropy.

    A model gives scores of shape (n, length, tokens). The loss of a text is the mean over its places that count, and 0
    without any. All count, but those that fill short texts up (`fedsim.learning.dataset_of`) and those of ``ignore``.

    Attributes
    ----------
    metrics : entries of `METRICS`
    ignore : int or several
        Targets that count for nothing: a token, or a number that is none, such as torch's -100.

    Examples
    --------
    >>> import torch
    >>> scores, targets = torch.zeros(1, 3, 5), torch.tensor([[4, 2, 0]])
    >>> round(float(NextToken(ignore=0).losses(scores, targets)), 4)  # log(5) at the two places that count
    1.6094
    """

    targets: ClassVar[str] = "tokens"

    metrics: Metrics = (TokenAccuracy(), Perplexity())
    ignore: Ignored[int] = ()

    def outputs(self, data: Dataset) -> int:
        if data.train_y.dtype != np.int64 or data.train_y.ndim != 2:
            raise DataError(
                "learning.task: 'next-token' needs targets of int64 of shape (n, length), and those of this data set "
                f"are {data.targets_in_words}"
            )
        ignored = self.bound(data).ignore
        tokens = [one[counted(one, ignored)] for one in (data.train_y, data.test_y)]
        if (least := min(int(one.min(initial=0)) for one in tokens)) < 0:
            raise DataError(
                f"learning.task: 'next-token' needs targets that are tokens, from 0 on, or those of ignore = "
                f"{list(self.ignore)}; found {least}"
            )
        return 1 + max(int(tokens[0].max(initial=0)), int(tokens[1].max(initial=0)), (data.tokens or 0) - 1)

    def losses(self, scores: Any, targets: Any) -> Any:
        check_places(scores, targets)
        known = counted(targets, self.ignore)
        return _cross_entropy(scores, targets, known).sum(1) / known.float().sum(1).clamp_min(1.0)


def _cross_entropy(scores: Any, targets: Any, known: Any) -> Any:
    """Return the cross-entropy of each target; 0 where it does not count, of scores of -inf too."""
    return cross_entropy(scores, targets.masked_fill(~known, 0)).masked_fill(~known, 0.0)
