"""Records a run while it goes on."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from fedsim.history.column import Piece, TableSchema
from fedsim.history.growing import GrowingTable, MakeSpool, Row
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
from fedsim.history.spool import Spool


class Recorder:
    """The rows of a run so far, by the names of their columns in `fedsim.history.schema`.

    A column that may be null can be left out; a name that the schema does not have is refused. The newest rows are in
    memory, the others on disk, so that memory does not grow with the rounds.
    """

    def __init__(self, name: str, spool: MakeSpool | None = None) -> None:
        self.name = name
        self.accounts: Callable[[], dict[str, NDArray[Any]]] | None = None
        self.clients: pa.Table | None = None
        make = spool or _temporary
        self._tables = {name: GrowingTable(schema, make) for name, schema in TABLES.items() if name not in AT_THE_END}

    def widen(self, more: Mapping[str, str]) -> None:
        """Add columns of effects of one's own to `PARTICIPATIONS`, before the first row: names, and what they say."""
        if more:
            table = self._tables[PARTICIPATIONS.name]
            table.schema = table.schema.wider(more)

    def schema(self, name: str) -> TableSchema:
        return self._tables[name].schema

    def add_participations(self, columns: Mapping[str, Piece]) -> None:
        """Record participations as columns of `PARTICIPATIONS`: arrays (n,), or one number for all; labels as codes."""
        self._tables[PARTICIPATIONS.name].add_columns(columns)

    def add_probes(self, **columns: Piece) -> None:
        """Record clients that were asked a question as columns of `PROBES`, given as in `add_participations`."""
        self._tables[PROBES.name].add_columns(columns)

    def add_secure_steps(self, **columns: Piece) -> None:
        """Record clients in a step of secure aggregation as columns of `SECURE_STEPS`, as in `add_participations`."""
        self._tables[SECURE_STEPS.name].add_columns(columns)

    def add_releases(self, **columns: Piece) -> None:
        """Record private releases as columns of `RELEASES`, given as in `add_participations`."""
        self._tables[RELEASES.name].add_columns(columns)

    def add_round(self, values: Row) -> None:
        self._tables[ROUNDS.name].add_row(values)

    def add_edge_round(self, **values: Any) -> None:
        """Record a round of an edge server as a row of `EDGE_ROUNDS`."""
        self._tables[EDGE_ROUNDS.name].add_row(values)

    def add_edge_participation(self, **values: Any) -> None:
        """Record a cycle of an edge server as a row of `EDGE_PARTICIPATIONS`."""
        self._tables[EDGE_PARTICIPATIONS.name].add_row(values)

    def add_evaluation(self, **values: Any) -> None:
        self._tables[EVALUATIONS.name].add_row(values)

    def add_evaluation_later(self, row: Callable[[], Row]) -> None:
        """Record an evaluation that may still run, in its place among the others."""
        self._tables[EVALUATIONS.name].add_row_later(row)

    def add_client_evaluation(self, **values: Any) -> None:
        """Record an evaluation on a client's samples as a row of `CLIENT_EVALUATIONS`."""
        self._tables[CLIENT_EVALUATIONS.name].add_row(values)

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
        tables = {name: TABLES[name].in_order(table.table()) for name, table in self._tables.items()}
        if self.accounts is not None:
            tables["accounts"] = ACCOUNTS.from_columns(self.accounts())
        if self.clients is not None:
            tables["clients"] = self.clients
        return History(
            self.name, **{n: table for n, table in tables.items() if table.num_rows or not TABLES[n].optional}
        )

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table batch by batch, with few rows in memory at a time; its rows are put on disk first."""
        if TABLES[name].sorted_by is not None:
            return iter(TABLES[name].in_order(self._tables[name].table()).to_batches())
        return self._tables[name].batches()


def _temporary(schema: TableSchema) -> Spool:
    return Spool.temporary(schema.arrow)
