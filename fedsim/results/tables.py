"""The tables of a run folder as files: streams while the run goes on, Parquet when it has ended."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fedsim.errors import RunError
from fedsim.history import History
from fedsim.history.column import TableSchema
from fedsim.history.schema import TABLES
from fedsim.history.spool import read_batches
from fedsim.learning import ExecutorUsed
from fedsim.results.manifest import SCENARIO, SUMMARY, checked_bytes
from fedsim.results.models import with_model
from fedsim.results.places import SWAP, located
from fedsim.results.state import RunState, TableState, read_state, shortfall
from fedsim.results.summary import read_summary
from fedsim.scenario import Scenario
from fedsim.scenario.sections import Target
from fedsim.simulation import EvaluatingAll, Simulation
from fedsim.whole_files import replace_file

ROWS_IN_A_GROUP: Final = 2**16
"""Rows of a row group of a Parquet file."""

_LOOKS: Final = 20
"""Attempts at reading a folder that changes meanwhile."""


def stream_file(folder: Path, name: str) -> Path:
    """Return the file of a table's stream: segments of record batches, see `fedsim.history.spool`."""
    return folder / f"{name}.arrows"


def parquet_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def write_parquet(path: Path, schema: TableSchema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a table as Parquet, with one row group in memory; the file depends on the rows alone."""

    def write(part: Path) -> None:
        # Opened here: pyarrow takes the path of a folder that is called `seed:3` for a URI.
        with part.open("wb") as file, pq.ParquetWriter(file, schema.arrow, write_page_checksum=True) as writer:
            for group in _groups(schema.arrow, batches):
                writer.write_table(group, row_group_size=ROWS_IN_A_GROUP)

    replace_file(path, write)


def read_parquet(content: bytes) -> pa.Table:
    """Return the table of a Parquet file; the checksums of its pages are compared, if it has any."""
    with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as opened:
        return opened.read()


def read_run(path: str | Path) -> History:
    """Return the history in a run folder; that of an unfinished run ends with the last round that is in all tables.

    `History.unfinished` says in words what an unfinished run lacks.

    Parameters
    ----------
    path : of the run folder

    Returns
    -------
    History

    Raises
    ------
    RunError
        If the folder holds no run, or one of another version of fedsim, or a table that is damaged.

    Examples
    --------
    >>> from fedsim import Scenario, run
    >>> scenario = Scenario.load("scenarios/pause/fig2_cifar_iid_small.toml")
    >>> scenario = scenario.replace({"rounds.count": 2, "learning": "none"})
    >>> history = run(scenario, "runs/two")
    >>> read_run("runs/two").rounds.equals(history.rounds)
    True
    """
    folder = Path(path)
    for _ in range(_LOOKS):
        state = read_state(folder)
        try:
            return _history(folder, state)
        except RunError:
            # A run that has just ended, or was exchanged for another one, has other files than its state said.
            if read_state(folder) == state and not (folder / SWAP).exists():
                raise
    return _history(folder, read_state(folder))


def _history(folder: Path, state: RunState) -> History:
    finished = state.status == "finished"
    tables = {}
    for name, schema in TABLES.items():
        file = located(folder, (parquet_file if finished else stream_file)(Path(), name).name)
        kept = state.tables.get(name)
        if schema.optional and not (file.exists() if finished else kept):
            continue
        try:
            found = read_parquet(checked_bytes(file, file.name, state)) if finished else _streamed(file, kept, schema)
            tables[name] = schema.read(found)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{file}: cannot be read as a table of a run: {error}") from None
    history = History(
        state.name,
        **tables,
        unfinished=None if finished else shortfall(folder),
        find_evaluations=partial(_evaluate_all, folder) if tables["evaluations"].num_rows else None,
        find_scenario=partial(_scenario_of, folder),
        digest=state.digest,
        seed=state.seed,
    )
    history = replace(history, **_asked(folder))
    if finished and located(folder, SUMMARY).exists():
        summary = read_summary(folder)
        history = replace(
            history,
            said=tuple(summary.get("notes", ())),
            until_s=summary.get("until_s"),
            target_accuracy=summary.get("target_accuracy", history.target_accuracy),
            smoothing=summary.get("held_evaluations", history.smoothing),
        )
    return with_model(history, folder)


def _scenario_of(folder: Path) -> Scenario:
    return Scenario.load(located(folder, SCENARIO))


def _evaluate_all(folder: Path, history: History) -> History:
    """Repeat the run of a folder with its executor, and with an evaluation after each round; nothing is written."""
    scenario, state = _scenario_of(folder), read_state(folder)
    asked = {} if state.executor is None else ExecutorUsed.from_json(state.executor).asked
    return EvaluatingAll(scenario, partial(Simulation, **asked))(history)


def _asked(folder: Path) -> dict[str, Any]:
    """Return what the scenario of a run asks of its results; nothing where it could not be written as TOML."""
    try:
        tables = tomllib.loads(located(folder, SCENARIO).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    results, rounds = tables.get("results", {}), tables.get("rounds", {})
    found = {name: results[name] for name in ("target_accuracy", "smoothing") if name in results}
    target = Target(**rounds["target"]).goal if "target" in rounds else None
    return found | {"until_s": rounds.get("until_s"), "target": target}


def _streamed(file: Path, kept: TableState | None, schema: TableSchema) -> pa.Table:
    if kept is None or not kept.bytes:
        return pa.Table.from_batches([], schema.arrow)
    with file.open("rb") as opened:
        table = pa.Table.from_batches(list(read_batches(opened, kept.extent)))
    if table.num_rows < kept.rows:
        raise ValueError(f"it holds {table.num_rows} rows of {kept.rows}")
    return table.slice(0, kept.rows)


def _groups(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of a row group's rows each, in one piece; the last one has the rest."""
    waiting: list[pa.RecordBatch] = []
    rows, whole = 0, False
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_IN_A_GROUP:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, ROWS_IN_A_GROUP).combine_chunks()
            waiting = table.slice(ROWS_IN_A_GROUP).to_batches()
            rows, whole = rows - ROWS_IN_A_GROUP, True
    if rows or not whole:
        yield pa.Table.from_batches(waiting, schema).combine_chunks()
