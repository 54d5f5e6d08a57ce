"""Records a run while it goes on."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from fedsim.history.column import Piece, TableSchema
from fedsim.history.growing import GrowingTable, MakeSpool, Row
from fedsim.history.history import History
from fedsim.history.schema import ACCOUNTS, AT_THE_END, PARTICIPATIONS, TABLES
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
        make = spool or (lambda schema: Spool.temporary(schema.arrow))
        self._tables = {name: GrowingTable(schema, make) for name, schema in TABLES.items() if name not in AT_THE_END}

    def widen(self, more: Mapping[str, str]) -> None:
        """Add columns of effects of one's own to `PARTICIPATIONS`, before the first row: names, and what they say."""
        if more:
            table = self._tables[PARTICIPATIONS.name]
            table.schema = table.schema.wider(more)

    def schema(self, name: str) -> TableSchema:
        return self._tables[name].schema

    def add_columns(self, table: str, /, **columns: Piece) -> None:
        """Record rows of a table as columns: arrays (n,), or one number for all; labels as codes."""
        self._tables[table].add_columns(columns)

    def add_row(self, table: str, /, **values: Any) -> None:
        self._tables[table].add_row(values)

    def add_row_later(self, table: str, row: Callable[[], Row]) -> None:
        """Record a row whose values may not be known yet, in its place among the others."""
        self._tables[table].add_row_later(row)

    def counts(self) -> dict[str, int]:
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
