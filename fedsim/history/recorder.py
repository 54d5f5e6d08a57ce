"""Records a run while it goes on."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from fedsim.errors import RunError, WriteError
from fedsim.history.history import History
from fedsim.history.schema import (
    ACCOUNTS,
    EDGE_PARTICIPATIONS,
    EDGE_ROUNDS,
    EVALUATIONS,
    PARTICIPATIONS,
    PROBES,
    ROUNDS,
    TABLES,
    Piece,
    TableSchema,
    rows_of,
)
from fedsim.history.spool import ROWS_IN_A_BATCH, Spool

Row = Mapping[str, Any]
MakeSpool = Callable[[TableSchema], Spool]

_MOST_ROWS_IN_MEMORY: Final = 2**20
"""Rows that are kept while the disk is full; more end the run."""
_PARTS_IN_MEMORY: Final = 2**11
"""Most pieces of a table in memory: a piece of one row takes a hundred times the memory of its numbers."""


class Recorder:
    """The rows of a run so far, by the names of their columns in `fedsim.history.schema`.

    A column that may be null can be left out; a name that the schema does not have is refused. The newest rows are in
    memory, the others on disk, so that memory does not grow with the rounds.

    Parameters
    ----------
    name : name of the scenario
    spool : makes the place of a table's rows on disk when the first of them leave memory; a temporary file by default

    Attributes
    ----------
    accounts : returns the columns of `ACCOUNTS` up to now; None for none
    """

    def __init__(self, name: str, spool: MakeSpool | None = None) -> None:
        self.name = name
        self.accounts: Callable[[], dict[str, NDArray[Any]]] | None = None
        make = spool or _temporary
        self._tables = {name: _Growing(schema, make) for name, schema in TABLES.items() if schema is not ACCOUNTS}

    def add_participations(self, **columns: Piece) -> None:
        """Record the participations of a cohort as columns of `PARTICIPATIONS`, shape (n,), labels as their codes.

        A number stands for a column with one value.
        """
        self._tables[PARTICIPATIONS.name].add_columns(columns)

    def add_probes(self, **columns: Piece) -> None:
        """Record clients that were asked a question as columns of `PROBES`, given as in `add_participations`."""
        self._tables[PROBES.name].add_columns(columns)

    def add_round(self, **values: Any) -> None:
        """Record a round as a row of `ROUNDS`."""
        self._tables[ROUNDS.name].add_row(values)

    def add_edge_round(self, **values: Any) -> None:
        """Record a round of an edge server as a row of `EDGE_ROUNDS`."""
        self._tables[EDGE_ROUNDS.name].add_row(values)

    def add_edge_participation(self, **values: Any) -> None:
        """Record a cycle of an edge server as a row of `EDGE_PARTICIPATIONS`."""
        self._tables[EDGE_PARTICIPATIONS.name].add_row(values)

    def add_evaluation(self, **values: Any) -> None:
        """Record an evaluation as a row of `EVALUATIONS`."""
        self._tables[EVALUATIONS.name].add_row(values)

    def add_evaluation_later(self, row: Callable[[], Row]) -> None:
        """Record an evaluation that may still run, in its place among the others.

        Parameters
        ----------
        row : returns the row of `EVALUATIONS`, waiting for it if need be; called when the row is put on disk or read
        """
        self._tables[EVALUATIONS.name].add_row_later(row)

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        return {name: table.rows for name, table in self._tables.items()}

    def flush(self) -> None:
        """Put all rows on disk; where one table cannot be written, the others are."""
        with contextlib.ExitStack() as others:
            for table in reversed(self._tables.values()):
                others.callback(table.spill)

    def history(self) -> History:
        """Return the history up to now; rows on disk are mapped into memory, and read when they are used."""
        tables = {name: table.table() for name, table in self._tables.items()}
        if self.accounts is not None:
            tables["accounts"] = ACCOUNTS.from_columns([self.accounts()])
        return History(
            self.name, **{n: table for n, table in tables.items() if table.num_rows or not TABLES[n].optional}
        )

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table batch by batch, with few rows in memory at a time; its rows are put on disk first."""
        return self._tables[name].batches()


class _Growing:
    """One table: the newest rows in memory as they were given, the others in a spool.

    An interrupt may come at any instant. The rows stay in order and none is put on disk twice, because the spool knows
    how many it has.
    """

    def __init__(self, schema: TableSchema, make: MakeSpool) -> None:
        self._schema, self._make = schema, make
        self._spool: Spool | None = None
        self.rows = self._spill_at = 0
        self._tail = _Tail(0, [], [])

    def add_row(self, values: Row) -> None:
        self._schema.check(values)
        self.add_row_later(lambda: values)

    def add_row_later(self, row: Callable[[], Row]) -> None:
        self._tail.rows.append(row)
        self._added(1, len(self._tail.rows))

    def add_columns(self, columns: dict[str, Piece]) -> None:
        absent = self._schema.check(columns)
        rows = rows_of(columns)
        if absent:
            columns = columns | {column.name: column.no_value(rows) for column in absent}
        self._tail.columns.append(columns)
        self._added(rows, len(self._tail.columns))

    def spill(self) -> None:
        newest = self._newest()
        if not newest.num_rows:
            return
        if self._spool is None:
            self._spool = self._make(self._schema)
        self._spool.append(newest, self._tail.at)
        self._tail = _Tail(self._tail.at + newest.num_rows, [], [])

    def table(self) -> pa.Table:
        if self._spool is None:
            return self._newest()
        return pa.concat_tables([self._spool.table().slice(0, self._tail.at), self._newest()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.spill()
        return iter(()) if self._spool is None else self._spool.batches()

    def _added(self, rows: int, parts: int) -> None:
        self.rows += rows
        if self.rows < self._spill_at or (self.rows - self._tail.at < ROWS_IN_A_BATCH and parts < _PARTS_IN_MEMORY):
            return
        try:
            self.spill()
        except WriteError:
            # A disk may be full for a moment.
            if self.rows - self._tail.at >= _MOST_ROWS_IN_MEMORY:
                raise
            self._spill_at = self.rows + ROWS_IN_A_BATCH

    def _newest(self) -> pa.Table:
        _, columns, rows = self._tail
        if columns:
            return self._built(columns)
        known = [row() for row in rows]
        for row in known:
            self._schema.check(row)
        return self._schema.from_rows(known)

    def _built(self, columns: list[dict[str, Piece]]) -> pa.Table:
        """Return the rows in memory as a table; rows that no table can hold are thrown away with those after them.

        Raises
        ------
        RunError
            If there are such rows; the rows before them stay.
        """
        try:
            return self._schema.from_columns(columns)
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
            pass
        for number, piece in enumerate(columns):
            try:
                self._schema.from_columns([piece])
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
                self._tail = self._tail._replace(columns=columns[:number])
                self.rows = self._tail.at + sum(map(rows_of, columns[:number]))
                raise RunError(
                    f"history: rows of the table {self._schema.name} cannot be kept: {error}; the {self.rows} rows "
                    "before them are kept"
                ) from error
        return self._schema.from_columns(columns)


class _Tail(NamedTuple):
    """The rows in memory: the number of rows before them, and what was given, as columns or as rows."""

    at: int
    columns: list[dict[str, Piece]]
    rows: list[Callable[[], Row]]


def _temporary(schema: TableSchema) -> Spool:
    return Spool.temporary(schema.arrow)
