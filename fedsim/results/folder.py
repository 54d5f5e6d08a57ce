"""The folder of a run, open for writing: its lock, its state, the streams of its tables.

A file is written beside its place and moved there, or appended to; the state says how much of each table is good. So
the folder is readable at every moment, also after a kill.
"""

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self, cast

from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.history.column import TableSchema
from fedsim.history.schema import AT_THE_END, FORMAT_VERSION, TABLES
from fedsim.history.spool import EMPTY, Extent
from fedsim.identity import module_folders
from fedsim.results import manifest
from fedsim.results.holding import Holding, complete_exchange, exchange, look, of_another, refuse_outside
from fedsim.results.lock import OWNER, FolderLock
from fedsim.results.manifest import ALWAYS, SCENARIO, STREAMS
from fedsim.results.places import SWAP, make_anew
from fedsim.results.replay import ReplayedSpool
from fedsim.results.state import (
    STATE,
    Cohorts,
    Ended,
    FileState,
    RunState,
    Status,
    TableState,
    versions,
    write_state,
)
from fedsim.results.tables import parquet_file, stream_file, write_parquet
from fedsim.scenario import Scenario
from fedsim.whole_files import make_folder, write_toml

_ROUNDS_BACK: Final = 4096
_PLANNED: Final = tuple(name for name in ALWAYS if name != STATE)


