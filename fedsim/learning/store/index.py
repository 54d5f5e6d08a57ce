"""Records, and which arrays there are and when they were used, as tables."""

import json
import sqlite3
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from fedsim.errors import StoreWarning
from fedsim.learning.store.contracts import Record
from fedsim.learning.store.database import Database, damage

_ASKED_AT_ONCE: Final = 500
_ENTRY: Final = "CAST(digest AS TEXT), CAST(bytes AS INTEGER), CAST(used_s AS REAL)"

Row = tuple[bytes, bytes, bytes, int]
"""Digest, names, float64 numbers in little-endian order, checksum."""

NAMES_KEPT: Final = 1024
"""Sets of names that are read once; the records of a run have few."""


class Totals(NamedTuple):
    """What all arrays take, and when files and entries were last compared, in seconds since 1970."""

    array_bytes: int
    swept_s: float


class Index:
    def __init__(self, folder: Path) -> None:
        self._folder, self._database = folder, Database(folder)

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        """Return the records under some digests, and drop those that are damaged."""
        found: dict[str, Record] = {}
        for start in range(0, len(digests), _ASKED_AT_ONCE):
            keys = [digest.encode() for digest in digests[start : start + _ASKED_AT_ONCE]]
            rows = self._database.run(lambda connection, keys=keys: _records(connection, keys))  # type: ignore[misc]
            found.update(self._believed(rows))
        return found

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Store records, all or none of them."""
        rows = [row_of(digest, record) for digest, record in records.items()]
        self._database.change(
            lambda connection: connection.executemany("REPLACE INTO records VALUES (?, ?, ?, ?)", rows)
        )

    def put_entry(self, digest: str, size_bytes: int, used_s: float) -> Totals:
        """Note the arrays of a digest, and return the totals."""
        text = (
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT(digest) DO UPDATE SET bytes = excluded.bytes, used_s = excluded.used_s"
        )

        def work(connection: sqlite3.Connection) -> Totals:
            connection.execute(text, (digest, size_bytes, used_s))
            return _totals(connection)

        return self._database.change(work)

    def touch(self, used_s: Mapping[str, float]) -> None:
        """Note when arrays were used; entries that are gone stay gone."""
        rows = [(time_s, digest) for digest, time_s in used_s.items()]
        text = "UPDATE entries SET used_s = max(used_s, ?) WHERE digest = ?"
        self._database.change(lambda connection: connection.executemany(text, rows))

    def remove_entries(self, digests: Iterable[str]) -> None:
        rows = [(digest,) for digest in digests]
        self._database.change(lambda connection: connection.executemany("DELETE FROM entries WHERE digest = ?", rows))

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

        return self._database.run(work)

    def entries(self) -> list[tuple[str, int, float]]:
        """Return digest, size in bytes and time of last use of all arrays, the one used longest ago first."""
        text = f"SELECT {_ENTRY} FROM entries ORDER BY used_s"
        return self._database.run(lambda connection: connection.execute(text).fetchall())

    def totals(self) -> Totals:
        return self._database.run(_totals)

    def sweep(
        self, found: Iterable[tuple[str, int, float]], missed: Sequence[str], exists: Callable[[str], bool]
    ) -> None:
        """Note files that were found without an entry, and remove entries that have no file."""
        added = list(found)

        def work(connection: sqlite3.Connection) -> None:
            # Another process may have put a missed file back; its entry follows the file, and must stay.
            gone = [(digest,) for digest in missed if not exists(digest)]
            connection.executemany("DELETE FROM entries WHERE digest = ?", gone)
            connection.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", added)
            total = "(SELECT ifnull(sum(bytes), 0) FROM entries)"
            connection.execute(f"UPDATE totals SET bytes = {total}, swept_s = ?", (time.time(),))

        self._database.change(work)

    def count_records(self) -> int:
        return int(
            self._database.run(lambda connection: connection.execute("SELECT count(*) FROM records").fetchone()[0])
        )

    def check(self) -> int:
        """Read everything, drop damaged records and return how many there were; move a damaged file aside."""

        def sound(connection: sqlite3.Connection) -> None:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if answer != "ok":
                raise damage(str(answer))

        self._database.run(sound)
        last, damaged = b"", 0
        text = "SELECT * FROM records WHERE digest > ? ORDER BY digest LIMIT 10000"
        while rows := self._database.run(lambda connection: connection.execute(text, (last,)).fetchall()):  # noqa: B023 - at once
            damaged += len(rows) - len(self._believed(rows))
            last = rows[-1][0]
        return damaged

    def clear(self) -> None:
        """Remove everything, and free the room on disk."""
        self._database.change(
            lambda connection: [connection.execute(f"DELETE FROM {name}") for name in ("records", "entries")]
        )
        with suppress(sqlite3.OperationalError):  # another process reads
            self._database.run(lambda connection: connection.execute("VACUUM").close())
            self._database.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close())

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _believed(self, rows: Iterable[Sequence[object]]) -> dict[str, Record]:
        found, damaged = {}, []
        for row in rows:
            if (kept := record_of(row)) is None:
                damaged.append((row[0],))
            else:
                found[kept[0]] = kept[1]
        if damaged:
            text = "DELETE FROM records WHERE digest = ?"
            self._database.change(lambda connection: connection.executemany(text, damaged))
            warnings.warn(f"store {self._folder}: {len(damaged)} damaged records dropped", StoreWarning, stacklevel=2)
        return found


def _records(connection: sqlite3.Connection, keys: list[bytes]) -> list[Sequence[object]]:
    places = ", ".join("?" * len(keys))
    return connection.execute(f"SELECT * FROM records WHERE digest IN ({places})", keys).fetchall()


def _totals(connection: sqlite3.Connection) -> Totals:
    return Totals(*connection.execute("SELECT ifnull(max(bytes), 0), ifnull(max(swept_s), 0) FROM totals").fetchone())


def row_of(digest: str, record: Record) -> Row:
    key, names = digest.encode(), _encoded(tuple(record))
    numbers = struct.pack(f"<{len(record)}d", *record.values())
    return key, names, numbers, _checksum(key, names, numbers)


def record_of(row: Sequence[object]) -> tuple[str, Record] | None:
    """Return digest and record of a row, or None if it is damaged."""
    key, names, numbers, checksum = row
    if not (isinstance(key, bytes) and isinstance(names, bytes) and isinstance(numbers, bytes)):
        return None
    if checksum != _checksum(key, names, numbers):
        return None
    decoded = _decoded(names)
    return key.decode(), dict(zip(decoded, struct.unpack(f"<{len(decoded)}d", numbers), strict=True))


def _checksum(key: bytes, names: bytes, numbers: bytes) -> int:
    lengths = struct.pack("<2q", len(key), len(names))
    return zlib.crc32(numbers, zlib.crc32(names, zlib.crc32(key, zlib.crc32(lengths))))


@lru_cache(NAMES_KEPT)
def _encoded(names: tuple[str, ...]) -> bytes:
    return json.dumps(names).encode()


@lru_cache(NAMES_KEPT)
def _decoded(names: bytes) -> tuple[str, ...]:
    return tuple(json.loads(names))
