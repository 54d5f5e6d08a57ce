"""Things in memory that processes share; on Linux it has no name, so that the system frees it with its last holder."""

import mmap
import os
import pickle
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# A cache line: arrays that begin there are read as fast as torch's own.
_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class Shared:
    """A thing whose arrays lie in shared memory, as another process is told."""

    content: bytes
    path: str
    places: tuple[tuple[int, int], ...]

    def thing(self) -> Any:
        """Return it with read-only arrays; the memory is held as long as one of them is."""
        with Path(self.path).open("rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        buffers = [memory[start : start + size] for start, size in self.places]
        return pickle.loads(self.content, buffers=buffers)  # noqa: S301 - of the process that has started this one


class Segment:
    """A piece of shared memory with copies of a thing's arrays."""

    def __init__(self, thing: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        content = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
        if sys.platform == "linux":
            handle = os.memfd_create("fedsim")
            path = f"/proc/{os.getpid()}/fd/{handle}"
            weakref.finalize(self, os.close, handle)
        else:
            handle, path = tempfile.mkstemp(prefix="fedsim-")
            weakref.finalize(self, Path(path).unlink, missing_ok=True)
        places, start = [], 0
        with os.fdopen(handle, "wb", closefd=sys.platform != "linux") as file:
            for numbers in (buffer.raw() for buffer in buffers):
                places.append((start, numbers.nbytes))
                file.seek(start)
                file.write(numbers)
                start += -(-numbers.nbytes // _ALIGNMENT) * _ALIGNMENT
            file.truncate(max(start, 1))
        self.shared = Shared(content, path, tuple(places))
