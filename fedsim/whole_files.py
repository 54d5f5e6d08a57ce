"""Files that are written as a whole: beside their place, and moved there when they are complete."""

import errno
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from fedsim.errors import FedsimError, FolderGoneError, RunError, WriteError

_PART: Final = re.compile(r"\.(?P<name>.+)\.\d+-[0-9a-f]{12}\.part")
_LETTERS: Final = 48
"""Of a name that stand in the name of its part, since file systems bound the length of names."""
_PASSES: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ESTALE}
"""What a later attempt may not meet: a full disk, a network file system that is away."""


def part_of(path: Path) -> Path:
    """Return a name beside a file that no other writer has, for its content before it is complete."""
    return path.with_name(f".{path.name[:_LETTERS]}.{os.getpid()}-{secrets.token_hex(6)}.part")


def whole_name(part: str) -> str | None:
    """Return the name of the file that a name of `part_of` stands for; None for any other name."""
    found = _PART.fullmatch(part)
    return None if found is None else found["name"]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there."""
    part = part_of(path)
    try:
        try:
            write(part)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise not_written(path, error) from None


class _Described(Protocol):
    def to_toml(self) -> str: ...


def write_toml(part: _Described, path: Path) -> None:
    """Write a scenario or a study, or in its place a comment that says why it has no description."""
    try:
        text = part.to_toml()
    except FedsimError as error:
        text = f"# {error}\n"
    replace_file(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be made: {error.strerror}") from None


def not_written(path: Path, error: OSError) -> RunError:
    """Return the error of a file that could not be written: whether the folder is gone, and whether to try again."""
    passes = error.errno in _PASSES
    if not passes and not path.parent.is_dir():
        return FolderGoneError(f"{path.parent}: the folder is not there, or no longer")
    return (WriteError if passes else RunError)(f"{path}: cannot be written: {error.strerror or error}")
