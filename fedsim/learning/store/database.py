"""The SQLite file of a store: shared by processes, opened again when need be, replaced when it is damaged."""

import os
import secrets
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar
from weakref import WeakSet

from filelock import FileLock

from fedsim.errors import StoreError, StoreWarning

Answer = TypeVar("Answer")

FORMAT: Final = 1
_WAIT_S: Final = 20.0
"""How long to wait for another process that writes."""
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SETTINGS: Final = ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 8000", "cell_size_check = ON")

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


class Database:
    """One connection to the file, used by one thread at a time and by one process.

    A file that is no sound database is moved aside, and an empty one takes its place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "index" / "index.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._lock = RLock()
        _DATABASES.add(self)
        self.run(lambda _: None)

    def run(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do a piece of work, and once more on an empty file if the file turns out to be damaged."""
        with self._lock:
            try:
                return work(self._opened())
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                # A message of SQLite may quote bytes of a damaged table that are no text.
                if isinstance(error, sqlite3.DatabaseError) and not _damaged(error):
                    raise
                self._begin_afresh(error)
            return work(self._opened())

    def change(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
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

        return self.run(transaction)

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
        if child:
            self._lock = RLock()
        else:
            self._lock.release()

    def _opened(self) -> sqlite3.Connection:
        """Return the connection, opened again if the path leads to another file."""
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
        self._folder.mkdir(parents=True, exist_ok=True)
        # Two processes that make a file at once would find it locked, whatever they are willing to wait.
        with self._alone():
            self._file.parent.mkdir(exist_ok=True)
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
            raise damage("the tables are not those of a store")

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
    code = primary_code(error)
    return code is not None and (code in _DAMAGED or "no such" in str(error))


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code; None for an error of Python's module, to which SQLite has given none."""
    try:
        return error.sqlite_errorcode & 0xFF
    except AttributeError:
        return None


def damage(text: str) -> sqlite3.DatabaseError:
    """Return the error that marks a file as damaged."""
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


_DATABASES: Final = WeakSet[Database]()


_forking: Final[list[Database]] = []


def _before_fork() -> None:
    _forking[:] = _DATABASES
    for database in _forking:
        database.before_fork()


def _after_fork(*, child: bool) -> None:
    for database in _forking:
        database.after_fork(child=child)
    _forking.clear()


if sys.platform != "win32":
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
