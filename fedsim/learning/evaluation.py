"""An evaluation of a model, also one that may still run while the simulation goes on."""

from dataclasses import dataclass
from typing import Final, Protocol

from fedsim.answers import AnswerError, Contract, Flag, Given, Numbers, in_words, shaped


@dataclass(frozen=True)
class Evaluation:
    """Share of right answers and mean loss of a model on some samples."""

    accuracy: float
    loss: float


class PendingEvaluation(Protocol):
    """An evaluation that may still run while the simulation goes on."""

    def done(self) -> bool:
        """Return whether its result is there."""
        ...

    def result(self) -> Evaluation:
        """Return the evaluation, waiting for it if need be; raise what it has raised."""
        ...


@dataclass(frozen=True)
class KnownEvaluation:
    """A `PendingEvaluation` whose result is there from the start."""

    evaluation: Evaluation

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self) -> Evaluation:
        """Return the evaluation."""
        return self.evaluation


@dataclass(frozen=True)
class _EvaluationOf:
    """An evaluation; a model that is no number may have a loss that is none."""

    def __call__(self, answer: object, given: Given) -> Evaluation:
        """Return a checked copy."""
        if not isinstance(answer, Evaluation):
            raise AnswerError(in_words(answer), "an Evaluation")
        one = shaped()
        accuracy = Numbers(one, least=0, most=1, nan=True)(answer.accuracy, given)
        loss = Numbers(one, infinite=True, nan=True)(answer.loss, given)
        return Evaluation(float(accuracy), float(loss))


PENDING_EVALUATION: Final = Contract("evaluation", PendingEvaluation, {"done": Flag(), "result": _EvaluationOf()})
