"""The tables of a run folder as files: streams while the run goes on, Parquet when it has ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.schema import TABLES, TableSchema
from fedsim.history.spool import Extent, read_batches
from fedsim.results.models import with_model
from fedsim.results.state import read_state, replace_file

ROWS_IN_A_GROUP: Final = 2**16
"""Rows of a row group of a Parquet file."""

STREAMED_SINCE: Final = 3


def stream_file(folder: Path, name: str) -> Path:
    """Return the file of a table's stream: segments of record batches, see `fedsim.history.spool`."""
    return folder / f"{name}.arrows"


def parquet_file(folder: Path, name: str) -> Path:
    """Return the file of a table of a finished run."""
    return folder / f"{name}.parquet"


def extents(state: dict[str, Any]) -> dict[str, Extent]:
    """Return what the streams of an unfinished run hold, by table, as its state says.

    Raises
    ------
    RunError
        If the state does not say it.
    """
    try:
        return {TABLES[name].name: Extent(int(t["stored"]), int(t["bytes"])) for name, t in state["tables"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RunError("run.json: is damaged: it does not say what the tables of the run hold") from None


def write_parquet(path: Path, schema: TableSchema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a table as Parquet, with one row group in memory; the file depends on the rows alone.

    Parameters
    ----------
    path : of the file
    schema : of the table
    batches : its rows, divided in any way
    """

    def write(part: Path) -> None:
        with pq.ParquetWriter(part, schema.arrow) as writer:
            for group in _groups(schema.arrow, batches):
                writer.write_table(group, row_group_size=ROWS_IN_A_GROUP)

    replace_file(path, write)


def read_run(path: str | Path) -> History:
    """Return the history in a run folder; that of an unfinished run ends with the last round that is in all tables.

    A folder without a format is of format 1; columns that are newer than the folder's format are null.

    Raises
    ------
    RunError
        If the folder holds no run, or one of a newer format, or a table that is not in its format.
    """
    folder = Path(path)
    for last in (False, True):
        state = read_state(folder)
        try:
            return _history(folder, state)
        except RunError:
            # A run that has just ended, or was started again, has other files than its state said.
            if last or read_state(folder) == state:
                raise
    raise AssertionError


def _history(folder: Path, state: dict[str, Any]) -> History:
    streamed = state["format"] >= STREAMED_SINCE and state["status"] != "finished"
    tables = {}
    for name, schema in TABLES.items():
        file = stream_file(folder, name) if streamed else parquet_file(folder, name)
        kept = state.get("tables", {}).get(name, {}) if streamed else {}
        if schema.optional and not (kept if streamed else file.exists()):
            continue
        try:
            found = _streamed(file, kept, schema) if streamed else pq.read_table(file)
            tables[name] = schema.read(found, state["format"])
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{file}: cannot be read as a table of a run: {error}") from None
    return with_model(History(str(state["name"]), **tables), folder)


def _streamed(file: Path, kept: dict[str, int], schema: TableSchema) -> pa.Table:
    if not kept:
        return schema.arrow.empty_table()
    with file.open("rb") as opened:
        table = pa.Table.from_batches(list(read_batches(opened, kept["bytes"])))
    if table.num_rows < kept["rows"]:
        raise ValueError(f"it holds {table.num_rows} rows of {kept['rows']}")
    return table.slice(0, kept["rows"])


def _groups(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of a row group's rows each, in one piece; the last one has the rest."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_IN_A_GROUP:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, ROWS_IN_A_GROUP).combine_chunks()
            waiting = table.slice(ROWS_IN_A_GROUP).to_batches()
            rows -= ROWS_IN_A_GROUP
    if rows or not waiting:
        yield pa.Table.from_batches(waiting, schema).combine_chunks()
