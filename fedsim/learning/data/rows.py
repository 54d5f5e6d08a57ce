"""Rows of arrays and tensors, also of several lengths, as arrays of NumPy."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from numbers import Number
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import Shaped, TensorLike
from fedsim.errors import DataError

Rows = NDArray[Any] | list[Any]
"""An array, or a list of samples of several lengths."""

_NUMBERS: Final = "biufc"
"""Kinds of NumPy's types that are numbers, truth values among them."""


@runtime_checkable
class Framed(Protocol):
    """A table of columns with types of their own, such as a frame of pandas."""

    @property
    def dtypes(self) -> Any: ...

    @property
    def shape(self) -> Any: ...

    @property
    def columns(self) -> Any: ...


def rows_of(value: Any) -> Rows:
    """Return arrays, tensors and frames as an array, and a list, or an array of sequences, as a list of samples."""
    if isinstance(value, list):
        return value
    if not isinstance(value, TensorLike):
        found = np.asarray(value)
        if found.dtype == object and found.ndim == 1 and found.size and isinstance(found[0], list | Shaped):
            return list(found)
    return array_of(value)


def padded(rows: Sequence[Any], fill: float = 0) -> NDArray[Any]:
    """Return samples of different lengths as one array, filled up at their end."""
    arrays = [array_of(row) for row in rows]
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    if len({(array.ndim, array.shape[1:]) for array in arrays}) > 1 or not arrays[0].ndim:
        shapes = sorted({array.shape for array in arrays})
        raise DataError(
            f"samples of the shapes {shapes[0]} and {shapes[-1]}; allowed: shapes that differ in their length"
        )
    longest = max(len(array) for array in arrays)
    kind = np.result_type(*arrays)
    if kind.kind == "b" and fill not in (0, 1):
        kind = np.dtype(np.uint8)
    elif kind.kind == "f":
        kind = np.result_type(kind, np.float32)
    found = np.full((len(arrays), longest, *arrays[0].shape[1:]), _of_kind(fill, kind), dtype=kind)
    for row, array in zip(found, arrays, strict=True):
        row[: len(array)] = array
    return found


def array_of(value: Any) -> NDArray[Any]:
    """Return an array or a tensor as an array of numbers; bfloat16, which NumPy lacks, becomes float32."""
    torch = sys.modules.get("torch")  # who hands over a tensor has imported it
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    found = np.asarray(value)
    if found.dtype == object and found.ndim:
        with suppress(ValueError):  # columns of several types, and of pandas' own
            plain = np.array(found.tolist())
            found = plain if plain.dtype.kind in _NUMBERS else found
    if found.dtype.kind not in _NUMBERS:
        wrong = next((one for one in found.flat if not isinstance(one, Number | np.bool_)), None)
        raise DataError(
            f"samples or targets such as {wrong!r} are no numbers; allowed: numbers; names become whole numbers by "
            "np.unique(names, return_inverse=True)[1]"
        )
    return found


def _of_kind(fill: float, kind: np.dtype[Any]) -> Any:
    """Convert a value to a type, whole numbers exactly."""
    exact = kind.kind == "f" and np.isfinite(fill)
    if kind.kind in "iu" and np.isfinite(fill) and fill == int(fill):
        exact = np.iinfo(kind).min <= fill <= np.iinfo(kind).max
    if not exact and not (kind.kind == "b" and fill in (0, 1)):
        raise DataError(f"samples of {kind} cannot be filled up with {fill}; allowed: a number that {kind} has")
    return kind.type(fill)
