"""Rows of a table as arrays, and what they follow on, for the rules of the tables."""

from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.history.outcomes import NO_VALUE
from fedsim.history.schema import TABLES

_LEAST_KEYS: Final = 16
_RADIX_BITS: Final = 16
_RADIX: Final = 2**_RADIX_BITS


class TableRows:
    """Some rows of one table of a run, one after another."""

    def __init__(self, name: str, at: int, table: pa.Table) -> None:
        self.name, self.at, self._table = name, at, table
        self.size: int = table.num_rows
        self._arrays: dict[str, NDArray[Any]] = {}

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array of shape (n,): labels as their codes, no value as `NO_VALUE` or NaN."""
        if column not in self._arrays:
            self._arrays[column] = _array(self._table.column(column))
        return self._arrays[column]

    def has(self, column: str) -> bool:
        """Return whether the table has a column."""
        return column in _names(self.name)

    def told(self, row: int, columns: tuple[str, ...]) -> str:
        """Return the values of some columns of a row in words."""
        return ", ".join(f"{column} = {self._table.column(column)[row].as_py()!r}" for column in columns)


class Following:
    """What each row follows on: the row before it of the same client or edge server, also of earlier calls."""

    def __init__(self, *nothing: float) -> None:
        self._nothing = nothing
        self._last = np.empty((len(nothing), 0))

    def before(self, key: IntArray, *values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of the row before each row, shape (number of values, n), and remember the last rows."""
        self._grow(int(key.max(initial=0)) + 1)
        order = _sorted(key)
        in_order = key[order]
        first = np.ones(key.size, dtype=bool)
        np.not_equal(in_order[1:], in_order[:-1], out=first[1:])
        last = np.append(first[1:], True)
        first_key, last_key = in_order[first], in_order[last]
        before = np.empty((len(values), key.size))
        for row, value, remembered in zip(before, values, self._last, strict=True):
            value_in_order = value[order]
            previous = np.empty(key.size)
            previous[1:] = value_in_order[:-1]
            previous[first] = remembered[first_key]
            remembered[last_key] = value_in_order[last]
            row[order] = previous
        return before

    def _grow(self, keys: int) -> None:
        known = self._last.shape[1]
        if keys > known:
            more = np.tile(np.array(self._nothing)[:, None], max(keys, 2 * known, _LEAST_KEYS) - known)
            self._last = np.concatenate([self._last, more], axis=1)


def _sorted(key: IntArray) -> IntArray:
    """Return the stable order of keys; a few times faster than NumPy's, which counts only numbers of 16 bits."""
    order = np.argsort(key.astype(np.uint16), kind="stable")
    if key.max(initial=0) >= _RADIX:
        order = order[np.argsort((key[order] >> _RADIX_BITS).astype(np.uint16), kind="stable")]
    return order


@cache
def _names(table: str) -> frozenset[str]:
    return frozenset(TABLES[table].arrow.names)


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    values = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        values = values.indices
    # Not by Arrow's own ways to NumPy, which import pandas where that is installed.
    rows, (valid, data) = slice(values.offset, values.offset + len(values)), values.buffers()
    kind = np.dtype(values.type.to_pandas_dtype())
    numbers = np.zeros(0, dtype=kind) if data is None else np.frombuffer(data, dtype=kind)[rows]
    if not values.null_count:
        return numbers
    known = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")[rows]
    return np.where(known, numbers, kind.type(np.nan if kind.kind == "f" else NO_VALUE))
