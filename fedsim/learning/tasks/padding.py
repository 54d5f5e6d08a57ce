"""Targets that count for nothing: those that fill up short sequences, and unknown ones."""

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from fedsim.learning.tasks.contracts import Metric, Task
from fedsim.learning.tasks.shapes import check_numbers


class PaddedTask(Task):
    """A task some of whose targets may count for nothing."""

    padding: float | None = None

    @model_serializer(mode="wrap")
    def _without_padding_that_is_none(self, told: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave an absent padding out of the options, since digests depend on them."""
        options: dict[str, Any] = told(self)
        return {name: value for name, value in options.items() if name != "padding" or value is not None}


class PaddedMetric(Metric):
    """A metric of targets some of which may count for nothing.

    Attributes
    ----------
    padding : targets equal to it count for nothing; that of the task by default
    """

    padding: float | None = None

    def bound(self, task: Task) -> Any:
        if self.padding is None and isinstance(task, PaddedTask):
            return self.model_copy(update={"padding": task.padding})
        return self


def errors(scores: Any, targets: Any, padding: float | None) -> Any:
    """Return scores less targets; 0 where a target is padding."""
    check_numbers(scores, targets)
    found = scores - targets
    return found if padding is None else found.masked_fill(targets == padding, 0.0)


def means(values: Any, targets: Any, padding: float | None) -> Any:
    """Return the mean of each sample over the targets that count, shape (n,); 0 for a sample without any."""
    if padding is None:
        return values.flatten(1).mean(1)
    return values.flatten(1).sum(1) / (targets != padding).float().flatten(1).sum(1).clamp_min(1.0)
