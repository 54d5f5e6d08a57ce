"""The lock of a run folder: one process writes, any number read.

The lock is the operating system's, on a file in the folder, which frees it when the process ends, also by a kill. A
second file names the process.
"""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fedsim.errors import RunError
from fedsim.whole_files import replace_file

LOCK: Final = ".lock"
OWNER: Final = ".lock.pid"

_PATIENCE_S: Final = 0.5
"""A process that asks whether a folder is in use holds the lock for an instant."""


class FolderLock:
    """The right to write to a run folder; to release it twice is no error."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK, is_singleton=False)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        try:
            self._lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            raise RunError(
                f"{self._folder}: is in use by another process{_owner(self._folder)}, which runs a scenario there; "
                "wait until it has ended, or choose another folder with --out"
            ) from None
        except OSError as error:
            raise RunError(f"{self._folder / LOCK}: cannot be written: {error.strerror}") from None
        try:
            told = f"{os.getpid()} {socket.gethostname()}\n"
            replace_file(self._folder / OWNER, lambda part: part.write_text(told, encoding="utf-8"))
        except BaseException:
            self._lock.release()
            raise

    def release(self) -> None:
        if self._lock.is_locked:
            # Where the folder is gone or full, the name of a process that has ended misleads no process.
            with contextlib.suppress(OSError):
                (self._folder / OWNER).unlink(missing_ok=True)
        self._lock.release()


def _owner(folder: Path) -> str:
    """Return the process that has a lock, as part of a message; empty in the instant before it has said so."""
    try:
        pid, host = (folder / OWNER).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return ""
    return f" (pid {pid})" if host == socket.gethostname() else f" (pid {pid} on {host})"


def in_use(folder: Path) -> bool:
    """Return whether a process runs a scenario in a folder; False where this process may not write there."""
    if not (folder / LOCK).exists():
        return False
    lock = FileLock(folder / LOCK, is_singleton=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
