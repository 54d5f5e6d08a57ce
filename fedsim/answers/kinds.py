"""Kinds of answers: an array of numbers, a mask, a number, an object of a type; each checks and copies."""

import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Given = Mapping[str, Any]
"""What a member was asked with: its arguments by the names of its parameters, and what is known of the run."""
ShapeOf = Callable[[Given], tuple[int, ...]]
_LARGEST: Final = float(np.finfo(np.float64).max)
_SHORT: Final = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 80


class AnswerError(Exception):
    """An answer that its contract does not allow."""

    def __init__(self, found: str, allowed: str, at: int | None = None) -> None:
        super().__init__(found, allowed)
        self.found, self.allowed, self.at = found, allowed, at


class Kind(Protocol):
    """A kind of answer."""

    def __call__(self, answer: object, given: Given, /) -> Any:
        """Return an answer that fedsim may keep, a copy of what can be changed."""


def same_shape(name: str) -> ShapeOf:
    """Return what tells the shape of an argument, which is that of the answer."""

    def shape_of(given: Given) -> tuple[int, ...]:
        value = given[name]
        return value.shape if type(value) is np.ndarray else np.shape(value)

    return shape_of


def shaped(*sizes: str | int) -> ShapeOf:
    """Return what tells a shape of sizes: whole numbers, names of arguments that are counts, or names of arrays."""

    def size_of(size: str | int, given: Given) -> int:
        if isinstance(size, int):
            return size
        value = given[size]
        return len(value) if hasattr(value, "__len__") else int(value)

    return lambda given: tuple(size_of(size, given) for size in sizes)


@dataclass(frozen=True)
class Numbers:
    shape: ShapeOf | None
    least: float = -_LARGEST
    most: float = _LARGEST
    infinite: bool = False
    nan: bool = False
    dtype: type[np.generic] = np.float64

    def __call__(self, answer: object, given: Given) -> NDArray[Any]:
        wanted = None if self.shape is None else self.shape(given)
        # The usual case: an array as declared, whose extremes are in range; NaN passes no comparison.
        if type(answer) is np.ndarray and answer.dtype == self._type and (wanted is None or wanted == answer.shape):
            values = answer.copy()
        else:
            values = self._converted(answer, wanted)
        # Reductions, in half the time of the methods; Python's own numbers compare exactly.
        low, high = np.minimum.reduce, np.maximum.reduce
        if values.size and not (
            self.least <= low(values, axis=None).item() and high(values, axis=None).item() <= self._most
        ):
            self._check_each(values, wanted)
        return values

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)

    @cached_property
    def _most(self) -> float:
        return np.inf if self.infinite else self.most

    def _converted(self, answer: object, wanted: tuple[int, ...] | None) -> NDArray[Any]:
        whole = issubclass(self.dtype, np.integer)
        try:
            array = np.asarray(answer)
        except Exception as error:
            raise AnswerError(in_words(answer), self._allowed(wanted)) from error
        if array.shape == (0,) and isinstance(answer, list | tuple):
            array = array.astype(self.dtype)  # an empty list has no type of its own
        misshapen = wanted is not None and array.shape != wanted
        if array.dtype.kind not in ("iu" if whole else "iuf") or misshapen:
            at, found = None, in_words(answer)
            if whole and array.dtype.kind == "f" and array.ndim == 1 and not misshapen:
                at = next(iter(np.flatnonzero(array != np.floor(array)).tolist()), None)
                found = found if at is None else str(array[at].item())
            raise AnswerError(found, self._allowed(wanted), at)
        if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max and whole:
            raise AnswerError(in_words(answer), self._allowed(wanted))
        return array.astype(self.dtype)

    def _check_each(self, values: NDArray[Any], wanted: tuple[int, ...] | None) -> None:
        wide = values.astype(np.float64) if values.dtype.kind == "f" else values
        right = (wide >= self.least) & (wide <= self._most)
        if self.nan:
            right |= np.isnan(wide)
        if not right.all():
            first = np.argwhere(~right)[0].tolist()
            raise AnswerError(str(values.item(*first)), self._allowed(wanted), first[0] if first else None)

    def _allowed(self, wanted: tuple[int, ...] | None) -> str:
        numbers = "whole numbers" if issubclass(self.dtype, np.integer) else "numbers"
        what = f"an array of {numbers}" if wanted is None else f"an array of {numbers} of shape {wanted}"
        return f"{what}{range_in_words(self.least, self._most)}{', or NaN' if self.nan else ''}"


