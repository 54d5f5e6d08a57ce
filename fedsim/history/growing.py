"""One table of a run while it goes on: the newest rows in memory, the others on disk."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import RunError, WriteError
from fedsim.history.column import Column, Piece, TableSchema
from fedsim.history.spool import ROWS_IN_A_BATCH, Spool

Row = Mapping[str, Any]
Columns = Mapping[str, NDArray[Any]]
MakeSpool = Callable[[TableSchema], Spool]

_MOST_ROWS_IN_MEMORY: Final = 2**20
"""Most rows in memory while the disk is full; more end the run."""
_PARTS_IN_MEMORY: Final = 2**11
"""Most parts of a table in memory: a row that was given alone takes a hundred times the memory of its numbers."""


class GrowingTable:
    """One table: the newest rows in memory, the others in a spool.

    An interrupt may come at any instant: the spool knows how many rows it has, so that none is written twice.
    """

    def __init__(self, schema: TableSchema, make: MakeSpool) -> None:
        self.schema, self._make = schema, make
        self._spool: Spool | None = None
        self.rows = self._spill_at = 0
        self._tail = _Tail(0, [], [])
        self._checked: frozenset[str] = frozenset()
        # The rows in memory as a table, once it is asked for, until there is another row.
        self._latest: pa.Table | None = None

    def add_row(self, values: Row) -> None:
        """Add a row: values by name of the column; what is left out is null."""
        self._check(values)
        self._tail.single.append(lambda: values)
        self._added(1)

    def add_row_later(self, row: Callable[[], Row]) -> None:
        """Add a row that is asked for when it is put on disk or read."""

        def checked() -> Row:
            values = row()
            self.schema.check(values)
            return values

        self._tail.single.append(checked)
        self._added(1)

    def add_columns(self, columns: Mapping[str, Piece]) -> None:
        """Add rows as columns: arrays (n,) that do not change later, or numbers for all rows; ``client`` is one."""
        self._check(columns)
        rows = np.asarray(columns["client"]).size
        # One call: an interrupt comes before it or after it, so that all columns have as many rows.
        self._tail.pieces.append((rows, columns))
        self._added(rows)

    def spill(self) -> None:
        """Put the rows in memory on disk."""
        newest = self._newest()
        if not newest.num_rows:
            return
        if self._spool is None:
            self._spool = self._make(self.schema)
        self._latest = None
        self._spool.append(newest, self._tail.at)
        self._tail = _Tail(self._tail.at + newest.num_rows, [], [])

    def table(self) -> pa.Table:
        if self._spool is None:
            return self._newest()
        return pa.concat_tables([self._spool.table().slice(0, self._tail.at), self._newest()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows batch by batch; they are put on disk first."""
        self.spill()
        return iter(()) if self._spool is None else self._spool.batches()

    def _check(self, given: Mapping[str, Any]) -> None:
        if given.keys() != self._checked:  # the same ones for all rows, as a rule
            self.schema.check(given)
            self._checked = frozenset(given)

    def _added(self, rows: int) -> None:
        self._latest = None
        # One assignment: an interrupt comes before it or after it.
        self.rows += rows
        in_memory = self.rows - self._tail.at
        if self.rows < self._spill_at or (in_memory < ROWS_IN_A_BATCH and self._tail.parts < _PARTS_IN_MEMORY):
            return
        try:
            self.spill()
        except WriteError:
            # A disk may be full for a moment.
            if self.rows - self._tail.at >= _MOST_ROWS_IN_MEMORY:
                raise
            self._spill_at = self.rows + ROWS_IN_A_BATCH

    def _newest(self) -> pa.Table:
        if self._latest is None:
            _, single, pieces = self._tail
            if pieces:
                sizes = np.array([size for size, _ in pieces])
                columns = [columns for _, columns in pieces]
                self._latest = self._built({each.name: joined(each, columns, sizes) for each in self.schema.columns})
            else:
                self._latest = self.schema.from_rows([row() for row in single])
        return self._latest

    def _built(self, columns: Columns) -> pa.Table:
        """Return the rows in memory as a table; from the first row that no table can hold on, rows are dropped."""
        at, single, pieces = self._tail
        rows = sum([size for size, _ in pieces])
        try:
            table = self.schema.from_columns(columns)
        except RunError as error:
            rows = bisect_left(range(rows), True, key=lambda at: not self._holds(_first(columns, at + 1)))
            columns, self.rows = _first(columns, rows), at + rows
            raise RunError(f"{error}; the {self.rows} rows of the table {self.schema.name} before are kept") from error
        finally:
            self._tail = _Tail(at, single, [(rows, columns)])
        return table

    def _holds(self, columns: Columns) -> bool:
        try:
            self.schema.from_columns(columns)
        except RunError:
            return False
        return True


class _Tail(NamedTuple):
    """The rows in memory: how many are before them, and those that were given one by one, or in pieces of columns."""

    at: int
    single: list[Callable[[], Row]]
    pieces: list[tuple[int, Mapping[str, Piece]]]

    @property
    def parts(self) -> int:
        return len(self.single) + len(self.pieces)


def joined(column: Column, pieces: Sequence[Mapping[str, Piece]], sizes: IntArray) -> NDArray[Any]:
    """Return a column of pieces with their sizes, one after the other; a piece may be one number for its rows."""
    name, nothing = column.name, column.no_value
    each = [columns.get(name, nothing) for columns in pieces]
    kinds = set(map(type, each))
    if np.ndarray not in kinds:
        return np.repeat(np.array(each, dtype=column.dtype), sizes)
    if len(kinds) > 1:
        sized = zip(sizes.tolist(), each, strict=True)
        each = [one if type(one) is np.ndarray else np.full(size, one) for size, one in sized]
    return np.concatenate(each, dtype=column.dtype, casting="unsafe")


def _first(columns: Columns, rows: int) -> Columns:
    return {name: values[:rows] for name, values in columns.items()}
