"""IDX files, the format of MNIST: the header is checked against the length of the file before the items are read."""

import hashlib
import struct
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import IntArray
from fedsim.errors import DataError
from fedsim.inputs.files import check_file, read_bytes
from fedsim.learning.data.datasets import Images

MAX_BYTES: Final = 1 << 31
"""Size of the largest file that is read."""
LARGEST_SIDE: Final = 1024
"""Height and width of the largest image."""

FILES: Final = tuple(f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
"""Names of a set's files: images and labels for training, and for testing."""

_BYTES: Final = 0x08
"""IDX's code of unsigned bytes."""


class Header(NamedTuple):
    """Lengths of the axes of an IDX file."""

    lengths: tuple[int, ...]


def read_header(path: Path, axes: int) -> Header:
    """Return the header of an IDX file, once it agrees with the length of the file."""
    check_file(path, MAX_BYTES, DataError)
    size = _header_bytes(axes)
    try:
        held = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(size)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    magic = bytes([0, 0, _BYTES, axes])
    if start[:4] != magic:
        raise DataError(f"{path}: begins with {start[:4].hex()!r}; allowed: {magic.hex()!r}, bytes with {axes} axes")
    if len(start) < size:
        raise DataError(f"{path}: ends within its header of {size} bytes")
    lengths = struct.unpack(f">{axes}I", start[4:])
    wanted = size
    for length in lengths[1:]:
        if not 1 <= length <= LARGEST_SIDE:
            raise DataError(f"{path}: its header claims images with a side of {length}; allowed: 1 to {LARGEST_SIDE}")
    items = 1
    for length in lengths:
        items *= length
    wanted += items
    if not items or wanted != held:
        raise DataError(f"{path}: its header claims {wanted} bytes for {lengths[0]} items, and it has {held}")
    return Header(lengths)


def check_pair(images: Path, labels: Path) -> None:
    count, labelled = read_header(images, 3).lengths[0], read_header(labels, 1).lengths[0]
    if count != labelled:
        raise DataError(f"{images}: has {count} images, and {labels.name} has {labelled} labels; allowed: one for each")


def read_pair(images: Path, labels: Path) -> tuple[Images, IntArray]:
    """Return images of shape (n, height, width, 1) and their labels, shape (n,)."""
    check_pair(images, labels)
    lengths = read_header(images, 3).lengths
    pixels = np.frombuffer(read_bytes(images, MAX_BYTES, DataError), np.uint8, offset=_header_bytes(3))
    found = np.frombuffer(read_bytes(labels, MAX_BYTES, DataError), np.uint8, offset=_header_bytes(1))
    if pixels.size != np.prod(lengths) or found.size != lengths[0]:
        raise DataError(f"{images}: has changed while it was read")
    return pixels.reshape(*lengths, 1), found.astype(np.int64)


def md5(path: Path) -> str:
    content = read_bytes(path, MAX_BYTES, DataError)
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _header_bytes(axes: int) -> int:
    return 4 + 4 * axes
