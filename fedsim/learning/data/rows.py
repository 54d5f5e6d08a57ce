"""Rows of arrays and tensors, also of several lengths, as arrays of NumPy."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import DataError

Rows = NDArray[Any] | list[Any]
"""An array, or a list of samples of several lengths."""


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
    found = np.full((len(arrays), longest, *arrays[0].shape[1:]), _of_kind(fill, kind), dtype=kind)
    for row, array in zip(found, arrays, strict=True):
        row[: len(array)] = array
    return found


def array_of(value: Any) -> NDArray[Any]:
    """Return an array or a tensor as an array; bfloat16, which NumPy lacks, becomes float32."""
    torch = sys.modules.get("torch")  # who hands over a tensor has imported it
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray(value)


def _of_kind(fill: float, kind: np.dtype[Any]) -> Any:
    """Convert a value to a type, whole numbers exactly."""
    exact = kind.kind == "f" and np.isfinite(fill)
    if kind.kind in "iu" and np.isfinite(fill) and fill == int(fill):
        exact = np.iinfo(kind).min <= fill <= np.iinfo(kind).max
    if not exact and not (kind.kind == "b" and fill in (0, 1)):
        raise DataError(f"samples of {kind} cannot be filled up with {fill}; allowed: a number that {kind} has")
    return kind.type(fill)
