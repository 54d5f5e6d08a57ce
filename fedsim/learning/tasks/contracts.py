"""The contracts of a task and of a metric, without torch.

Scores and targets are torch's tensors; a part of your own imports torch itself where tensors alone are not enough.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self, SupportsFloat

from pydantic import Field, model_validator

from fedsim.answers import AnswerError, Contract, Flag, Free, Given, Number, in_words, refuse_uncalled
from fedsim.arrays import FloatArray, TensorLike
from fedsim.learning.data.datasets import Dataset
from fedsim.registry import Component, Registry, Slot

_LOSS: Final = "loss"


class Metric(Component):
    """A number by which a model is judged, made of sums over samples.

    Sums are added up over batches and over clients before the number is made of them, so that it is that of all samples
    at once. Derive from it, add options as fields, and write `sums` and `value`.

    Attributes
    ----------
    targets : str
        The kind of targets that it counts, as of `Task`; empty for any.

    Examples
    --------
    >>> class Confidence(Metric):
    ...     def sums(self, scores, targets):
    ...         return scores.softmax(1).amax(1)[:, None]
    >>> import torch
    >>> found = Confidence().sums(torch.zeros(3, 4), torch.zeros(3)).sum(0).numpy()
    >>> Confidence().name, Confidence().value(found, samples=3)  # four equal scores
    ('Confidence', 0.25)
    """

    targets: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Name of the metric in tables, neither empty nor ``"loss"``; by default that of the class."""
        return type(self).__name__

    def width(self, outputs: int) -> int:
        """Return how many sums it is made of.

        Parameters
        ----------
        outputs : how many numbers the model gives, as of `Task.outputs`
        """
        return 1

    def sums(self, scores: Any, targets: Any) -> Any:
        """Return what each of n samples adds to the sums, a tensor of shape (n, width).

        Parameters
        ----------
        scores : what the model says, shape (n, ...)
        targets : of the samples, shape (n, ...)
        """
        raise NotImplementedError

    def value(self, sums: FloatArray, samples: int) -> float:
        """Return the metric, NaN where there is none; by default the mean of the first sum.

        Parameters
        ----------
        sums : over all samples, float64, shape (width,)
        samples : how many these are, at least 1
        """
        return float(sums[0]) / samples

    def bound(self, task: "Task") -> Self:
        """Return the metric for a task; by default itself. A metric with options that the task knows takes them.

        Parameters
        ----------
        task : whose models are evaluated
        """
        return self


METRICS: Final = Registry(
    "metric",
    "fedsim.metrics",
    ("sums", "value"),
    {
        "accuracy": "fedsim.learning.tasks.of_labels:Accuracy",
        "top-k": "fedsim.learning.tasks.of_labels:TopK",
        "macro-f1": "fedsim.learning.tasks.of_labels:MacroF1",
        "mean-squared-error": "fedsim.learning.tasks.of_numbers:MeanSquaredError",
        "mean-absolute-error": "fedsim.learning.tasks.of_numbers:MeanAbsoluteError",
        "token-accuracy": "fedsim.learning.tasks.of_tokens:TokenAccuracy",
        "perplexity": "fedsim.learning.tasks.of_tokens:Perplexity",
        "subset-accuracy": "fedsim.learning.tasks.of_label_sets:SubsetAccuracy",
        "micro-f1-of-sets": "fedsim.learning.tasks.of_label_sets:MicroF1OfSets",
        "macro-f1-of-sets": "fedsim.learning.tasks.of_label_sets:MacroF1OfSets",
    },
)

Metrics = Annotated[tuple[Annotated[Metric, Slot(METRICS)], ...], Field(strict=False)]
"""Metrics as a task's settings name them."""


