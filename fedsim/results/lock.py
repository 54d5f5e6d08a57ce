"""The lock of a run folder: one process writes, any number read.

The lock is the operating system's, on a file in the folder. It is free as soon as its process has ended, also by a
kill; the file stays.
"""

from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fedsim.errors import RunError

LOCK: Final = ".lock"

_PATIENCE_S: Final = 0.5
"""A process that asks whether a folder is in use holds the lock for an instant."""


class FolderLock:
    """The right to write to a run folder.

    Parameters
    ----------
    folder : exists
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK, is_singleton=False)

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        RunError
            If another process has it, or the folder cannot be written.
        """
        try:
            self._lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            raise RunError(
                f"{self._folder}: is in use by another process, which runs a scenario there; wait until it has ended, "
                "or choose another folder with --out"
            ) from None
        except OSError as error:
            raise RunError(f"{self._folder / LOCK}: cannot be written: {error.strerror}") from None

    def release(self) -> None:
        """Give the lock back; nothing happens if it was not taken."""
        self._lock.release()


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
