"""A column and a table of a run, described once, and how rows become Arrow's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import PartError, RunError
from fedsim.history.outcomes import NO_VALUE, Coded
from fedsim.inputs.arrow import numbers_of, texts_of

Labels = type[Coded]
Piece = NDArray[Any] | float
"""Some rows of a column: an array, or one number for all of them."""
LABEL: Final = pa.dictionary(pa.int8(), pa.string())
"""Type of a column of labels."""


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    doc: str
    unit: str = ""
    labels: Labels | None = None
    null: str = ""
    default: float | None = None

    def from_codes(self, values: NDArray[Any]) -> pa.Array:
        """Return an Arrow array of numbers or codes in which no value is null, shape (n,); (n, m) for lists of m."""
        if pa.types.is_list(self.type):
            return self._lists(np.full(len(values), values.shape[1]), values.ravel(), None)
        if pa.types.is_map(self.type):  # given in rows alone
            return pa.nulls(len(values), self.type)
        none = None
        if self.null:
            none = np.isnan(values) if values.dtype.kind == "f" else values < 0
        if self.labels is not None:
            codes = self._array(values, self.type.index_type, none)
            return pa.DictionaryArray.from_arrays(codes, texts_of(self.labels.labels()))
        return self._array(values, self.type, none)

    def from_values(self, values: Sequence[Any]) -> pa.Array:
        """Return an Arrow array of values, one a row; None is null."""
        if self.labels is not None:
            return self.from_codes(np.array([NO_VALUE if value is None else value for value in values], dtype=np.int8))
        if pa.types.is_map(self.type):
            none_at_all = all(value is None for value in values)
            return pa.nulls(len(values), self.type) if none_at_all else pa.array(values, self.type)
        if not pa.types.is_list(self.type) and None not in values:
            return self._array(np.array(values), self.type, None)
        none = np.array([value is None for value in values], dtype=bool)
        if pa.types.is_list(self.type):
            parts = [np.asarray([] if value is None else value, dtype=np.int64) for value in values]
            return self._lists(
                np.array([part.size for part in parts], dtype=np.int64),
                np.concatenate([[], *parts]).astype(np.int64),
                none,
            )
        numbers = np.array([0 if value is None else value for value in values])
        return self._array(numbers, self.type, none if none.any() else None)

    def _lists(self, sizes: IntArray, values: NDArray[Any], none: NDArray[np.bool_] | None) -> pa.Array:
        """Return an Arrow array of lists, whose sizes and values are given one after another."""
        ends = pa.py_buffer(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        valid = None if none is None else pa.py_buffer(np.packbits(~none, bitorder="little"))
        children = [self._array(values, self.type.value_type, None)]
        return pa.Array.from_buffers(self.type, sizes.size, [valid, ends], children=children)

    def _array(self, values: NDArray[Any], kind: pa.DataType, none: NDArray[np.bool_] | None) -> pa.Array:
        """Return an Arrow array of numbers; not by `pyarrow.array`, which imports pandas where that is installed."""
        numbers = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
        if numbers.dtype != values.dtype and not np.array_equal(numbers, values, equal_nan=values.dtype.kind == "f"):
            wrong = values[numbers != values][0]
            raise RunError(f"history: the column {self.name} is given {wrong}, which {kind} cannot hold")
        valid = None if none is None else pa.py_buffer(np.packbits(~none, bitorder="little"))
        return pa.Array.from_buffers(kind, numbers.size, [valid, pa.py_buffer(numbers)])

    @property
    def no_value(self) -> float:
        """Number for no value in an array: the column's default if it has one."""
        if self.default is not None:
            return self.default
        return np.nan if pa.types.is_floating(self.type) else NO_VALUE

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of arrays of numbers and codes in memory; whole numbers take 8 bytes."""
        if self.labels is not None:
            return np.dtype(np.int8)
        return np.dtype(np.float64 if pa.types.is_floating(self.type) else np.int64)


@dataclass(frozen=True)
class TableSchema:
    name: str
    row: str
    columns: tuple[Column, ...]
    optional: bool = field(default=False, kw_only=True)
    sorted_by: str | None = field(default=None, kw_only=True)

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns)

    def wider(self, more: Mapping[str, str]) -> "TableSchema":
        """Return the schema with columns of numbers besides: names with a dot, and what they say."""
        if wrong := [name for name in more if "." not in name]:
            raise PartError(f"an effect adds {wrong[0]!r}", "allowed: a column with a dot in its name, as rest.ready_s")
        own = tuple(Column(name, pa.float64(), doc, null="not stated") for name, doc in more.items())
        return replace(self, columns=(*self.columns, *own))

    def check(self, given: Iterable[str]) -> list[Column]:
        names = frozenset(given)
        if names == self._names:
            return []
        absent = [column for column in self.columns if column.name not in names]
        problems = {
            "has no column": sorted(names - self._names),
            "needs a value for": [column.name for column in absent if not column.null and column.default is None],
        }
        wrong = " and ".join(f"{problem} {', '.join(which)}" for problem, which in problems.items() if which)
        if wrong:
            raise RunError(f"history: the table {self.name} {wrong}; its columns: {', '.join(self.arrow.names)}")
        return absent

    def from_rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Return the table of rows that `check` has let through; what a row does not name is null, or the default."""
        if not rows:
            return pa.Table.from_batches([], self.arrow)
        arrays = [column.from_values([row.get(column.name, column.default) for row in rows]) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def from_columns(self, columns: Mapping[str, NDArray[Any]]) -> pa.Table:
        """Return the table of columns, all of one shape (n,), labels as their codes."""
        arrays = [column.from_codes(columns[column.name]) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def in_order(self, table: pa.Table) -> pa.Table:
        """Return a table in the order of the column that it is sorted by; rows of one value stay as they are."""
        if self.sorted_by is None or table.num_rows < 2:
            return table
        values = numbers_of(table.column(self.sorted_by))
        return table if np.all(values[1:] >= values[:-1]) else table.take(np.argsort(values, kind="stable"))

    def read(self, table: pa.Table) -> pa.Table:
        """Return a table of a run folder with this schema; another set of columns is refused."""
        if own := [name for name in table.column_names if "." in name and name not in self._names]:
            return self.wider(dict.fromkeys(own, "")).read(table)
        if unknown := sorted(set(table.column_names) - self._names):
            raise ValueError(f"there is no column {', '.join(unknown)}")
        if lacking := [name for name in self.arrow.names if name not in table.column_names]:
            raise ValueError(f"it lacks the column {', '.join(lacking)}")
        return self.in_order(table.select(self.arrow.names).cast(self.arrow))
