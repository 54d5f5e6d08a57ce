"""Shapes of samples, as models get them."""

import math
from collections.abc import Iterable
from typing import NamedTuple, Self

Shape = tuple[int, ...]
"""Channels, height and width of an image; lengths of the axes of other numbers; `TokenShape` of a text."""


class _Sizes(NamedTuple):
    length: int
    vocabulary: int


class TokenShape(_Sizes):
    """Shape of texts of the same length, with the token that fills up shorter ones; None if there is none."""

    padding: int | None

    def __new__(cls, length: int, vocabulary: int, padding: int | None = 0) -> Self:
        made = super().__new__(cls, length, vocabulary)
        made.padding = padding
        return made

    def __getnewargs__(self) -> tuple[int, int, int | None]:
        return (*self, self.padding)

    def __repr__(self) -> str:
        more = "" if self.padding == 0 else f", padding={self.padding}"
        return f"TokenShape(length={self.length}, vocabulary={self.vocabulary}{more})"


class TypedShape(tuple[int, ...]):
    """Lengths of the axes of a tensor that is not of float32, with its type."""

    dtype: str

    def __new__(cls, sizes: Iterable[int], dtype: str) -> Self:
        made = super().__new__(cls, sizes)
        made.dtype = dtype
        return made

    def __getnewargs__(self) -> tuple[tuple[int, ...], str]:
        return tuple(self), self.dtype

    def __repr__(self) -> str:
        return f"{tuple(self)} of {self.dtype}"


def positions(shape: Shape) -> int:
    """Return at how many places of a sample a layer multiplies by one of its weights at most.

    >>> positions((3, 32, 32)), positions(TokenShape(30, 5000)), positions((30, 300)), positions((60,))
    (1024, 30, 30, 1)
    """
    if isinstance(shape, TokenShape):
        return shape.length
    return math.prod(shape[1:]) if len(shape) == 3 else math.prod(shape[:-1])
