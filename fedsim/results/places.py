"""Where the files of a run lie in its folder, and the exchange of a run for another one.

A run that replaces another one is written to a folder inside, ``.next``, and the run before stays as it is. When the
new one is finished, ``.next`` is renamed to ``.swap``. From that instant on the new run is the folder's: its files are
read in ``.swap``, or in their place once they have been moved there. An exchange that was cut off is completed by the
next process that writes.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fedsim.errors import RunError
from fedsim.whole_files import not_written

NEXT: Final = ".next"
SWAP: Final = ".swap"


def located(folder: Path, name: str) -> Path:
    """Return where a file of the run in a folder is read, be an exchange under way or not."""
    moved = folder / SWAP / name
    return moved if moved.exists() else folder / name


def replacing(folder: Path) -> bool:
    """Return whether a folder has a run inside that is to replace its own, and is not finished."""
    return (folder / NEXT).exists()


def commit(folder: Path) -> None:
    """Make the finished run in ``.next`` the folder's."""
    try:
        (folder / NEXT).replace(folder / SWAP)
    except OSError as error:
        raise not_written(folder / SWAP, error) from None


def complete(folder: Path, old: Iterable[str], new: Iterable[str], last: str) -> None:
    """Move the files of the new run to their places, and remove those of the run before; it may be done again."""
    names = [name for name in new if name != last]
    try:
        for name in sorted(set(old) - {*names, last}):
            (folder / name).unlink(missing_ok=True)
        for name in [*names, last]:
            if (folder / SWAP / name).exists():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / SWAP / name).replace(folder / name)
    except OSError as error:
        raise not_written(folder / SWAP, error) from None
    remove_folder(folder / SWAP)


def make_anew(path: Path) -> None:
    """Make an empty folder in the place of one of this module's."""
    remove_folder(path)
    try:
        path.mkdir()
    except OSError as error:
        raise RunError(f"{path}: cannot be made: {error.strerror or error}") from None


def remove_folder(path: Path) -> None:
    """Remove a folder of this module's, if it is there."""
    try:
        if path.exists():
            shutil.rmtree(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be removed: {error.strerror or error}") from None