class RunFolder:
    """The folder of one run; a context in which no other process writes to it."""

    def __init__(
        self, path: str | Path, scenario: Scenario, *, replace: bool = False, cohorts: Cohorts = "selector"
    ) -> None:
        self.path, self.scenario, self._thrown, self._cohorts = Path(path), scenario, replace, cohorts
        self._held = Holding(self.path)
        # Read now, because a file may change while the run goes on.
        self._digest, self._files = scenario.digest(), scenario.files()
        self._code = {path: code.unreadable or code.text for path, code in scenario.code().items()}
        self._modules = module_folders(scenario)
        self._lock: FolderLock | None = None
        self._spools: dict[str, ReplayedSpool] = {}
        self._kept: Mapping[str, TableState] = {}
        self._now: RunState | None = None
        self._saved: dict[str, TableState] = {}
        self._counts: dict[str, int] = {}
        # Of the last rounds, newest last: where a table cannot be written to its end, an earlier round is the last.
        self._marks: deque[dict[str, int]] = deque(maxlen=_ROUNDS_BACK)
        self._written: dict[str, FileState | None] = {}
        self._executor: dict[str, Any] | None = None
        self._data: str | None = None
        self.opened: Mapping[str, str] = {}
        self.outside = ""
        self._began, self._before_s = time.perf_counter(), 0.0

    def __enter__(self) -> Self:
        if self.path.exists():
            # First without the lock, whose file has no place in a folder that holds something else.
            self._look()
            self._take_lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for spool in self._spools.values():
            spool.close()
        if self._lock is not None:
            self._lock.release()

    @property
    def place(self) -> Path:
        """The folder, or a folder inside for a run that replaces another one."""
        return self._held.place

    @property
    def state(self) -> RunState | None:
        """The state of this scenario's run in the folder, finished or to be gone on with; None for a new run."""
        return self._held.state

    @property
    def finished(self) -> bool:
        return self.state is not None and self.state.status == "finished"

    def missing(self) -> list[str]:
        """Return the files of a finished run that are not there any more; what a kill has left is removed."""
        state = cast(RunState, self.state)
        self._remove([name for name in STREAMS if name in state.written])
        return [name for name, file in state.written.items() if file and not (self.path / name).exists()]

    def written_again(self) -> None:
        """Store the checksums of the files of a finished run as they are now."""
        state = cast(RunState, self.state)
        again = {name: file and manifest.described(self.path / name) for name, file in state.written.items()}
        self._put(state.model_copy(update={"written": again}))

    def check_same(self, data: str | None) -> None:
        """Refuse a finished run in which the user's own parts gave other numbers."""
        state = cast(RunState, self.state)
        if None not in (data, state.data) and data != state.data:
            raise of_another(self.path, state, "; what its own parts read or compute has changed")

    def begin(self, executor: Mapping[str, Any] | None = None, data: str | None = None) -> None:
        """Make the folder ready for a run, or for the replay of the one that it holds."""
        make_folder(self.path)
        if self._lock is None:
            self._take_lock()
            if self.state is not None:
                raise RunError(f"{self.path}: another process has run this scenario there meanwhile")
        self._executor = None if executor is None else dict(executor)
        self._data, self._began = data, time.perf_counter()
        manifest.refuse_others(self.path, _PLANNED, self._held.files)
        self._written = dict.fromkeys(_PLANNED)
        if self.state is not None:
            self._go_on(self.state)
        elif self.place != self.path:
            make_anew(self.place)
        self.save("running")
        for place in {self.path, self.place}:
            for part in manifest.parts(place, [STATE, OWNER, *self._written]):
                part.unlink(missing_ok=True)
        write_toml(self.scenario, self.place / SCENARIO)

    def _go_on(self, before: RunState) -> None:
        if None not in (self._data, before.data) and self._data != before.data:
            raise RunError(
                f"{self.path}: its run was begun with other data or parts (digest {before.data}; now {self._data}); "
                "--force runs the scenario again from the beginning"
            )
        self._kept, self._saved = before.tables, dict(before.tables)
        self._before_s = before.wall_s
        self._written |= dict.fromkeys(manifest.files_of(before) - {STATE})
        for name, table in before.tables.items():
            if name not in TABLES:
                raise RunError(f"{self.path / STATE}: is damaged: there is no table {name!r}")
            self._spools[name] = self._open(TABLES[name], table.extent)

    def spool(self, schema: TableSchema) -> ReplayedSpool:
        if schema.name not in self._spools:
            self._spools[schema.name] = self._open(schema, EMPTY)
        self._spools[schema.name].take(schema.arrow)
        return self._spools[schema.name]

    def mark(self, counts: dict[str, int]) -> None:
        """Store how many rows each table has at the end of a round."""
        self._counts = counts
        self._marks.append(counts)

    def claim(self, name: str) -> Path:
        """Return the path of a file that the run is to write; the state lists it from now on."""
        if name not in self._written:
            manifest.refuse_others(self.path, [name], self._held.files)
            self._written[name] = None
            if self._now is not None:
                self._put(self._now.model_copy(update={"written": dict(self._written)}))
        return self.place / name

    def save(self, status: Status, error: BaseException | None = None) -> None:
        """Write the state: how much of the tables is good, up to the last round whose rows are all on disk.

        While a replay is behind the run before, the rows of that run count.
        """
        stored = {name: spool.extent for name, spool in self._spools.items()}
        whole = next((marked for marked in reversed(self._marks) if _within(marked, stored)), None)
        behind = any(
            min((whole or {}).get(name, 0), self._spools[name].compared) < table.rows
            for name, table in self._kept.items()
        )
        if whole is not None and not behind:
            for spool in self._spools.values():
                spool.sync()
            self._saved = {
                name: TableState(rows=whole.get(name, 0), stored=extent.rows, bytes=extent.nbytes, crc32=extent.crc32)
                for name, extent in stored.items()
            }
        # The rows that the folder has were computed by that executor.
        executor = self.state.executor if behind and self.state is not None else self._executor
        self._write_state(status, self._saved, executor, error)

    def write_tables(self, recorder: Recorder) -> None:
        recorder.flush()
        self.mark(recorder.counts())
        for name, spool in self._spools.items():
            spool.check_end(self._counts[name])
        self.save("running")
        for name, rows in self._counts.items():
            if rows or not TABLES[name].optional:
                write_parquet(parquet_file(self.place, name), recorder.schema(name), recorder.batches(name))
        tables = recorder.history().tables()
        for name in AT_THE_END:
            if name in tables:
                write_parquet(parquet_file(self.place, name), TABLES[name], iter(tables[name].to_batches()))

    def finish(self) -> None:
        """Remove the streams and write that the run is finished; one that replaces another run takes its place."""
        there = [name for name in self._written if name not in STREAMS and (self.place / name).exists()]
        # A kill may leave streams, so that they stay the run's.
        streams = [name for name in self._written if name in STREAMS and (self.place / name).exists()]
        self._written = {name: manifest.described(self.place / name) for name in there} | dict.fromkeys(streams)
        tables = {name: TableState(rows=rows) for name, rows in self._counts.items()}
        self._write_state("finished", tables, self._executor)
        with contextlib.suppress(RunError):
            self._remove(streams)
        if self.place != self.path:
            self._held = exchange(self.path, self._held, cast(RunState, self._now))

    def _take_lock(self) -> None:
        lock = FolderLock(self.path)
        lock.acquire()
        self._lock = lock
        if (self.path / SWAP).exists():
            complete_exchange(self.path)
        self._look()
        if self.state is not None and self.finished and self.place != self.path:
            self._held = exchange(self.path, self._held, self.state)

    def _look(self) -> None:
        """Read what the folder holds, and refuse one that may not be used."""
        # The digest of an object without a description knows its class only, so the run may be another one.
        digest = None if self.scenario.selector.content else self._digest
        self._held = look(self.path, digest, self._files, replace=self._thrown)
        refuse_outside(self.path, self.state, self._cohorts)

    def _open(self, schema: TableSchema, extent: Extent) -> ReplayedSpool:
        file = stream_file(self.place, schema.name)
        try:
            opened = cast(BinaryIO, file.open("r+b" if extent.nbytes else "w+b", buffering=0))
        except OSError as error:
            raise RunError(f"{file}: cannot be written: {error.strerror}") from None
        return ReplayedSpool(schema.arrow, opened, str(file), extent, self._hint())

    def _hint(self) -> str:
        """Return in words why a replay may contradict the run before."""
        if self.state is None:
            return ""
        then, now = self.state.versions, versions()
        other = [
            f"{n} {then.get(n, '-')} then, {now.get(n, '-')} now" for n in {**then, **now} if then.get(n) != now.get(n)
        ]
        hint = f" Other versions: {'; '.join(other)}." if other else ""
        before = self.state.executor
        if before is not None and self._executor is not None and before["fingerprint"] != self._executor["fingerprint"]:
            hint += f" Another executor: {before['fingerprint']} then, {self._executor['fingerprint']} now."
        return hint

    def _remove(self, names: list[str]) -> None:
        try:
            for name in names:
                (self.place / name).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.place}: cannot be written: {error.strerror}") from None

    def _write_state(
        self,
        status: Status,
        tables: Mapping[str, TableState],
        executor: dict[str, Any] | None,
        error: BaseException | None = None,
    ) -> None:
        rounds = tables.get("rounds")
        self._put(
            RunState(
                format=FORMAT_VERSION,
                name=self.scenario.name,
                digest=self._digest,
                data=self._data,
                files=self._files,
                opened=dict(self.opened),
                outside=self.outside,
                code=self._code,
                modules=self._modules,
                seed=self.scenario.seed,
                cohorts=self._cohorts,
                status=status,
                error=None if error is None else Ended.of(error),
                rounds=0 if rounds is None else rounds.rows,
                planned=self.scenario.rounds.count,
                tables=dict(tables),
                wall_s=round(self._before_s + time.perf_counter() - self._began, 3),
                executor=executor,
                versions=versions(),
                written=dict(self._written),
            )
        )

    def _put(self, state: RunState) -> None:
        write_state(self.place, state)
        self._now = state


def _within(counts: Mapping[str, int], stored: Mapping[str, Extent]) -> bool:
    """Return whether all rows that are counted are on disk."""
    return all(rows <= stored.get(name, EMPTY).rows for name, rows in counts.items())