@dataclass(frozen=True)
class Mask:
    """An array of truth values."""

    shape: ShapeOf

    def __call__(self, answer: object, given: Given) -> NDArray[np.bool_]:
        wanted = self.shape(given)
        if isinstance(answer, np.ndarray) and answer.dtype == np.bool_ and answer.shape == wanted:
            return answer.copy()
        raise AnswerError(in_words(answer), f"an array of True and False of shape {wanted}")


@dataclass(frozen=True)
class Number:
    least: float = -_LARGEST
    most: float = _LARGEST
    above: bool = False
    infinite: bool = False
    whole: bool = False
    none: bool = False

    def __call__(self, answer: object, given: Given) -> Any:
        if answer is None and self.none:
            return None
        value: Any = answer.item() if isinstance(answer, np.ndarray | np.generic) and answer.ndim == 0 else answer
        most = np.inf if self.infinite else self.most
        allowed = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        if not allowed or not self.least <= value <= most or (self.above and value == self.least):
            kind = "a whole number" if self.whole else "a number"
            bounds = range_in_words(self.least, most, above=self.above)
            raise AnswerError(in_words(answer), f"{kind}{bounds}{', or None' if self.none else ''}")
        return value if self.whole else float(value)


@dataclass(frozen=True)
class Flag:
    def __call__(self, answer: object, given: Given) -> bool:
        if not isinstance(answer, bool | np.bool_):
            raise AnswerError(in_words(answer), "True or False")
        return bool(answer)


@dataclass(frozen=True)
class InstanceOf:
    type: type

    def __call__(self, answer: object, given: Given) -> Any:
        if not isinstance(answer, self.type):
            raise AnswerError(in_words(answer), f"an instance of {self.type.__module__}.{self.type.__qualname__}")
        return answer


@dataclass(frozen=True)
class OneOf:
    values: Collection[Any]

    def __call__(self, answer: object, given: Given) -> Any:
        if not any(answer is value or (type(answer) is type(value) and answer == value) for value in self.values):
            raise AnswerError(in_words(answer), ", ".join(map(repr, self.values)))
        return answer


@dataclass(frozen=True)
class OptionalOf:
    """None, or an answer of a kind."""

    kind: Kind

    def __call__(self, answer: object, given: Given) -> Any:
        if answer is None:
            return None
        try:
            return self.kind(answer, given)
        except AnswerError as error:
            raise AnswerError(error.found, f"{error.allowed}, or None", error.at) from None


@dataclass(frozen=True)
class Several:
    """A list or tuple of answers of a kind."""

    kind: Kind

    def __call__(self, answer: object, given: Given) -> list[Any]:
        if not isinstance(answer, list | tuple):
            raise AnswerError(in_words(answer), "a list or a tuple")
        return [self.kind(one, given) for one in answer]


@dataclass(frozen=True)
class Free:
    """Anything: what the member does is guarded, and what it returns is checked where it is used."""

    def __call__(self, answer: object, given: Given) -> Any:
        return answer


def in_words(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"{_SHORT.repr(answer.tolist())}, an array of {answer.dtype} of shape {answer.shape}"
    if answer is None or isinstance(answer, bool | int | float | str | list | tuple | np.generic):
        return _SHORT.repr(answer)
    return f"a {type(answer).__name__}"


def range_in_words(least: float, most: float, *, above: bool = False) -> str:
    """Return bounds in words; nothing for numbers without bounds."""
    low = "" if least <= -_LARGEST else f"above {least:.16g}" if above else f"of at least {least:.16g}"
    high = "" if most >= _LARGEST else f"at most {most:.16g}"
    words = " and ".join(part for part in (low, high) if part)
    kind = "" if most == np.inf else ", finite"
    return f" {words}{kind}" if words else kind
