"""An evaluation of a model, which may still run while the simulation goes on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from fedsim.answers import AnswerError, Contract, Flag, Given, Numbers, in_words, shaped
from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Evaluation:
    """Loss, accuracy and metrics of a model on some samples; NaN, all of them, where the scores of a sample are.

    Else a model that has diverged would be right wherever the first label is: the greatest of NaN has index 0. Where
    clients use models of their ``own`` it is the mean of these over the clients, each on its local test samples.
    """

    accuracy: float
    loss: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    sums: tuple[float, ...] = ()
    samples: int = 0
    parts: "tuple[Evaluation, ...]" = ()
    has_loss: bool = True
    own: bool = False
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.has_loss and math.isnan(self.loss):
            object.__setattr__(self, "accuracy", math.nan)
            object.__setattr__(self, "metrics", dict.fromkeys(self.metrics, math.nan))

    def value(self, name: str) -> float:
        """Return the loss, the accuracy or a metric by its name; NaN where there is none of that name."""
        known = {"accuracy": self.accuracy, **self.metrics, "loss": self.loss}
        return known.get(name, float("nan"))


class ClientEvaluations(NamedTuple):
    """Loss, accuracy and metrics on each client's local test samples."""

    accuracy: FloatArray
    loss: FloatArray
    metrics: Mapping[str, FloatArray]
    samples: IntArray
    own: bool
    held_out: bool


class PendingEvaluation(Protocol):
    """An evaluation that may still run while the simulation goes on.

    Examples
    --------
    >>> pending = KnownEvaluation(Evaluation(accuracy=0.75, loss=0.5))
    >>> pending.done(), pending.result().loss  # one that a thread works on says False at first
    (True, 0.5)
    """

    def done(self) -> bool:
        """Return whether its result is there."""

    def result(self) -> Evaluation:
        """Return the evaluation, waiting for it if need be; raise what it has raised."""


@dataclass(frozen=True)
class KnownEvaluation:
    evaluation: Evaluation

    def done(self) -> bool:
        return True

    def result(self) -> Evaluation:
        return self.evaluation


def _evaluation_of(answer: object, given: Given) -> Evaluation:
    """Check an evaluation; the loss of a model that has diverged may be NaN."""
    if not isinstance(answer, Evaluation):
        raise AnswerError(in_words(answer), "an Evaluation")
    one = shaped()
    accuracy = Numbers(one, least=0, most=1, nan=True)(answer.accuracy, given)
    loss = Numbers(one, infinite=True, nan=True)(answer.loss, given)
    return replace(answer, accuracy=float(accuracy), loss=float(loss))


PENDING_EVALUATION: Final = Contract("evaluation", PendingEvaluation, {"done": Flag(), "result": _evaluation_of})


def evaluations_of_clients(answer: object, given: Given) -> ClientEvaluations:
    if not isinstance(answer, ClientEvaluations):
        raise AnswerError(in_words(answer), "ClientEvaluations")
    accuracy = Numbers(shaped("clients"), least=0, most=1, nan=True)(answer.accuracy, given)
    number = Numbers(shaped("clients"), infinite=True, nan=True)
    loss, metrics = number(answer.loss, given), {name: number(one, given) for name, one in answer.metrics.items()}
    samples = Numbers(shaped("clients"), least=0, dtype=np.int64)(answer.samples, given)
    return ClientEvaluations(accuracy, loss, metrics, samples, bool(answer.own), bool(answer.held_out))
