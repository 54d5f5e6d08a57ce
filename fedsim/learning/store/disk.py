"""A store on disk: one SQLite file that any number of processes share, and large models as safetensors beside it."""

import json
import os
import sqlite3
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from threading import RLock
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedsim.errors import StoreError, StoreWarning
from fedsim.learning.store.contracts import Arrays, Record

T = TypeVar("T")
FILE: Final = "results-1.sqlite"
_RESERVED: Final = "__metadata__"
DEFAULT_LIMIT_BYTES: Final = 5 * 2**30
_LARGE: Final = 2**20
_WAIT_S: Final = 20.0
_PAUSE_S: Final = 60.0
_FAULTS: Final = (OSError, sqlite3.Error, SafetensorError, TypeError)
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS record(digest TEXT PRIMARY KEY, names TEXT, numbers BLOB, crc INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS model(digest TEXT PRIMARY KEY, bytes INTEGER, used_s REAL, content BLOB, crc INTEGER);
CREATE INDEX IF NOT EXISTS by_use ON model(used_s, bytes);
"""
_BEYOND: Final = """digest IN (SELECT digest FROM
(SELECT digest, sum(bytes) OVER (ORDER BY used_s DESC, digest) AS total FROM model) WHERE total > ?)"""


class Usage(NamedTuple):
    records: int
    record_bytes: int
    arrays: int
    array_bytes: int
    oldest_s: float | None
    newest_s: float | None


class Checked(NamedTuple):
    """How many records and models are sound, and how many were damaged and are removed."""

    records: int
    arrays: int
    damaged_records: int
    damaged_arrays: int


class DiskStore:
    """Records and arrays in a folder; what is damaged counts as missing, and a full disk is said once."""

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        if limit_bytes < 0:
            raise StoreError(f"limit_bytes: {limit_bytes!r} is not allowed; it must be at least 0")
        self.folder, self.limit_bytes = folder.absolute(), limit_bytes
        self._file, self._opened_as = self.folder / FILE, (0, 0)
        self._sql: sqlite3.Connection | None = None
        self._lock, self._paused_until, self._warned = RLock(), 0.0, set[str]()
        try:
            self._run(lambda sql: sql.execute("SELECT 1 FROM record, model LIMIT 1"))
        except (*_FAULTS, NotImplementedError) as error:  # the last from a disk without file locks
            allowed = "it must be a folder that can be made and written"
            raise StoreError(f"store: {folder} cannot be used ({error}); {allowed}") from error

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        text, asked = "SELECT * FROM record WHERE digest IN (SELECT value FROM json_each(?))", json.dumps([*digests])
        rows = self._tried("looked up", lambda sql: sql.execute(text, (asked,)).fetchall()) or ()
        return {row[0]: record for row in rows if (record := _record(row)) is not None}

    def put_records(self, records: Mapping[str, Record]) -> None:
        rows = [_row(*item) for item in records.items()]
        self._tried("kept", lambda sql: sql.executemany("REPLACE INTO record VALUES (?, ?, ?, ?)", rows))

    def arrays(self, digest: str) -> Arrays | None:
        return self._tried("looked up", lambda sql: self._read(sql, digest))

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        if sum(values.nbytes for values in arrays.values()) <= self.limit_bytes:
            self._tried("kept", lambda sql: self._put(sql, digest, arrays))

    def remove_arrays(self, digest: str) -> None:
        self._tried("removed", lambda sql: self._removed(sql, "digest = ?", digest))

    def usage(self) -> Usage:
        with self._readable() as sql:
            (records,) = sql.execute("SELECT count(*) FROM record").fetchone()
            held = sql.execute("SELECT count(*), ifnull(sum(bytes), 0), min(used_s), max(used_s) FROM model").fetchone()
            return Usage(records, self._file.stat().st_size, *held)

    def trim(self, limit_bytes: int | None = None, days: float | None = None) -> tuple[int, int]:
        """Remove models that were not used for some days, or longest; return how many, and their bytes."""
        with self._readable() as sql:
            gone = [] if days is None else self._removed(sql, "used_s < ?", time.time() - 86400 * days)
            gone += [] if limit_bytes is None else self._removed(sql, _BEYOND, limit_bytes)
            return len(gone), sum(gone)

    def check(self) -> Checked:
        """Read everything, and remove what is damaged and files without a model."""
        with self._readable() as sql:
            if (said := sql.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(said)
            wrong = [row[0] for row in sql.execute("SELECT * FROM record") if _record(row) is None]
            sql.executemany("DELETE FROM record WHERE digest = ?", [(one,) for one in wrong])
            digests = [row[0] for row in sql.execute("SELECT digest FROM model").fetchall()]
            sound = {one for one in digests if self._read(sql, one, say=False) is not None}
            for path in self.folder.glob("large/*/*"):
                if path.stem not in sound and time.time() - path.stat().st_mtime > 3600:
                    path.unlink()
            (records,) = sql.execute("SELECT count(*) FROM record").fetchone()
            return Checked(records, len(sound), len(wrong), len(digests) - len(sound))

    def clear(self) -> None:
        with self._readable() as sql:
            self._removed(sql, "1")
            sql.executescript("DELETE FROM record; VACUUM")
            for path in self.folder.glob("damaged-*"):
                rmtree(path)

    def close(self) -> None:
        with self._lock:
            if self._sql is not None and self._opened_as[0] != os.getpid():
                _OF_PARENTS.append(self._sql)  # its locks are the parent's
            elif self._sql is not None:
                self._sql.close()
            self._sql = None

    def path(self, digest: str) -> Path:
        return self.folder / "large" / digest[:2] / f"{digest}.safetensors"

    def _put(self, sql: sqlite3.Connection, digest: str, arrays: Arrays) -> None:
        if sql.execute("UPDATE model SET used_s = ? WHERE digest = ?", (time.time(), digest)).rowcount:
            return
        if _RESERVED in arrays:  # the library writes an array of this name, and cannot read it
            raise SafetensorError(f"array {_RESERVED!r}: safetensors has this name for itself")
        # The library takes the memory of an array as it lies.
        content = save({name: np.asarray(one, one.dtype.newbyteorder("="), order="C") for name, one in arrays.items()})
        if large := len(content) > _LARGE:
            path = self.path(digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{uuid4().hex}")
            part.write_bytes(content)
            part.replace(path)
        row = (digest, len(content), time.time(), None if large else content, zlib.crc32(content))
        sql.execute("INSERT INTO model VALUES (?, ?, ?, ?, ?)", row)
        if sql.execute("SELECT sum(bytes) FROM model").fetchone()[0] > self.limit_bytes:
            self._removed(sql, _BEYOND, self.limit_bytes)

    def _read(self, sql: sqlite3.Connection, digest: str, *, say: bool = True) -> Arrays | None:
        row = sql.execute("SELECT content, crc, used_s FROM model WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        try:
            content = self.path(digest).read_bytes() if row[0] is None else row[0]
            if zlib.crc32(content) != row[1]:
                raise OSError("the checksum differs")
            found: dict[str, Any] = load(content)
        except (OSError, SafetensorError, TypeError) as error:
            self._removed(sql, "digest = ?", digest)
            if say:
                self._warn("damaged", f"damaged arrays dropped ({error})")
            return None
        if time.time() - row[2] > 1:
            sql.execute("UPDATE model SET used_s = ? WHERE digest = ?", (time.time(), digest))
        for values in found.values():
            values.flags.writeable = False
        return found

    def _removed(self, sql: sqlite3.Connection, which: str, *given: object) -> list[int]:
        gone = sql.execute(f"DELETE FROM model WHERE {which} RETURNING digest, bytes", given).fetchall()
        for digest, _ in (one for one in gone if one[1] > _LARGE):
            self.path(digest).unlink(missing_ok=True)
        return [size_bytes for _, size_bytes in gone]

    def _tried(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do a piece of work, or warn that it cannot be done; results are then computed again."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            return self._run(work)
        except _FAULTS as error:
            if "locked" in str(error):
                self._paused_until = time.monotonic() + _PAUSE_S
            self._warn(what, f"results could not be {what} ({error}); the run goes on without")
        return None

    @contextmanager
    def _readable(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock, self._open() as sql:
                yield sql
        except _FAULTS as error:
            if _damaged(error):
                self._begin_afresh(error)
            raise StoreError(f"store: {self.folder} cannot be read or changed ({error})") from error

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do a piece of work as a whole or not at all, and once more on an empty file if this one is damaged."""
        with self._lock:
            try:
                with self._open() as sql:
                    return work(sql)
            except sqlite3.DatabaseError as error:
                if not _damaged(error):
                    raise
                self._begin_afresh(error)
            with self._open() as sql:
                return work(sql)

    def _open(self) -> sqlite3.Connection:
        """Return the connection of this process, opened again if the path leads to another file."""
        inode = self._file.stat().st_ino if self._file.exists() else 0
        if self._sql is not None and self._opened_as == (os.getpid(), inode):
            return self._sql
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "results.lock", timeout=3 * _WAIT_S):  # SQLite itself does not wait there
            sql = sqlite3.connect(self._file, _WAIT_S, isolation_level="IMMEDIATE", check_same_thread=False)
            self._sql, self._opened_as = sql, (os.getpid(), self._file.stat().st_ino)
            for line in ("journal_mode = WAL", "synchronous = NORMAL"):
                sql.execute(f"PRAGMA {line}").close()
            sql.executescript(_TABLES)
        return sql

    def _begin_afresh(self, error: Exception) -> None:
        """Move the damaged file aside, unless another process has done so."""
        mine, aside = self._opened_as[1], self.folder / f"damaged-{uuid4().hex[:8]}"
        self.close()
        with FileLock(self.folder / "results.lock", timeout=3 * _WAIT_S):
            if self._file.exists() and mine == self._file.stat().st_ino:
                aside.mkdir()
                for path in self.folder.glob(f"{FILE}*"):
                    path.rename(aside / path.name)
        self._warn("index", f"the index was damaged ({error}) and lies in {aside.name} now; an empty one begins")

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"store {self.folder}: {text}", StoreWarning, stacklevel=2)


_OF_PARENTS: Final[list[sqlite3.Connection]] = []


def _damaged(error: Exception) -> bool:
    plain = isinstance(error, sqlite3.OperationalError) and "no such" not in str(error)
    return isinstance(error, sqlite3.DatabaseError) and not plain


def _row(digest: str, record: Record) -> tuple[str, str, bytes, int]:
    names, numbers = json.dumps([*record]), struct.pack(f"<{len(record)}d", *record.values())
    return digest, names, numbers, zlib.crc32(f"{digest} {names}".encode() + numbers)


def _record(row: Sequence[Any]) -> Record | None:
    digest, names, numbers, crc = row
    if not isinstance(numbers, bytes) or zlib.crc32(f"{digest} {names}".encode() + numbers) != crc:
        return None
    return dict(zip(json.loads(names), struct.unpack(f"<{len(numbers) // 8}d", numbers), strict=True))
