"""Checks of what a learner returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import AnswerError, Given, Numbers, in_words, shaped
from fedsim.arrays import IntArray


@dataclass(frozen=True)
class LabelCounts:
    """Whole numbers in a table with a row for each client."""

    def __call__(self, answer: object, given: Given) -> IntArray:
        labels = np.shape(answer)[1] if isinstance(answer, np.ndarray) and answer.ndim == 2 else 1
        return Numbers(shaped("clients", labels), least=0, dtype=np.int64)(answer, given)


@dataclass(frozen=True)
class Measured:
    """One array for each measurement, with a row for each update; an unknown number is NaN."""

    def __call__(self, answer: object, given: Given) -> dict[str, NDArray[Any]]:
        if not isinstance(answer, Mapping) or set(answer) != set(given["needs"]):
            raise AnswerError(in_words(answer), f"arrays of the names {', '.join(given['needs'])}")
        found, updates = {}, len(given["updates"])
        for name, column in answer.items():
            array = np.asarray(column)
            if array.dtype.kind != "f" or array.shape[:1] != (updates,):
                raise AnswerError(f"{name} = {in_words(array)}", f"floating-point numbers of {updates} rows")
            found[name] = array.copy()
        return found
