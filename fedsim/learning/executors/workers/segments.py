"""Memory that processes share, which has no name, so that the system frees it with the last process that holds it."""

import itertools
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# A cache line: arrays that begin there are read as fast as torch's own.
_ALIGNMENT: Final = 64

_NUMBERS = itertools.count()

Place = tuple[int, int]
"""First byte and number of bytes of an array in a segment."""


class Segment:
    """A piece of shared memory."""

    def __init__(self, handle: int, size: int, *, writable: bool) -> None:
        self.handle, self.size, self.number = handle, size, next(_NUMBERS)
        self.memory = memoryview(mmap.mmap(handle, size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ))
        weakref.finalize(self, os.close, handle)

    @classmethod
    def create(cls, size: int) -> "Segment":
        if sys.platform == "linux":
            handle = os.memfd_create("fedsim")
        else:
            with tempfile.TemporaryFile() as file:
                handle = os.dup(file.fileno())
        os.ftruncate(handle, size)
        return cls(handle, size, writable=True)

    @classmethod
    def holding(cls, buffers: Sequence[memoryview]) -> tuple["Segment", list[Place]]:
        """Return a new segment that holds copies of buffers, and their places."""
        segment = cls.create(max(needed(buffers), 1))
        return segment, segment.write(buffers)

    def write(self, buffers: Sequence[memoryview]) -> list[Place]:
        """Copy buffers to the beginning of the segment, and return where they are."""
        places, start = [], 0
        for buffer in buffers:
            self.memory[start : start + buffer.nbytes] = buffer
            places.append((start, buffer.nbytes))
            start += _aligned(buffer.nbytes)
        return places

    def view(self, place: Place) -> memoryview:
        """Return a read-only view of a place."""
        start, size = place
        return self.memory[start : start + size].toreadonly()


def needed(buffers: Sequence[memoryview]) -> int:
    """Return the bytes that buffers take in a segment."""
    return sum(_aligned(buffer.nbytes) for buffer in buffers)


def raw(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array, which is copied if it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
