"""A store on disk that all runs of a user share."""

import atexit
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakSet

from fedsim.errors import StoreError, StoreWarning
from fedsim.learning.store.contracts import Arrays, Record
from fedsim.learning.store.database import primary_code
from fedsim.learning.store.index import Index
from fedsim.learning.store.objects import DamagedError, Objects, UnknownTypeError

Answer = TypeVar("Answer")

DEFAULT_LIMIT_BYTES: Final = 5 * 2**30
_USES_NOTED_S: Final = 10.0
"""How long uses of arrays wait to be noted together."""
_SWEPT_EVERY_S: Final = 86400.0
_PAUSE_S: Final = 60.0
"""How long an index that another process holds locked is left alone."""


class DiskStore:
    """Records and arrays in a folder; several processes and threads may use one at once.

    Records lie in a SQLite file, arrays in safetensors files; both carry checksums, and damaged ones count as missing.
    When the disk is full, results are not stored: the store warns once and the run goes on.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        if limit_bytes < 0:
            raise StoreError(f"limit_bytes: {limit_bytes!r} is not allowed; it must be at least 0")
        self.folder, self.limit_bytes = folder.absolute(), limit_bytes
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.index = Index(self.folder)
        except (OSError, sqlite3.Error, NotImplementedError) as error:  # the last from a disk without file locks
            raise StoreError(
                f"store: {folder} cannot be used ({error}); it must be a folder that can be made and written"
            ) from error
        self.objects = Objects(self.folder / "objects")
        self._used_s: dict[str, float] = {}
        self._noted = time.monotonic()
        self._asked_again = 0.0
        self._warned: set[str] = set()
        _STORES.add(self)

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        return self._tried("looked up", lambda: self.index.records(digests)) or {}

    def put_records(self, records: Mapping[str, Record]) -> None:
        self._tried("kept", lambda: self.index.put_records(records))

    def arrays(self, digest: str) -> Arrays | None:
        try:
            found = self.objects.read(digest)
        except DamagedError as error:
            self.remove_arrays(digest)
            self._warn("damaged", f"damaged arrays dropped ({error})")
            return None
        if found is not None:
            self._used_s[digest] = time.time()
            if time.monotonic() - self._noted > _USES_NOTED_S:
                self.note_uses()
        return found

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        if self.objects.path(digest).exists():
            self._used_s[digest] = time.time()
            return
        if sum(values.nbytes for values in arrays.values()) <= self.limit_bytes:
            self._tried("kept", lambda: self._put(digest, arrays))

    def remove_arrays(self, digest: str) -> None:
        self._tried("removed", lambda: self.remove([digest]))

    def remove(self, digests: Sequence[str]) -> None:
        # An entry without a file is counted until it is the oldest; a file without an entry would exceed the limit.
        full = False
        try:
            self.index.remove_entries(digests)
        except sqlite3.OperationalError:  # a full disk has room for changes of the index once files are gone
            full = True
        for digest in digests:
            self.objects.remove(digest)
        if full:
            self.index.remove_entries(digests)

    def trim(self, limit_bytes: int) -> list[str]:
        """Remove the arrays used longest ago until the others fit in a limit, and return their digests."""
        self.note_uses()
        gone = self.index.oldest(limit_bytes)
        self.remove(gone)
        return gone

    def sweep(self) -> None:
        """Bring files and entries together, as after a kill, and remove files that a kill left half written."""
        self.objects.clean()
        known = {digest for digest, _, _ in self.index.entries()}
        files = {file.digest: file for file in self.objects.files()}
        found = [file for digest, file in files.items() if digest not in known]
        self.index.sweep(found, sorted(known - files.keys()), lambda digest: self.objects.path(digest).exists())

    def note_uses(self) -> None:
        """Note in the index which arrays were used after the last such note."""
        used_s, self._used_s = self._used_s, {}
        self._noted = time.monotonic()
        if used_s:
            self._tried("noted", lambda: self.index.touch(dict(used_s)))

    def close(self) -> None:
        """Note uses and close the files; the next use opens them again."""
        self.note_uses()
        self.index.close()

    def _put(self, digest: str, arrays: Arrays) -> None:
        size_bytes, now_s = self.objects.write(digest, arrays), time.time()
        totals = self.index.put_entry(digest, size_bytes, now_s)
        if not 0 <= now_s - totals.swept_s < _SWEPT_EVERY_S:
            self.sweep()
            totals = self.index.totals()
        if totals.array_bytes > self.limit_bytes:
            self.trim(self.limit_bytes)

    def _tried(self, what: str, work: Callable[[], Answer]) -> Answer | None:
        """Do a piece of work, or warn that it cannot be done; results are then computed again."""
        if time.monotonic() < self._asked_again:
            return None
        try:
            return work()
        except (OSError, sqlite3.Error, UnknownTypeError) as error:
            if isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_BUSY:
                self._asked_again = time.monotonic() + _PAUSE_S
            self._warn(what, f"results could not be {what} ({error}); the run goes on without")
        return None

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"store {self.folder}: {text}", StoreWarning, stacklevel=2)


_STORES: Final = WeakSet[DiskStore]()


@atexit.register
def _note_uses() -> None:
    for store in list(_STORES):
        store.note_uses()
