"""A table that a run folder has already, while the run is replayed: rows are compared, and only new ones appended."""

from collections.abc import Iterator
from typing import BinaryIO, Final

import pyarrow as pa

from fedsim.errors import RunError
from fedsim.history.spool import EMPTY, Extent, Spool


class ReplayedSpool(Spool):
    """Rows of one table in a run folder, which a replay must give again."""

    def __init__(self, schema: pa.Schema, file: BinaryIO, where: str, extent: Extent = EMPTY, hint: str = "") -> None:
        super().__init__(schema, file, where, extent)
        self._hint = hint
        self._kept_rows, self.compared = extent.rows, 0
        self._kept: Iterator[pa.RecordBatch] = self.batches()
        self.take(schema)

    def take(self, schema: pa.Schema) -> None:
        """Have the columns of a schema, before the first row."""
        self.schema, self._ahead = schema, pa.Table.from_batches([], schema)

    def append(self, table: pa.Table, at: int) -> None:
        """Compare rows with those of the run before as far as it has come; append those beyond."""
        if self.compared < self._kept_rows:
            again = table.slice(max(0, self.compared - at), self._kept_rows - max(at, self.compared))
            if again.num_rows:
                self._compare(again)
                self.compared += again.num_rows
        super().append(table, at)

    def check_end(self, rows: int) -> None:
        if rows < self._kept_rows:
            self._refuse(f"the replay has ended after {rows} rows of {self._kept_rows}")

    def _compare(self, again: pa.Table) -> None:
        while self._ahead.num_rows < again.num_rows:
            try:
                self._ahead = pa.concat_tables([self._ahead, pa.Table.from_batches([next(self._kept)])])
            except StopIteration:
                raise RunError(f"{self.where}: is damaged: it has fewer rows than run.json says; {_AGAIN}") from None
        kept, self._ahead = self._ahead.slice(0, again.num_rows), self._ahead.slice(again.num_rows)
        for name in self.schema.names:
            one, other = kept.column(name), again.column(name)
            if one.equals(other):
                continue
            for row, (before, now) in enumerate(zip(one.to_pylist(), other.to_pylist(), strict=True)):
                # NaN is not equal to itself.
                if before != now and not (before != before and now != now):  # noqa: PLR0124
                    number = f", of round {again.column('round')[row].as_py()}" if "round" in self.schema.names else ""
                    at = self.compared + row
                    self._refuse(f"row {at}{number}, column {name}: {before!r} in the folder, {now!r} in the replay")

    def _refuse(self, what: str) -> None:
        raise RunError(f"{self.where}: the replay contradicts the finished rounds: {what}.{self._hint} {_AGAIN}")


_AGAIN: Final = "Nothing was changed; --force runs the scenario again from the beginning"
