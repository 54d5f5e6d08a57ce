"""Records, and which arrays there are and when they were used, in one SQLite file that processes share."""

import os
import secrets
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple, TypeVar
from weakref import WeakSet

from filelock import FileLock

from fedsim.errors import StoreError, StoreWarning
from fedsim.learning.store.contracts import Record
from fedsim.learning.store.rows import record_of, row_of

Answer = TypeVar("Answer")

FORMAT: Final = 1
_WAIT_S: Final = 20.0
"""How long to wait for another process that writes."""
_ASKED_AT_ONCE: Final = 500
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SETTINGS: Final = ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 8000", "cell_size_check = ON")
_ENTRY: Final = "CAST(digest AS TEXT), CAST(bytes AS INTEGER), CAST(used_s AS REAL)"

_SCHEMA: Final = """
CREATE TABLE records(
    digest BLOB PRIMARY KEY, names BLOB NOT NULL, numbers BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries(
    digest TEXT PRIMARY KEY, bytes INTEGER NOT NULL, used_s REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX by_use ON entries(used_s);
CREATE TABLE totals(bytes INTEGER NOT NULL, swept_s REAL NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER added AFTER INSERT ON entries
    BEGIN UPDATE totals SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER resized AFTER UPDATE OF bytes ON entries
    BEGIN UPDATE totals SET bytes = bytes + NEW.bytes - OLD.bytes; END;
CREATE TRIGGER removed AFTER DELETE ON entries
    BEGIN UPDATE totals SET bytes = bytes - OLD.bytes; END;
"""


class Totals(NamedTuple):
    """What all arrays take, and when files and entries were last compared, in seconds since 1970."""

    array_bytes: int
    swept_s: float


