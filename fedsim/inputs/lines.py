"""Long files of text, plain or packed by gzip: read line by line, so that a file may be larger than memory."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from fedsim.errors import FedsimError
from fedsim.inputs.files import check_file

MAX_BYTES: Final = 1 << 34
"""Size of the largest file that is read line by line, packed or not."""
LONGEST_LINE: Final = 1 << 22
"""Bytes of the longest line."""

_PACKED: Final = b"\x1f\x8b"


def read_lines(path: Path, error: type[FedsimError], max_bytes: int = MAX_BYTES) -> Iterator[str]:
    """Yield the lines of a file of UTF-8 text, without their ends."""
    check_file(path, max_bytes, error)
    left, number = max_bytes, 0
    try:
        with _opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                left -= len(line)
                if len(line) > LONGEST_LINE:
                    raise error(f"{path}: line {number} has more than {LONGEST_LINE} bytes; allowed: shorter ones")
                if left < 0:
                    raise error(f"{path}: cannot be read: it has more than {max_bytes} bytes of text")
                yield line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError:
        raise error(f"{path}: line {number} is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error) as problem:
        raise error(f"{path}: cannot be read: {problem}") from None


def _opened(path: Path) -> "BinaryIO | gzip.GzipFile":
    with path.open("rb") as file:
        packed = file.read(2) == _PACKED
    return gzip.open(path) if packed else path.open("rb")
