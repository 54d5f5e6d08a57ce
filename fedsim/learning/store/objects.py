"""Arrays as safetensors files, one for each digest, each with a checksum of all that it holds."""

import json
import os
import re
import secrets
import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fedsim.learning.store.contracts import Arrays

_FORMAT: Final = "fedsim-arrays-1"
_ENDING: Final = ".safetensors"
_DIGEST: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")
_TEMPORARY: Final = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-[0-9a-f]+\.tmp|\.tmp.+")
"""Names of files that are being written, by this module and by safetensors."""
_TYPES: Final = {
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64"),
}
_OLD_S: Final = 3600.0
"""Age from which on a temporary file has no writer, on whichever machine it was."""


class DamagedError(Exception):
    """A file does not hold what was written under its digest."""


class UnknownTypeError(Exception):
    """Safetensors has no name for the type of an array."""


class StoredFile(NamedTuple):
    """A file of arrays: its digest, its size, and when it was written, in seconds since 1970."""

    digest: str
    size_bytes: int
    written_s: float


class Objects:
    """Files of arrays in a folder.

    A file is written under a temporary name and then renamed, so that it is whole under its own name, or missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._host = re.sub(r"[^0-9A-Za-z]", "_", socket.gethostname()) or "host"

    def path(self, digest: str) -> Path:
        if _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"digest: {digest!r} is not allowed; it must be 1 to 128 letters, digits, '-' and '_'")
        return self._folder / digest[:2] / f"{digest}{_ENDING}"

    def write(self, digest: str, arrays: Arrays) -> int:
        """Write the arrays of a digest, and return the size of the file in bytes."""
        for name, values in arrays.items():
            if values.dtype.name not in _TYPES or name == "__metadata__":
                raise UnknownTypeError(f"array {name!r} of {values.dtype} cannot be kept as safetensors")
        # The library takes the memory of an array as it lies.
        dense = {name: np.asarray(values, values.dtype.newbyteorder("="), order="C") for name, values in arrays.items()}
        written = {"format": _FORMAT, "digest": digest, "checksum": _checksum(digest, dense)}
        path = self.path(digest)
        temporary = path.with_name(f"{self._host}-{os.getpid()}-{secrets.token_hex(6)}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            save_file(dense, temporary, written)
            size_bytes = temporary.stat().st_size
            temporary.replace(path)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, SafetensorError):
                raise OSError(str(error)) from error
            raise
        return size_bytes

    def read(self, digest: str) -> Arrays | None:
        """Return the arrays of a digest, read-only, or None if there is no file."""
        try:
            with safe_open(self.path(digest), framework="np") as file:
                about, arrays = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (FileNotFoundError, PermissionError):
            return None
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(str(error)) from error
        if about != {"format": _FORMAT, "digest": digest, "checksum": _checksum(digest, arrays)}:
            raise DamagedError("the checksum differs")
        for values in arrays.values():
            values.flags.writeable = False
        return arrays

    def remove(self, digest: str) -> None:
        if _DIGEST.fullmatch(digest):
            self.path(digest).unlink(missing_ok=True)

    def files(self) -> Iterator[StoredFile]:
        for entry in self._entries():
            digest = entry.name.removesuffix(_ENDING)
            if entry.name.endswith(_ENDING) and _DIGEST.fullmatch(digest):
                try:
                    status = entry.stat()
                except FileNotFoundError:  # removed meanwhile by another process
                    continue
                yield StoredFile(digest, status.st_size, status.st_mtime)

    def clean(self) -> int:
        """Remove temporary files whose writers are gone, and return how many there were."""
        removed = 0
        for entry in self._entries():
            if (named := _TEMPORARY.fullmatch(entry.name)) is None:
                continue
            try:
                old = time.time() - entry.stat().st_mtime > _OLD_S
                if old or (named["host"] == self._host and not _alive(int(named["pid"]))):
                    Path(entry.path).unlink()
                    removed += 1
            except FileNotFoundError:
                continue
        return removed

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        if not self._folder.is_dir():
            return
        for folder in sorted(path for path in self._folder.iterdir() if path.is_dir()):
            with os.scandir(folder) as entries:
                yield from entries


def _checksum(digest: str, arrays: Arrays) -> str:
    """Return a CRC-32 of names, types, shapes and numbers under a digest; the arrays are contiguous."""
    checksum = zlib.crc32(digest.encode())
    for name in sorted(arrays):
        values = arrays[name]
        checksum = zlib.crc32(json.dumps([name, values.dtype.name, *values.shape]).encode(), checksum)
        checksum = zlib.crc32(values.data, checksum)
    return f"{checksum:08x}"


def _alive(pid: int) -> bool:
    if os.name != "posix":  # signal 0 asks nothing there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
