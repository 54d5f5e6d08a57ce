"""The folder of a run, open for writing: its lock, its state, the streams of its tables.

The page of this room lists the files. A file is written beside its place and moved there, or appended to; the state
says how much of each table is good. So the folder is readable at every moment, also after a kill.
"""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self, cast

from fedsim.errors import RunError, ScenarioError
from fedsim.history import Recorder
from fedsim.history.schema import FORMAT_VERSION, TABLES, TableSchema
from fedsim.history.spool import EMPTY, Extent
from fedsim.results.lock import LOCK, FolderLock
from fedsim.results.models import ROUNDS
from fedsim.results.replay import ReplayedSpool
from fedsim.results.state import STATE, Status, described, read_state, replace_file, versions, write_json
from fedsim.results.summary import SUMMARY
from fedsim.results.tables import STREAMED_SINCE, extents, parquet_file, stream_file, write_parquet
from fedsim.scenario import Scenario

SCENARIO: Final = "scenario.toml"

_STREAMS, _PARTS = "*.arrows", ".*.part*"
_AT_THE_END: Final = ("*.parquet", "*.png", SUMMARY, "*.safetensors", _PARTS)
"""What a run writes when it ends, and what a kill leaves of files that were being written."""


class RunFolder:
    """The folder of one run; a context in which no other process writes to it.

    Parameters
    ----------
    path : of the folder; made by `begin` if it does not exist
    scenario : of the run
    replace : whether the run that the folder holds is thrown away, be it another scenario's or a finished one

    Attributes
    ----------
    state : of the run of this scenario that the folder holds, finished or to be gone on with; None for a new run

    Raises
    ------
    RunError
        On entering, if the folder is in use, holds another scenario's run or something that is no run.
    """

    def __init__(self, path: str | Path, scenario: Scenario, *, replace: bool = False) -> None:
        self.path, self.scenario, self._thrown = Path(path), scenario, replace
        self.state: dict[str, Any] | None = None
        # Read now, because a file may change while the run goes on.
        self._digest, self._files = scenario.digest(), scenario.files()
        self._code = {path: code.unreadable or code.text for path, code in scenario.code().items()}
        self._lock: FolderLock | None = None
        self._spools: dict[str, ReplayedSpool] = {}
        self._kept: dict[str, dict[str, int]] = {}
        self._saved: dict[str, dict[str, int]] = {}
        self._counts: dict[str, int] = {}
        self._executor: Mapping[str, Any] | None = None
        self._began, self._before_s = time.perf_counter(), 0.0

    def __enter__(self) -> Self:
        """Take the lock, if the folder exists, and see what it holds."""
        if self.path.exists():
            # First without the lock, whose file has no place in a folder that holds something else.
            self._look()
            self._take_lock()
            self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files and give the lock back."""
        for spool in self._spools.values():
            spool.close()
        if self._lock is not None:
            self._lock.release()

    @property
    def finished(self) -> bool:
        """Whether the folder holds this scenario's run, and it is finished."""
        return self.state is not None and self.state["status"] == "finished"

    def begin(self, executor: Mapping[str, Any] | None = None) -> None:
        """Make the folder ready for a run, or for the replay of the one that it holds.

        Parameters
        ----------
        executor : what computes the run, as it is told in the state

        Raises
        ------
        RunError
            If the folder cannot be written, or another process has taken it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be made: {error.strerror}") from None
        if self._lock is None:
            self._take_lock()
            self._look()
            if self.state is not None:
                raise RunError(f"{self.path}: another process has run this scenario there meanwhile")
        self._executor, self._began = executor, time.perf_counter()
        if self.state is not None:
            self._kept = self._saved = self.state["tables"]
            self._before_s = float(self.state.get("wall_s", 0.0))
            for name, extent in extents(self.state).items():
                self._spools[name] = self._open(TABLES[name], extent)
        self.save("running")
        for pattern in _AT_THE_END:
            self._remove(pattern)
        self._remove(f"{ROUNDS}/{_PARTS}")
        if self.state is None:
            self._remove(_STREAMS)
            self._remove(f"{ROUNDS}/*.safetensors")
        self._write_scenario()

    def spool(self, schema: TableSchema) -> ReplayedSpool:
        """Return the place of a table's rows in this folder."""
        if schema.name not in self._spools:
            self._spools[schema.name] = self._open(schema, EMPTY)
        return self._spools[schema.name]

    def mark(self, counts: dict[str, int]) -> None:
        """Take note of how many rows each table has at the end of a round."""
        self._counts = counts

    def save(self, status: Status, error: BaseException | None = None) -> None:
        """Write the state: how much of the tables is good, up to the last round whose rows are all on disk.

        While a replay is behind the run before, the rows of that run count.

        Parameters
        ----------
        status : of the run
        error : that has ended it
        """
        stored = {name: spool.extent for name, spool in self._spools.items()}
        whole = all(rows <= stored.get(name, EMPTY).rows for name, rows in self._counts.items())
        behind = any(
            min(self._counts.get(name, 0), self._spools[name].compared) < table["rows"]
            for name, table in self._kept.items()
        )
        if whole and not behind:
            for spool in self._spools.values():
                spool.sync()
            self._saved = {
                name: {"rows": self._counts.get(name, 0), "stored": extent.rows, "bytes": extent.nbytes}
                for name, extent in stored.items()
            }
        # The rows that the folder has were computed by that executor.
        executor = self.state["executor"] if behind and self.state is not None else self._executor
        self._write_state(status, self._saved, executor, error)

    def write_tables(self, recorder: Recorder) -> None:
        """Write the tables of a run that has ended as Parquet.

        Raises
        ------
        RunError
            If they cannot be written, or the run before had more rows.
        """
        recorder.flush()
        self.mark(recorder.counts())
        for name, spool in self._spools.items():
            spool.check_end(self._counts[name])
        self.save("running")
        for name, rows in self._counts.items():
            if rows or not TABLES[name].optional:
                write_parquet(parquet_file(self.path, name), TABLES[name], recorder.batches(name))
        accounts = recorder.history().accounts
        if accounts is not None:
            write_parquet(parquet_file(self.path, "accounts"), TABLES["accounts"], iter(accounts.to_batches()))

    def finish(self) -> None:
        """Write that the run is finished, and remove the streams; every other file is there."""
        tables = {name: {"rows": rows} for name, rows in self._counts.items()}
        self._write_state("finished", tables, self._executor)
        with contextlib.suppress(RunError):
            self._remove(_STREAMS)

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write values as JSON to a file of this name."""
        write_json(self.path / name, values)

    def _take_lock(self) -> None:
        lock = FolderLock(self.path)
        lock.acquire()
        self._lock = lock

    def _look(self) -> None:
        """See whether the folder may be used, and whether it holds this scenario's run."""
        if not self.path.is_dir():
            raise RunError(f"{self.path}: is a file; a run needs a folder")
        if not (self.path / STATE).exists():
            if any(entry.name != LOCK and not entry.match(_PARTS) for entry in self.path.iterdir()):
                raise RunError(f"{self.path}: is a folder that holds no run; choose another with --out")
            return
        if self._thrown:
            return
        state = read_state(self.path)
        # The digest of an object without a description knows its class only, so the run may be another one.
        if state["digest"] != self._digest or self.scenario.selector.prototype is not None:
            raise RunError(
                f"{self.path}: holds a run of another scenario (digest {state['digest'][:12]}); choose another folder "
                "with --out, or replace that run with --force"
            )
        if state["status"] != "finished" and state["format"] < STREAMED_SINCE:
            raise RunError(
                f"{self.path}: holds an unfinished run of format {state['format']}, which cannot be gone on with; "
                "choose another folder with --out, or replace that run with --force"
            )
        self.state = state

    def _open(self, schema: TableSchema, extent: Extent) -> ReplayedSpool:
        file = stream_file(self.path, schema.name)
        try:
            if extent.nbytes and file.stat().st_size < extent.nbytes:
                raise RunError(f"{file}: is damaged: it is shorter than the state says; --force runs it again")
            opened = cast(BinaryIO, file.open("r+b" if extent.nbytes else "w+b"))
        except OSError as error:
            raise RunError(f"{file}: cannot be written: {error.strerror}") from None
        return ReplayedSpool(schema.arrow, opened, str(file), extent, self._hint())

    def _hint(self) -> str:
        """Return in words what a contradiction between a replay and the run before may come from."""
        if self.state is None:
            return ""
        then, now = self.state.get("versions", {}), versions()
        other = [
            f"{n} {then.get(n, '-')} then, {now.get(n, '-')} now" for n in {**then, **now} if then.get(n) != now.get(n)
        ]
        hint = f" Other versions: {'; '.join(other)}." if other else ""
        before = self.state["executor"]
        if before is not None and self._executor is not None and before["fingerprint"] != self._executor["fingerprint"]:
            hint += f" Another executor: {before['fingerprint']} then, {self._executor['fingerprint']} now."
        return hint

    def _remove(self, pattern: str) -> None:
        try:
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _write_scenario(self) -> None:
        try:
            text = self.scenario.to_toml()
        except ScenarioError as error:
            text = f"# {error}\n"
        replace_file(self.path / SCENARIO, lambda part: part.write_text(text, encoding="utf-8"))

    def _write_state(
        self,
        status: Status,
        tables: Mapping[str, dict[str, int]],
        executor: Mapping[str, Any] | None,
        error: BaseException | None = None,
    ) -> None:
        write_json(
            self.path / STATE,
            {
                "format": FORMAT_VERSION,
                "name": self.scenario.name,
                "digest": self._digest,
                "files": self._files,
                "code": self._code,
                "seed": self.scenario.seed,
                "status": status,
                "error": None if error is None else described(error),
                "rounds": tables.get("rounds", {}).get("rows", 0),
                "tables": tables,
                "wall_s": round(self._before_s + time.perf_counter() - self._began, 3),
                "executor": executor,
                "versions": versions(),
            },
        )
