"""Arrays of NumPy and of Arrow as one another, by their buffers; Arrow's own conversions import pandas, slowly."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Column: TypeAlias = NDArray[Any] | pa.Array | pa.ChunkedArray
Columns: TypeAlias = dict[str, Column]
"""Columns of a table by name."""
_MISSING: Final = r"^(?i:|--?|<?na>?|#?n/a|nan|nat|null|none|\?)$"
"""What stands for nothing in a cell of text."""


def texts_of(values: Sequence[str | None]) -> pa.StringArray:
    """Return an Arrow array of strings; None is null."""
    plain = [value or "" for value in values]
    content = "".join(plain).encode()
    sizes = [len(one) for one in plain]
    if sum(sizes) != len(content):
        sizes = [len(one.encode()) for one in plain]
    ends = np.cumsum([0, *sizes], dtype=np.int32)
    there = np.packbits(np.array([value is not None for value in values], dtype=bool), bitorder="little")
    buffers = [pa.py_buffer(there), pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(plain), buffers)


def numbers_of(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return an Arrow array of numbers, NaN for null."""
    if isinstance(array, pa.ChunkedArray):
        none = np.empty(0, dtype=array.type.to_pandas_dtype())
        return np.concatenate([none, *map(numbers_of, array.chunks)])
    _, content = array.buffers()
    numbers = np.frombuffer(content or b"", dtype=array.type.to_pandas_dtype())
    numbers = numbers[array.offset : array.offset + len(array)]
    return np.where(known_of(array), numbers, np.nan) if array.null_count else numbers


def known_of(array: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which values of an Arrow array are not null."""
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([np.ones(0, dtype=bool), *map(known_of, array.chunks)])
    if not array.null_count:
        return np.ones(len(array), dtype=bool)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], dtype=np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(bool)


def as_texts(values: Column) -> pa.StringArray:
    """Return texts without blanks around, and null for nothing."""
    import pyarrow.compute as pc

    texts = texts_of(values.astype(str).tolist()) if isinstance(values, np.ndarray) else values.cast(pa.string())
    texts = pc.utf8_trim_whitespace(texts)
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return pc.if_else(pc.match_substring_regex(texts, _MISSING), pa.nulls(1, pa.string())[0], texts)
