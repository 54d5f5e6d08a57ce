"""Usage of a store on disk, and how it is made smaller, checked and emptied."""

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fedsim.errors import StoreError
from fedsim.learning.store.disk import DiskStore
from fedsim.learning.store.objects import DamagedError


class Usage(NamedTuple):
    records: int
    record_bytes: int
    arrays: int
    array_bytes: int
    damaged_bytes: int
    oldest_s: float | None
    newest_s: float | None


class Removed(NamedTuple):
    """How many entries of arrays were removed, and their bytes."""

    arrays: int
    array_bytes: int


class Checked(NamedTuple):
    """How many records and entries of arrays are sound, and how many were damaged and are removed."""

    records: int
    arrays: int
    damaged_records: int
    damaged_arrays: int


def usage(store: DiskStore) -> Usage:
    with _readable(store):
        store.sweep()
        entries = store.index.entries()
        times_s = [used_s for _, _, used_s in entries]
        return Usage(
            records=store.index.count_records(),
            record_bytes=_nbytes(store.folder / "index"),
            arrays=len(entries),
            array_bytes=sum(size_bytes for _, size_bytes, _ in entries),
            damaged_bytes=sum(map(_nbytes, _moved_aside(store))),
            oldest_s=min(times_s, default=None),
            newest_s=max(times_s, default=None),
        )


def trim_to(store: DiskStore, limit_bytes: int) -> Removed:
    """Remove the arrays used longest ago until the others fit in a limit."""
    with _readable(store):
        store.sweep()
        before = store.index.totals().array_bytes
        return Removed(len(store.trim(limit_bytes)), before - store.index.totals().array_bytes)


def trim_older(store: DiskStore, days: float) -> Removed:
    """Remove the arrays that were not used for some days."""
    with _readable(store):
        store.sweep()
        store.note_uses()
        limit_s = time.time() - 86400 * days
        old = {digest: size_bytes for digest, size_bytes, used_s in store.index.entries() if used_s < limit_s}
        store.remove(list(old))
        return Removed(len(old), sum(old.values()))


def check(store: DiskStore) -> Checked:
    """Verify every checksum, and remove what is damaged."""
    with _readable(store):
        store.sweep()
        damaged_records, sound, damaged = store.index.check(), 0, []
        for file in store.objects.files():
            try:
                sound += store.objects.read(file.digest) is not None
            except DamagedError:
                damaged.append(file.digest)
        store.remove(damaged)
        return Checked(store.index.count_records(), sound, damaged_records, len(damaged))


def clear(store: DiskStore) -> None:
    with _readable(store):
        store.index.clear()
        for file in store.objects.files():
            store.objects.remove(file.digest)
        store.objects.clean()
        for folder in _moved_aside(store):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _readable(store: DiskStore) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store: {store.folder} cannot be read or changed ({error})") from error


def _moved_aside(store: DiskStore) -> list[Path]:
    return sorted(store.folder.glob("damaged-*"))


def _nbytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