class Index:
    """The SQLite file of a store: one connection, used by one thread at a time and by one process.

    A file that is no sound database is moved aside, and an empty one takes its place.

    Parameters
    ----------
    folder : of the store

    Raises
    ------
    StoreError
        If the file cannot be opened, or was written by a newer fedsim.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "index" / "index.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._lock = RLock()
        _INDEXES.add(self)
        self._run(lambda _: None)

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        """Return the records under some digests, and drop those that are damaged."""
        found: dict[str, Record] = {}
        for start in range(0, len(digests), _ASKED_AT_ONCE):
            keys = [digest.encode() for digest in digests[start : start + _ASKED_AT_ONCE]]
            rows = self._run(lambda connection, keys=keys: _records(connection, keys))  # type: ignore[misc]
            found.update(self._believed(rows))
        return found

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Keep records, all or none of them."""
        rows = [row_of(digest, record) for digest, record in records.items()]
        self._change(lambda connection: connection.executemany("REPLACE INTO records VALUES (?, ?, ?, ?)", rows))

    def put_entry(self, digest: str, size_bytes: int, used_s: float) -> Totals:
        """Note that the arrays of a digest are kept, and return the totals."""
        text = (
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT(digest) DO UPDATE SET bytes = excluded.bytes, used_s = excluded.used_s"
        )

        def work(connection: sqlite3.Connection) -> Totals:
            connection.execute(text, (digest, size_bytes, used_s))
            return _totals(connection)

        return self._change(work)

    def touch(self, used_s: Mapping[str, float]) -> None:
        """Note when arrays were used; entries that are gone stay gone."""
        rows = [(time_s, digest) for digest, time_s in used_s.items()]
        text = "UPDATE entries SET used_s = max(used_s, ?) WHERE digest = ?"
        self._change(lambda connection: connection.executemany(text, rows))

    def remove_entries(self, digests: Iterable[str]) -> None:
        """Forget that the arrays of some digests are kept."""
        rows = [(digest,) for digest in digests]
        self._change(lambda connection: connection.executemany("DELETE FROM entries WHERE digest = ?", rows))

    def oldest(self, limit_bytes: int) -> list[str]:
        """Return the digests of the arrays used longest ago, until the others fit in a limit."""

        def work(connection: sqlite3.Connection) -> list[str]:
            excess, gone = _totals(connection).array_bytes - limit_bytes, []
            for digest, size_bytes, _ in connection.execute(f"SELECT {_ENTRY} FROM entries ORDER BY used_s"):
                if excess <= 0:
                    break
                gone.append(digest)
                excess -= size_bytes
            return gone

        return self._run(work)

    def entries(self) -> list[tuple[str, int, float]]:
        """Return digest, size in bytes and time of last use of all arrays, the one used longest ago first."""
        text = f"SELECT {_ENTRY} FROM entries ORDER BY used_s"
        return self._run(lambda connection: connection.execute(text).fetchall())

    def totals(self) -> Totals:
        """Return the totals."""
        return self._run(_totals)

    def sweep(self, found: Iterable[tuple[str, int, float]], gone: Iterable[str]) -> None:
        """Note which files were found without an entry, and which entries have no file.

        Parameters
        ----------
        found : digest, size in bytes and time of last use of files
        gone : digests
        """
        added, removed = list(found), [(digest,) for digest in gone]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM entries WHERE digest = ?", removed)
            connection.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", added)
            total = "(SELECT ifnull(sum(bytes), 0) FROM entries)"
            connection.execute(f"UPDATE totals SET bytes = {total}, swept_s = ?", (time.time(),))

        self._change(work)

    def count_records(self) -> int:
        """Return how many records there are."""
        return int(self._run(lambda connection: connection.execute("SELECT count(*) FROM records").fetchone()[0]))

    def check(self) -> int:
        """Read everything, drop damaged records and return how many there were; move a damaged file aside."""

        def sound(connection: sqlite3.Connection) -> None:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if answer != "ok":
                raise _damage(str(answer))

        self._run(sound)
        last, damaged = b"", 0
        text = "SELECT * FROM records WHERE digest > ? ORDER BY digest LIMIT 10000"
        while rows := self._run(lambda connection: connection.execute(text, (last,)).fetchall()):  # noqa: B023 - at once
            damaged += len(rows) - len(self._believed(rows))
            last = rows[-1][0]
        return damaged

    def clear(self) -> None:
        """Forget everything, and give the room back."""
        self._change(lambda connection: [connection.execute(f"DELETE FROM {name}") for name in ("records", "entries")])
        with suppress(sqlite3.OperationalError):  # another process reads
            self._run(lambda connection: connection.execute("VACUUM").close())
            self._run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close())

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Close the file and let no other thread open it: a connection and its locks do not survive a fork."""
        self._lock.acquire()
        self.close()

    def after_fork(self, *, child: bool) -> None:
        """Let the file be opened again."""
        if child:
            self._lock = RLock()
        else:
            self._lock.release()

    def _believed(self, rows: Iterable[Sequence[object]]) -> dict[str, Record]:
        found, damaged = {}, []
        for row in rows:
            if (kept := record_of(row)) is None:
                damaged.append((row[0],))
            else:
                found[kept[0]] = kept[1]
        if damaged:
            warnings.warn(f"store {self._folder}: {len(damaged)} damaged records dropped", StoreWarning, stacklevel=2)
            self._change(lambda connection: connection.executemany("DELETE FROM records WHERE digest = ?", damaged))
        return found

    def _change(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do a piece of work as a whole or not at all."""

        def transaction(connection: sqlite3.Connection) -> Answer:
            connection.execute("BEGIN IMMEDIATE")
            try:
                answer = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return answer

        return self._run(transaction)

    def _run(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do a piece of work, and once more on an empty index if the file turns out to be damaged."""
        with self._lock:
            try:
                return work(self._opened())
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                # A message of SQLite may quote bytes of a damaged table that are no text.
                if isinstance(error, sqlite3.DatabaseError) and not _damaged(error):
                    raise
                self._begin_afresh(error)
            return work(self._opened())

    def _opened(self) -> sqlite3.Connection:
        """Return the connection, opened again if the file is no more the one that was opened."""
        try:
            status = self._file.stat()
            same = self._identity == (status.st_dev, status.st_ino)
        except FileNotFoundError:
            same = False
        if self._connection is not None and same:
            return self._connection
        self.close()
        self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # Two processes that make a file at once would find it locked, whatever they are willing to wait.
        with self._alone():
            connection = sqlite3.connect(self._file, _WAIT_S, isolation_level=None, check_same_thread=False)
            connection.text_factory = _text
            try:
                status = self._file.stat()
                self._identity = (status.st_dev, status.st_ino)
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}").close()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise StoreError(
                f"store: {self._folder} has format {version}; this fedsim reads formats up to {FORMAT}."
                " Install a newer fedsim, or name another folder"
            )
        if version == 0 and not _schema(connection):
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT")
        elif _schema(connection) != _expected_schema():
            raise _damage("the tables are not those of a store")

    def _alone(self) -> FileLock:
        return FileLock(self._folder / "lock", timeout=3 * _WAIT_S)

    def _begin_afresh(self, error: Exception) -> None:
        """Move the damaged file aside, unless another process has done so."""
        mine = self._identity
        self.close()
        with self._alone():
            try:
                status = self._file.stat()
            except FileNotFoundError:
                return
            if mine is not None and mine != (status.st_dev, status.st_ino):
                return
            # With its folder, so that no part of it is taken for one of the new file.
            aside = self._folder / f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(3)}"
            self._file.parent.rename(aside)
        warnings.warn(
            f"store {self._folder}: the index was damaged ({error}) and lies in {aside.name} now; an empty one begins",
            StoreWarning,
            stacklevel=2,
        )


def _damaged(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF in _DAMAGED or "no such" in str(error))


def _damage(text: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(text)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _schema(connection: sqlite3.Connection) -> list[object]:
    return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _expected_schema() -> list[object]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema(connection)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _records(connection: sqlite3.Connection, keys: list[bytes]) -> list[Sequence[object]]:
    places = ", ".join("?" * len(keys))
    return connection.execute(f"SELECT * FROM records WHERE digest IN ({places})", keys).fetchall()


def _totals(connection: sqlite3.Connection) -> Totals:
    return Totals(*connection.execute("SELECT ifnull(max(bytes), 0), ifnull(max(swept_s), 0) FROM totals").fetchone())


_INDEXES: Final = WeakSet[Index]()


_forking: Final[list[Index]] = []


def _before_fork() -> None:
    _forking[:] = _INDEXES
    for index in _forking:
        index.before_fork()


def _after_fork(*, child: bool) -> None:
    for index in _forking:
        index.after_fork(child=child)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
