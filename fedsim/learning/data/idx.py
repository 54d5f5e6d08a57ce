"""Headers of IDX files, the format of MNIST: checked against the length of the file before anything else reads it."""

import struct
from pathlib import Path
from typing import Final, NamedTuple

from fedsim.errors import DataError
from fedsim.inputs.files import check_file

MAX_BYTES: Final = 1 << 31
"""Size of the largest file that is read."""
LARGEST_SIDE: Final = 1024
"""Height and width of the largest image."""

_BYTES: Final = 0x08
"""IDX's code of numbers of one byte each, without a sign."""


class Header(NamedTuple):
    """What the header of an IDX file says: the lengths of its axes."""

    lengths: tuple[int, ...]


def read_header(path: Path, axes: int) -> Header:
    """Return the header of an IDX file, once it agrees with the length of the file.

    Parameters
    ----------
    path : of the file
    axes : number of axes that the file should have: 3 for images, 1 for labels

    Raises
    ------
    DataError
        If the file cannot be read, is of another format, has no item, or is shorter or longer than its header says.
    """
    check_file(path, MAX_BYTES, DataError)
    size = 4 + 4 * axes
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
    """Refuse files of images and labels that are damaged or do not belong together.

    Raises
    ------
    DataError
        As `read_header`, or if there is not one label for each image.
    """
    count, labelled = read_header(images, 3).lengths[0], read_header(labels, 1).lengths[0]
    if count != labelled:
        raise DataError(f"{images}: has {count} images, and {labels.name} has {labelled} labels; allowed: one for each")
