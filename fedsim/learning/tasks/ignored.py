"""Targets and scores of one shape, and targets that count for nothing: named by a scenario, or filling sequences up."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import BeforeValidator, SerializerFunctionWrapHandler, model_serializer

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.tasks.contracts import Metric, Task


def check_numbers(scores: Any, targets: Any) -> None:
    if scores.shape != targets.shape:
        raise ValueError(f"{_in_words(scores, targets)}; allowed: scores of the shape of the targets")


def check_places(scores: Any, targets: Any) -> None:
    """Refuse scores that have not as many places as the targets, and then one number for each token."""
    if scores.shape[:-1] != targets.shape:
        raise ValueError(
            f"{_in_words(scores, targets)}; allowed: scores of the shape of the targets, and then one for each token"
        )


def _in_words(scores: Any, targets: Any) -> str:
    said, true = (", ".join(map(str, ("n", *one.shape[1:]))) for one in (scores, targets))
    same = "" if scores.shape[:1] == targets.shape[:1] else f", of {len(scores)} and {len(targets)} samples"
    return f"scores of shape ({said}) and targets of shape ({true}){same}"


_Value = TypeVar("_Value")
_IGNORE: Final = "ignore"


def _several(value: Any) -> Any:
    """Return one value as several, and none at all for None and ``"none"``."""
    if value is None or (isinstance(value, str) and value == "none"):
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Ignored = Annotated[tuple[_Value, ...], BeforeValidator(_several)]
"""One value or several; none of them with ``"none"``, or None in Python."""


class IgnoringTask(Task):
    """A task some of whose targets may count for nothing."""

    ignore: Ignored[float] = ()

    def bound(self, data: Dataset) -> Self:
        """Return the task that leaves out what fills targets of the data up, too."""
        fill = data.target_fill
        if fill is None or fill in self.ignore:
            return self
        return self.model_copy(update={_IGNORE: (*self.ignore, fill)})

    def samples(self, data: Dataset, rows: list[IntArray]) -> tuple[Dataset, list[IntArray]]:
        """Return the data and the training samples of each client without those of which no target counts."""
        ignored = self.bound(data).ignore
        if not ignored:
            return data, rows
        train, test = (counted(one, ignored).reshape(len(one), -1).any(1) for one in (data.train_y, data.test_y))
        tested = replace(data, test_x=data.test_x[test], test_y=data.test_y[test])
        return tested, [part[train[part]] for part in rows]

    @model_serializer(mode="wrap")
    def _without_an_empty_ignore(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave an empty ``ignore`` out of the options, since digests depend on them."""
        options: dict[str, Any] = dump(self)
        return {name: value for name, value in options.items() if name != _IGNORE or value}


class IgnoringMetric(Metric):
    """A metric of targets some of which may count for nothing.

    Attributes
    ----------
    ignore : targets equal to it count for nothing; those of the task by default
    """

    ignore: Ignored[float] | None = None

    def bound(self, task: Task) -> Any:
        if self.ignore is None and isinstance(task, IgnoringTask):
            return self.model_copy(update={_IGNORE: task.ignore})
        return self

    def width(self, outputs: int) -> int:
        """One sum, over all samples; where targets are ignored two: over what counts, and how much counts."""
        return 2 if self.ignore else 1

    def value(self, sums: FloatArray, samples: int) -> float:
        if len(sums) == 1:
            return super().value(sums, samples)
        return float(sums[0] / sums[1]) if sums[1] else float("nan")


def counted(targets: Any, ignore: Collection[float]) -> Any:
    """Return whether each target counts, an array or tensor of their shape."""
    found = targets == targets  # noqa: PLR0124 (all of them, of NumPy and of torch)
    for value in ignore:
        found = found & (targets != value)
    return found


def errors(scores: Any, targets: Any, ignore: Sequence[float]) -> Any:
    """Return scores less targets; 0 where a target counts for nothing."""
    check_numbers(scores, targets)
    found = scores - targets
    return found.masked_fill(~counted(targets, ignore), 0.0) if ignore else found


def means(values: Any, targets: Any, ignore: Sequence[float]) -> Any:
    """Return the mean of each sample over the targets that count, shape (n,); 0 for a sample without any."""
    if not ignore:
        return values.flatten(1).mean(1)
    return values.flatten(1).sum(1) / counted(targets, ignore).float().flatten(1).sum(1).clamp_min(1.0)
