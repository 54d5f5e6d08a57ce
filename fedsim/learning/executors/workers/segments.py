"""Arrays in memory that processes share; on Linux it has no name, so that the system frees it with its last holder."""

import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# A cache line: arrays that begin there are read as fast as torch's own.
_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class Shared:
    """Where arrays lie, as another process is told."""

    path: str
    places: tuple[tuple[int, tuple[int, ...], str], ...]

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays, read-only; the memory is held as long as one of them is."""
        with Path(self.path).open("rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        found = []
        for start, shape, dtype in self.places:
            count = int(np.prod(shape, dtype=np.int64))
            found.append(np.frombuffer(memory, dtype, count, start).reshape(shape))
        return found


class Segment:
    """A piece of shared memory with copies of arrays."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        if sys.platform == "linux":
            handle = os.memfd_create("fedsim")
            path = f"/proc/{os.getpid()}/fd/{handle}"
            weakref.finalize(self, os.close, handle)
        else:
            handle, path = tempfile.mkstemp(prefix="fedsim-")
            weakref.finalize(self, Path(path).unlink, missing_ok=True)
        places, start = [], 0
        with os.fdopen(handle, "wb", closefd=sys.platform != "linux") as file:
            for array in arrays:
                places.append((start, array.shape, array.dtype.str))
                file.seek(start)
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                start += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
            file.truncate(max(start, 1))
        self.shared = Shared(path, tuple(places))
