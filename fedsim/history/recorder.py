"""Records a run while it goes on."""

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.errors import AuditError, RunError, WriteError
from fedsim.history.column import Column, Piece, TableSchema
from fedsim.history.history import History
from fedsim.history.schema import (
    ACCOUNTS,
    AT_THE_END,
    CLIENT_EVALUATIONS,
    EDGE_PARTICIPATIONS,
    EDGE_ROUNDS,
    EVALUATIONS,
    PARTICIPATIONS,
    PROBES,
    RELEASES,
    ROUNDS,
    SECURE_STEPS,
    TABLES,
)
from fedsim.history.spool import ROWS_IN_A_BATCH, Spool

Row = Mapping[str, Any]
MakeSpool = Callable[[TableSchema], Spool]

_MOST_ROWS_IN_MEMORY: Final = 2**20
"""Rows that are kept while the disk is full; more end the run."""
_SINGLE_ROWS_IN_MEMORY: Final = 2**11
"""Most rows in memory that were given one by one: each takes a hundred times the memory of its numbers."""


class TableCheck(Protocol):
    """Checks the rows of a run's tables, each of them once, and in their order.

    Attributes
    ----------
    spent_s : seconds of real time that it has taken so far
    """

    spent_s: float

    def check(self, name: str, at: int, table: pa.Table) -> None:
        """Check rows of a table.

        Parameters
        ----------
        name : of the table
        at : number of the rows of the table before the first of them
        table : the rows

        Raises
        ------
        AuditError
            If one of them is wrong.
        """
        ...

    def end(self) -> None:
        """Check the tables of a run that is over as a whole, after all their rows.

        Raises
        ------
        AuditError
            If they contradict one another.
        """
        ...


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
    clients : the table `CLIENTS`; None for none
    audit : checks rows when they leave memory, after they were put on disk; None for no checks, and after an error

    Examples
    --------
    >>> recorder = Recorder("own-loop")
    >>> for number, accuracy in enumerate([0.1, 0.5, 0.75]):
    ...     recorder.add_evaluation(round=number, time_s=2.5 * number, model_version=number, accuracy=accuracy)
    >>> recorder.history().time_to_accuracy(0.5)
    2.5
    """

    def __init__(self, name: str, spool: MakeSpool | None = None) -> None:
        self.name = name
        self.accounts: Callable[[], dict[str, NDArray[Any]]] | None = None
        self.clients: pa.Table | None = None
        self.audit: TableCheck | None = None
        make = spool or _temporary
        self._tables = {
            name: _Growing(schema, make, self._check) for name, schema in TABLES.items() if name not in AT_THE_END
        }

    def add_participations(self, columns: Mapping[str, Piece]) -> None:
        """Record the participations of a cohort as columns of `PARTICIPATIONS`, shape (n,), labels as their codes.

        A number stands for a column with one value; ``client`` is an array.

        Parameters
        ----------
        columns : by name, arrays of shape (n,) or numbers for all rows
        """
        self._tables[PARTICIPATIONS.name].add_columns(columns)

    def add_probes(self, **columns: Piece) -> None:
        """Record clients that were asked a question as columns of `PROBES`, given as in `add_participations`.

        Parameters
        ----------
        **columns : by name, arrays of shape (n,) or numbers for all rows
        """
        self._tables[PROBES.name].add_columns(columns)

    def add_secure_steps(self, **columns: Piece) -> None:
        """Record clients in a step of secure aggregation as columns of `SECURE_STEPS`, as in `add_participations`.

        Parameters
        ----------
        **columns : by name, arrays of shape (n,) or numbers for all rows
        """
        self._tables[SECURE_STEPS.name].add_columns(columns)

    def add_releases(self, **columns: Piece) -> None:
        """Record private releases as columns of `RELEASES`, given as in `add_participations`.

        Parameters
        ----------
        **columns : by name, arrays of shape (n,) or numbers for all rows
        """
        self._tables[RELEASES.name].add_columns(columns)

    def add_round(self, values: Row) -> None:
        """Record a round as a row of `ROUNDS`.

        Parameters
        ----------
        values : by name of the column; what is left out is null
        """
        self._tables[ROUNDS.name].add_row(values)

    def add_edge_round(self, **values: Any) -> None:
        """Record a round of an edge server as a row of `EDGE_ROUNDS`.

        Parameters
        ----------
        **values : by name of the column; what is left out is null
        """
        self._tables[EDGE_ROUNDS.name].add_row(values)

    def add_edge_participation(self, **values: Any) -> None:
        """Record a cycle of an edge server as a row of `EDGE_PARTICIPATIONS`.

        Parameters
        ----------
        **values : by name of the column; what is left out is null
        """
        self._tables[EDGE_PARTICIPATIONS.name].add_row(values)

    def add_evaluation(self, **values: Any) -> None:
        """Record an evaluation as a row of `EVALUATIONS`.

        Parameters
        ----------
        **values : by name of the column; what is left out is null
        """
        self._tables[EVALUATIONS.name].add_row(values)

    def add_evaluation_later(self, row: Callable[[], Row]) -> None:
        """Record an evaluation that may still run, in its place among the others.

        Parameters
        ----------
        row : returns the row of `EVALUATIONS`, waiting for it if need be; called when the row is put on disk or read
        """
        self._tables[EVALUATIONS.name].add_row_later(row)

    def add_client_evaluation(self, **values: Any) -> None:
        """Record an evaluation on a client's samples as a row of `CLIENT_EVALUATIONS`.

        Parameters
        ----------
        **values : by name of the column; what is left out is null
        """
        self._tables[CLIENT_EVALUATIONS.name].add_row(values)

    @property
    def audited_s(self) -> float:
        """Seconds of real time that the checks of `audit` have taken."""
        return 0.0 if self.audit is None else self.audit.spent_s

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        return {name: table.rows for name, table in self._tables.items()}

    def flush(self) -> None:
        """Put all rows on disk; where one table cannot be written, the others are."""
        with contextlib.ExitStack() as others:
            for table in reversed(self._tables.values()):
                others.callback(table.spill)

    def end(self) -> None:
        """Check what has not been checked, as the run is over.

        Raises
        ------
        AuditError
            If a row is wrong, or the tables contradict one another.
        """
        if self.audit is not None:
            for table in self._tables.values():
                table.check()
            with self._last_error():
                self.audit.end()

    def history(self) -> History:
        """Return the history up to now; rows on disk are mapped into memory, and read when they are used."""
        tables = {name: table.table() for name, table in self._tables.items()}
        if self.accounts is not None:
            tables["accounts"] = ACCOUNTS.from_columns(self.accounts())
        if self.clients is not None:
            tables["clients"] = self.clients
        return History(
            self.name, **{n: table for n, table in tables.items() if table.num_rows or not TABLES[n].optional}
        )

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table batch by batch, with few rows in memory at a time; its rows are put on disk first.

        Parameters
        ----------
        name : of the table: ``"participations"``

        Returns
        -------
        iterator of record batches
        """
        return self._tables[name].batches()

    def _check(self, name: str, at: int, table: pa.Table) -> None:
        if self.audit is not None:
            with self._last_error():
                self.audit.check(name, at, table)

    @contextlib.contextmanager
    def _last_error(self) -> Iterator[None]:
        """Check nothing any more after an error, so that the other rows can be put on disk."""
        try:
            yield
        except AuditError:
            self.audit = None
            raise


