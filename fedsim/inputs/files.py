"""Files that a user names: only regular ones are read, and only up to a size."""

import os
import stat
from pathlib import Path
from typing import Final

from fedsim.errors import FedsimError

MAX_BYTES: Final = 1 << 28
"""Size of the largest table, trace or list of positions that is read."""
MAX_TEXT_BYTES: Final = 1 << 26
"""Size of the largest file of TOML, JSON or GraphML that is read."""

_NO_WAITING: Final = os.O_NONBLOCK if os.name == "posix" else 0
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4095


def check_path(path: str | Path, error: type[FedsimError], field: str = "") -> Path:
    """Return a path, refusing one that no file system takes."""
    text, where = str(path), f"{field}: " if field else ""
    if "\0" in text:
        raise error(f"{where}{text!r} is not allowed; a path holds no null character")
    names = [os.fsencode(name) for name in Path(text).parts]
    longest = max((len(name) for name in names), default=0)
    if longest > _LONGEST_NAME:
        raise error(
            f"{where}{shortened(text)} is not allowed; a name of {longest} bytes is too long, allowed: {_LONGEST_NAME}"
        )
    if len(os.fsencode(text)) > _LONGEST_PATH:
        raise error(f"{where}{shortened(text)} is not allowed; a path has at most {_LONGEST_PATH} bytes")
    return Path(path)


def expanded(path: str | Path, error: type[FedsimError]) -> Path:
    """Return a path with ``~`` replaced by the home folder; the parameters are those of `check_path`."""
    try:
        return check_path(path, error).expanduser()
    except RuntimeError:
        raise error(f"{path}: there is no such home folder (HOME is not set); allowed: a path without ~") from None


def read_bytes(path: str | Path, max_bytes: int, error: type[FedsimError], where: str | None = None) -> bytes:
    where = str(path) if where is None else where
    check_path(path, error)
    try:
        # Without waiting: a pipe opens at once, and is refused.
        number = os.open(path, os.O_RDONLY | _NO_WAITING)
        try:
            _check_kind(os.fstat(number), max_bytes, error, where)
            with os.fdopen(number, "rb", closefd=False) as file:
                content = file.read(max_bytes + 1)
        finally:
            os.close(number)
    except OSError as problem:
        raise error(f"{where}: cannot be read: {problem.strerror}") from None
    if len(content) > max_bytes:
        raise error(f"{where}: cannot be read: it is larger than {max_bytes} bytes")
    return content


def read_text(
    path: str | Path, error: type[FedsimError], where: str | None = None, max_bytes: int = MAX_TEXT_BYTES
) -> str:
    content = read_bytes(path, max_bytes, error, where)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path if where is None else where}: cannot be read: it is not UTF-8 text") from None


def check_file(path: str | Path, max_bytes: int, error: type[FedsimError]) -> Path:
    """Return the path of a regular file for a library that opens it; the parameters are those of `read_bytes`."""
    check_path(path, error)
    try:
        found = os.stat(path)  # noqa: PTH116 (as for an open file)
    except FileNotFoundError:
        raise error(f"{path}: the file does not exist") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    _check_kind(found, max_bytes, error, str(path))
    return Path(path)


def shortened(text: str, most: int = 80) -> str:
    """Return a text in quotes, cut where it is long.

    >>> shortened("a" * 100, 10)
    "'aaaaaaa...'"
    """
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _check_kind(found: os.stat_result, max_bytes: int, error: type[FedsimError], where: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise error(f"{where}: cannot be read: it is a folder; allowed: a file")
    if not stat.S_ISREG(found.st_mode):
        raise error(f"{where}: cannot be read: it is a pipe or a device; allowed: a regular file")
    if found.st_size > max_bytes:
        raise error(f"{where}: cannot be read: it has {found.st_size} bytes; allowed: at most {max_bytes}")
