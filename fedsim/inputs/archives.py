"""What is packed by gzip, and arrays from NPZ files, whose claims are checked before room is made for an array.

An NPZ file is a ZIP archive whose members are arrays in NumPy's format: a header with type and shape, then the numbers.
A damaged or hostile one may claim any type and shape. Here type, shape and size of every member must agree first; an
array of objects, which is a pickle, is refused unread.
"""

import gzip
import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fedsim.errors import DataError
from fedsim.inputs.files import MAX_BYTES, read_bytes

MAX_UNPACKED_BYTES: Final = 1 << 30
"""Size of all arrays of a file together."""
MAX_MEMBERS: Final = 64

_KINDS: Final = "biufUS"
_GZIP: Final = b"\x1f\x8b"


def unpacked(path: str | Path, most: int = MAX_BYTES, where: str | None = None) -> bytes:
    """Return what a file holds, or what is packed in it by gzip, of at most some bytes."""
    content, where = read_bytes(path, most, DataError, where), str(path) if where is None else where
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            plain = packed.read(most + 1)
    except (zlib.error, OSError, EOFError) as error:
        raise DataError(f"{where}: cannot be read: it is packed by gzip: {error}") from None
    if len(plain) > most:
        raise DataError(f"{where}: cannot be read: its gzip data are larger than {most} bytes")
    return plain


def read_npz(path: str | Path) -> dict[str, NDArray[Any]]:
    return arrays_of_npz(read_bytes(path, MAX_BYTES, DataError), str(path))


def arrays_of_npz(content: bytes, path: str) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {info.filename.removesuffix(".npy"): _array(archive, info) for info in _members(archive)}
    except DataError as error:
        raise DataError(f"{path}: is refused: {error}") from None
    except Exception as error:  # whatever zipfile and NumPy make of a damaged file
        raise DataError(
            f"{path}: cannot be read: it is damaged or no NPZ file: {str(error) or type(error).__name__}; allowed: "
            "what numpy.savez writes"
        ) from error


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise DataError(f"it has {len(members)} members; allowed: at most {MAX_MEMBERS}")
    unpacked = sum(info.file_size for info in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise DataError(f"its arrays would take {unpacked} bytes; allowed: at most {MAX_UNPACKED_BYTES}")
    return members


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return the array of a member, once its header agrees with its size."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{info.filename!r} is compressed by method {info.compress_type}; allowed: stored, deflated")
    with archive.open(info) as file:
        shape, fortran_order, dtype, header_bytes = _header(file, info.filename)
        wanted, held = math.prod(shape) * dtype.itemsize, info.file_size - header_bytes
        if wanted != held:
            raise DataError(
                f"{info.filename!r} claims {dtype} of shape {shape}, {wanted} bytes, and holds {held} bytes"
            )
        # One byte more than there should be, so that the checksum of the member is verified.
        numbers = file.read(wanted + 1)
    return np.frombuffer(numbers, dtype).reshape(shape, order="F" if fortran_order else "C")


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, type and the length of the header in bytes."""
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"{name!r} is of version {version} of NumPy's format; allowed: (1, 0), (2, 0)")
    shape, fortran_order, dtype = readers[version](file)
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise DataError(f"{name!r} holds {dtype}; allowed: numbers and texts, arrays of objects are pickles")
    if any(length < 0 for length in shape):
        raise DataError(f"{name!r} has the shape {shape}; allowed: lengths of at least 0")
    return shape, bool(fortran_order), dtype, file.tell()