class _Growing:
    """One table: the newest rows in memory, the others in a spool.

    Rows are given one by one, or several as columns, whose numbers are written into arrays with room for a batch. An
    interrupt may come at any instant. The rows stay in order and none is put on disk twice, because the spool knows how
    many it has.
    """

    def __init__(self, schema: TableSchema, make: MakeSpool, check: Callable[[str, int, pa.Table], None]) -> None:
        self._schema, self._make, self._check = schema, make, check
        self._spool: Spool | None = None
        self.rows = self._spill_at = self._checked = 0
        self._tail = _Tail(0, [])
        self._columns: dict[str, NDArray[Any]] = {}
        self._room = 0
        # Names of the columns given last, and columns that were not.
        self._given: tuple[str, ...] = ()
        self._absent: Sequence[Column] = ()
        # The rows in memory as a table, once it is asked for, until there is another row.
        self._latest: pa.Table | None = None

    def add_row(self, values: Row) -> None:
        self._absent_from(values)
        self._add(lambda: values)

    def add_row_later(self, row: Callable[[], Row]) -> None:
        def checked() -> Row:
            values = row()
            self._schema.check(values)
            return values

        self._add(checked)

    def add_columns(self, columns: Mapping[str, Piece]) -> None:
        self._latest = None
        absent = self._absent_from(columns)
        if absent:
            columns = {**columns, **{column.name: column.no_value for column in absent}}
        rows, present = np.asarray(columns["client"]).size, self.rows - self._tail.at
        end = present + rows
        if end > self._room:
            self._make_room(present, rows)
        place = slice(present, end)
        for array, piece in zip(map(self._columns.__getitem__, columns), columns.values(), strict=True):
            array[place] = piece
        self._added(rows)

    def spill(self) -> None:
        newest = self._newest()
        if not newest.num_rows:
            return
        if self._spool is None:
            self._spool = self._make(self._schema)
        self._latest = None
        self._spool.append(newest, self._tail.at)
        at, self._tail = self._tail.at, _Tail(self._tail.at + newest.num_rows, [])
        self._check_new(newest, at)

    def check(self) -> None:
        if self._checked < self.rows:
            self._check_new(self._newest(), self._tail.at)

    def table(self) -> pa.Table:
        if self._spool is None:
            return self._newest()
        return pa.concat_tables([self._spool.table().slice(0, self._tail.at), self._newest()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.spill()
        return iter(()) if self._spool is None else self._spool.batches()

    def _absent_from(self, given: Iterable[str]) -> Sequence[Column]:
        """Return the columns that are not given, and refuse names that the schema refuses."""
        names = tuple(given)
        if names != self._given:  # the same ones for all rows, as a rule
            self._absent = self._schema.check(names)
            self._given = names
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

    def _check_new(self, newest: pa.Table, at: int) -> None:
        """Check those of some rows that have not been checked."""
        known, self._checked = self._checked, at + newest.num_rows
        if known < self._checked:
            self._check(self._schema.name, max(at, known), newest.slice(max(0, known - at)))

    def _newest(self) -> pa.Table:
        if self._latest is None:
            if self._columns:
                self._latest = self._built(self.rows - self._tail.at)
            else:
                self._latest = self._schema.from_rows([row() for row in self._tail.single])
        return self._latest

    def _built(self, rows: int) -> pa.Table:
        """Return the rows in memory as a table; rows that no table can hold are thrown away with those after them.

        Raises
        ------
        RunError
            If there are such rows; the rows before them stay.
        """
        try:
            return self._first(rows)
        except RunError as error:
            self.rows = self._tail.at + bisect_left(range(rows), True, key=lambda at: not self._holds(at + 1))
            raise RunError(f"{error}; the {self.rows} rows of the table {self._schema.name} before are kept") from error

    def _first(self, rows: int) -> pa.Table:
        # Copies: the arrays take the next rows, and an Arrow table may share the memory of what it is made of.
        return self._schema.from_columns({name: array[:rows].copy() for name, array in self._columns.items()})

    def _holds(self, rows: int) -> bool:
        """Return whether a table can hold the first rows in memory."""
        try:
            self._first(rows)
        except RunError:
            return False
        return True

    def _make_room(self, present: int, rows: int) -> None:
        """Make room for a batch and further rows, and keep the present ones."""
        room = present + rows + ROWS_IN_A_BATCH
        wider = {column.name: np.empty(room, dtype=column.dtype) for column in self._schema.columns}
        for name, array in self._columns.items():
            wider[name][:present] = array[:present]
        self._columns, self._room = wider, room


class _Tail(NamedTuple):
    """The rows in memory: the number of rows before them, and those that were given one by one."""

    at: int
    single: list[Callable[[], Row]]


def _temporary(schema: TableSchema) -> Spool:
    return Spool.temporary(schema.arrow)