class Task(Component):
    """What is learned about a sample; derive from it, add options as fields, and write `outputs` and `losses`.

    Attributes
    ----------
    metrics : by which models are judged, beside the mean loss
    targets : str
        The kind of its targets: ``"labels"``, ``"numbers"``, ``"tokens"``, ``"label-sets"``, or a name of your own. A
        metric of another kind is refused. Empty for any.

    Examples
    --------
    >>> class Sum(Task):
    ...     def outputs(self, data):
    ...         return 1
    ...     def losses(self, scores, targets):
    ...         return (scores[:, 0] - targets.sum(1)).square()
    >>> import torch
    >>> Sum().losses(torch.tensor([[5.0]]), torch.tensor([[1.0, 2.0]])).tolist()  # (5 - 3)^2
    [4.0]
    """

    targets: ClassVar[str] = ""

    metrics: Metrics = ()

    @model_validator(mode="after")
    def _has_metrics_of_its_targets(self) -> Self:
        for metric in self.metrics:
            if metric.targets and self.targets and metric.targets != self.targets:
                known = [kind for kind in METRICS.builtin if METRICS.load(kind).targets == self.targets]
                raise ValueError(
                    f"metrics: {METRICS.kind_of(metric)!r} counts {metric.targets}, and the targets of this task are "
                    f"{self.targets}; allowed: {', '.join(known)}, or a metric of your own"
                )
        return self

    @model_validator(mode="after")
    def _says_that_it_makes_batches(self) -> Self:
        refuse_uncalled(type(self), Task, batch="makes_batches")
        return self

    def bound(self, data: Dataset) -> Self:
        """Return the task for a data set; by default itself.

        fedsim's tasks leave out what fills targets of several lengths up, ``data.target_fill``.

        Parameters
        ----------
        data : on which models are trained and evaluated
        """
        return self

    @property
    def makes_batches(self) -> bool:
        """Whether `batch` changes anything. Executors that train a cohort as one computation refuse such a task."""
        return False

    def outputs(self, data: Dataset) -> int:
        """Return how many numbers the model gives for a sample (for each place of a sequence), at least 1.

        Models get it as ``classes``.

        Parameters
        ----------
        data : with targets of the task

        Raises
        ------
        DataError
            If the targets of the data set are not those of the task.
        """
        raise NotImplementedError

    def losses(self, scores: Any, targets: Any) -> Any:
        """Return the loss of each of n samples, a tensor of shape (n,); trainings lower its mean over a batch.

        Parameters
        ----------
        scores : what the model says, float32, shape (n, ...)
        targets : of the samples, of the type that they have in the data set, shape (n, ...)
        """
        raise NotImplementedError

    def batch(self, inputs: Any, targets: Any, generator: Any) -> tuple[Any, Any]:
        """Return inputs and targets of a training batch, such as augmented ones; by default as they are.

        It is called only if `makes_batches`, and never in evaluations.

        Parameters
        ----------
        inputs, targets : tensors of shape (n, ...)
        generator : ``torch.Generator`` of the client's training; all draws come from it
        """
        return inputs, targets


@dataclass(frozen=True)
class _OfEach:
    """A tensor with one row for each sample."""

    axes: int

    def __call__(self, answer: Any, given: Given) -> Any:
        wanted = tuple(given["targets"].shape[:1])
        shape = answer.shape if isinstance(answer, TensorLike) else None
        if shape is None or len(shape) != self.axes or tuple(shape[:1]) != wanted:
            found = in_words(answer) if shape is None else f"numbers of shape {tuple(shape)}"
            rest = "" if self.axes == 1 else " with the sums of each"
            raise AnswerError(found, f"a tensor of {self.axes} axes{rest}, of {wanted[0]} samples")
        return answer


def _losses(answer: Any, given: Given) -> Any:
    """Check a loss for each sample, with a gradient with respect to the scores."""
    losses = _OfEach(1)(answer, given)
    if not losses.is_floating_point():
        raise AnswerError(f"numbers of type {losses.dtype}", "floating-point numbers")
    if given["scores"].requires_grad and not losses.requires_grad:
        raise AnswerError("losses without a gradient", "losses made of the scores, which are not detached")
    return losses


def _value(answer: object, _: Given) -> float:
    if isinstance(answer, SupportsFloat):
        with suppress(TypeError, ValueError, RuntimeError):
            return float(answer)
    raise AnswerError(in_words(answer), "a number; nan where there is none")


def _name(answer: object, _: Given) -> str:
    if not isinstance(answer, str) or answer in ("", _LOSS):
        raise AnswerError(in_words(answer), f"a text, neither empty nor {_LOSS!r}, which is the mean loss")
    return answer


def _pair(answer: object, _: Given) -> tuple[Any, Any]:
    """Check inputs and targets: two tensors of as many rows."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise AnswerError(in_words(answer), "inputs and targets")
    inputs, targets = answer
    for one in (inputs, targets):
        if not isinstance(one, TensorLike) or not one.shape:
            raise AnswerError(in_words(one), "tensors of inputs and of targets, with a row for each sample")
    if inputs.shape[0] != targets.shape[0]:
        found = f"{inputs.shape[0]} inputs and {targets.shape[0]} targets"
        raise AnswerError(found, "tensors of inputs and of targets, with a row for each sample")
    return inputs, targets


TASK: Final = Contract(
    "task",
    Task,
    {
        "bound": Free(),
        "outputs": Number(least=1, whole=True),
        "makes_batches": Flag(),
        "losses": _losses,
        "batch": _pair,
    },
)

METRIC: Final = Contract(
    "metric",
    Metric,
    {
        "name": _name,
        "width": Number(least=1, whole=True),
        "sums": _OfEach(2),
        "value": _value,
        "bound": Free(),
    },
)

TASKS: Final = Registry(
    "task",
    "fedsim.tasks",
    ("outputs", "losses"),
    {
        "classification": "fedsim.learning.tasks.of_labels:Classification",
        "regression": "fedsim.learning.tasks.of_numbers:Regression",
        "next-token": "fedsim.learning.tasks.of_tokens:NextToken",
        "multi-label": "fedsim.learning.tasks.of_label_sets:MultiLabel",
    },
    default="classification",
)
