"""One table of a run while it goes on: the newest rows in memory, the others on disk."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.errors import RunError, WriteError
from fedsim.history.column import Column, Piece, TableSchema
from fedsim.history.spool import ROWS_IN_A_BATCH, Spool

Row = Mapping[str, Any]
MakeSpool = Callable[[TableSchema], Spool]

_MOST_ROWS_IN_MEMORY: Final = 2**20
"""Most rows in memory while the disk is full; more end the run."""
_SINGLE_ROWS_IN_MEMORY: Final = 2**11
"""Most rows in memory that were given one by one: each takes a hundred times the memory of its numbers."""


class GrowingTable:
    """One table: the newest rows in memory, the others in a spool.

    An interrupt may come at any instant: the spool knows how many rows it has, so that none is written twice.
    """

    def __init__(self, schema: TableSchema, make: MakeSpool) -> None:
        self.schema, self._make = schema, make
        self._spool: Spool | None = None
        self.rows = self._spill_at = 0
        self._tail = _Tail(0, [])
        self._columns: dict[str, NDArray[Any]] = {}
        self._arrays: list[NDArray[Any]] = []  # in the order of the columns given last
        self._others: list[tuple[NDArray[Any], float]] = []  # columns not given last, and what stands in them
        self._room = 0
        # Names of the columns given last, and columns that were not.
        self._given: tuple[str, ...] = ()
        self._absent: Sequence[Column] = ()
        # The rows in memory as a table, once it is asked for, until there is another row.
        self._latest: pa.Table | None = None

    def add_row(self, values: Row) -> None:
        """Add a row: values by name of the column; what is left out is null."""
        self._absent_from(values)
        self._add(lambda: values)

    def add_row_later(self, row: Callable[[], Row]) -> None:
        """Add a row that is asked for when it is put on disk or read."""

        def checked() -> Row:
            values = row()
            self.schema.check(values)
            return values

        self._add(checked)

    def add_columns(self, columns: Mapping[str, Piece]) -> None:
        """Add rows as columns: arrays of shape (n,), or numbers for all rows; ``client`` is an array."""
        self._latest = None
        absent = self._absent_from(columns)
        rows, present = np.asarray(columns["client"]).size, self.rows - self._tail.at
        end = present + rows
        if end > self._room:
            self._make_room(present, rows)
        if not self._arrays:
            self._arrays = [self._columns[name] for name in columns]
            self._others = [(self._columns[column.name], column.no_value) for column in absent]
        place = slice(present, end)
        for array, nothing in self._others:
            array[place] = nothing
        for array, piece in zip(self._arrays, columns.values(), strict=True):
            array[place] = piece
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
        self._tail = _Tail(self._tail.at + newest.num_rows, [])

    def table(self) -> pa.Table:
        if self._spool is None:
            return self._newest()
        return pa.concat_tables([self._spool.table().slice(0, self._tail.at), self._newest()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows batch by batch; they are put on disk first."""
        self.spill()
        return iter(()) if self._spool is None else self._spool.batches()

    def _absent_from(self, given: Iterable[str]) -> Sequence[Column]:
        """Return the columns that are not given, and refuse names that the schema refuses."""
        names = tuple(given)
        if names != self._given:  # the same ones for all rows, as a rule
            self._absent = self.schema.check(names)
            self._given, self._arrays = names, []
        return self._absent

    def _add(self, row: Callable[[], Row]) -> None:
        self._latest = None
        self._tail.single.append(row)
        self._added(1)

    def _added(self, rows: int) -> None:
        # One assignment: an interrupt comes before it or after it.
        self.rows += rows
        at, single = self._tail
        if self.rows < self._spill_at or (self.rows - at < ROWS_IN_A_BATCH and len(single) < _SINGLE_ROWS_IN_MEMORY):
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
            if self._columns:
                self._latest = self._built(self.rows - self._tail.at)
            else:
                self._latest = self.schema.from_rows([row() for row in self._tail.single])
        return self._latest

    def _built(self, rows: int) -> pa.Table:
        """Return the rows in memory as a table; from the first row that no table can hold on, rows are dropped."""
        try:
            return self._first(rows)
        except RunError as error:
            self.rows = self._tail.at + bisect_left(range(rows), True, key=lambda at: not self._holds(at + 1))
            raise RunError(f"{error}; the {self.rows} rows of the table {self.schema.name} before are kept") from error

    def _first(self, rows: int) -> pa.Table:
        # Copies: the arrays take the next rows, and an Arrow table may share the memory of what it is made of.
        return self.schema.from_columns({name: array[:rows].copy() for name, array in self._columns.items()})

    def _holds(self, rows: int) -> bool:
        try:
            self._first(rows)
        except RunError:
            return False
        return True

    def _make_room(self, present: int, rows: int) -> None:
        room = present + rows + ROWS_IN_A_BATCH
        wider = {column.name: np.empty(room, dtype=column.dtype) for column in self.schema.columns}
        for name, array in self._columns.items():
            wider[name][:present] = array[:present]
        self._columns, self._room, self._arrays = wider, room, []


class _Tail(NamedTuple):
    """The rows in memory: the number of rows before them, and those that were given one by one."""

    at: int
    single: list[Callable[[], Row]]
