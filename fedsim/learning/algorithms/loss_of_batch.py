"""The contract of the loss of a batch, without an import of torch."""

from dataclasses import dataclass
from typing import Any

from fedsim.answers import AnswerError, Given, in_words
from fedsim.arrays import TensorLike


@dataclass(frozen=True)
class LossOfBatch:
    """A scalar tensor with a gradient with respect to the scores."""

    def __call__(self, answer: Any, given: Given) -> Any:
        allowed = "a tensor of one floating-point number, made of the scores, which are not detached"
        if not isinstance(answer, TensorLike):
            raise AnswerError(in_words(answer), allowed)
        if any(length != 1 for length in answer.shape):
            raise AnswerError(f"numbers of shape {tuple(answer.shape)}", allowed)
        if not answer.is_floating_point():
            raise AnswerError(f"a number of type {answer.dtype}", allowed)
        if given["batch"].scores.requires_grad and not answer.requires_grad:
            raise AnswerError("a loss without a gradient", allowed)
        return answer
