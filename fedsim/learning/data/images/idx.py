"""IDX files, the format of MNIST: a header with the lengths of the axes, which must agree with the size of the file."""

import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import DataError

LARGEST_SIDE: Final = 1024
"""Height and width of the largest image."""

FILES: Final = tuple(f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
"""Names of a set's files: images and labels for training, and for testing."""

_BYTES: Final = 0x08
"""IDX's code of unsigned bytes."""


def array_of(content: bytes, axes: int, path: Path) -> NDArray[np.uint8]:
    size, magic = 4 + 4 * axes, bytes([0, 0, _BYTES, axes])
    if content[:4] != magic:
        raise DataError(f"{path}: begins with {content[:4].hex()!r}; allowed: {magic.hex()!r}, bytes with {axes} axes")
    if len(content) < size:
        raise DataError(f"{path}: ends within its header of {size} bytes")
    lengths = struct.unpack(f">{axes}I", content[4:size])
    for length in lengths[1:]:
        if not 1 <= length <= LARGEST_SIDE:
            raise DataError(f"{path}: its header claims images with a side of {length}; allowed: 1 to {LARGEST_SIDE}")
    wanted = size + math.prod(lengths)
    if not lengths[0] or wanted != len(content):
        raise DataError(f"{path}: its header claims {wanted} bytes for {lengths[0]} items, and it has {len(content)}")
    return np.frombuffer(content, np.uint8, offset=size).reshape(lengths)


def read_set(
    files: Sequence[Path], content: Callable[[Path], bytes], classes: int, first: int = 0
) -> tuple[NDArray[Any], IntArray, NDArray[Any], IntArray]:
    """Return images, shape (n, height, width, 1), and labels, of the files for training, then of those for testing.

    The labels in the files are ``first`` and those that follow; returned ones begin with 0.
    """
    images, labels, test_images, test_labels = files
    x, test_x = (array_of(content(path), 3, path)[..., None] for path in (images, test_images))
    y, test_y = (array_of(content(path), 1, path).astype(np.int64) - first for path in (labels, test_labels))
    for path, pixels, of, found in ((images, x, labels, y), (test_images, test_x, test_labels, test_y)):
        if len(pixels) != len(found):
            raise DataError(
                f"{path}: has {len(pixels)} images, and {of.name} has {len(found)} labels; allowed: one for each"
            )
        wrong = np.flatnonzero((found < 0) | (found >= classes))
        if wrong.size:
            label = f"label {found[wrong[0]] + first} in row {wrong[0]}"
            raise DataError(f"{of}: {label}; labels must lie in {first}..{first + classes - 1}")
    return x, y, test_x, test_y
