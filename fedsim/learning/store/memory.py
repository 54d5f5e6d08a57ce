"""A store in the memory of one process."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

from numpy.typing import NDArray

from fedsim.learning.store.contracts import Arrays, Record

_DEFAULT_BYTES: Final = 2**28


class MemoryStore:
    """Records in memory, and arrays up to a limit; beyond it those used longest ago go first.

    Several runs and threads may share one: a scenario in which only times differ finds every training of the run
    before.
    """

    def __init__(self, limit_bytes: int = _DEFAULT_BYTES) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes: {limit_bytes!r} is not allowed; it must be at least 0")
        self.limit_bytes = limit_bytes
        self.hits = self.misses = self.array_bytes = 0
        self._records: dict[str, Record] = {}
        self._arrays: OrderedDict[str, Arrays] = OrderedDict()
        self._lock = Lock()

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        with self._lock:
            found = {digest: self._records[digest] for digest in digests if digest in self._records}
            hits = sum(digest in found for digest in digests)
            self.hits, self.misses = self.hits + hits, self.misses + len(digests) - hits
        return found

    def put_records(self, records: Mapping[str, Record]) -> None:
        with self._lock:
            self._records.update({digest: dict(record) for digest, record in records.items()})

    def arrays(self, digest: str) -> Arrays | None:
        with self._lock:
            found = self._arrays.get(digest)
            if found is not None:
                self._arrays.move_to_end(digest)
        return found

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Store arrays under a digest, removing others if need be; arrays that may still be written are copied."""
        with self._lock:
            if digest in self._arrays:
                self._arrays.move_to_end(digest)
                return
        if (size := _nbytes(arrays)) > self.limit_bytes:
            return
        kept = {name: _frozen(values) for name, values in arrays.items()}
        with self._lock:
            self._remove(digest)  # another thread may have put it meanwhile
            self._arrays[digest] = kept
            self.array_bytes += size
            while self.array_bytes > self.limit_bytes:
                self.array_bytes -= _nbytes(self._arrays.popitem(last=False)[1])

    def remove_arrays(self, digest: str) -> None:
        with self._lock:
            self._remove(digest)

    def _remove(self, digest: str) -> None:
        before = self._arrays.pop(digest, None)
        self.array_bytes -= 0 if before is None else _nbytes(before)


def _nbytes(arrays: Arrays) -> int:
    return sum(values.nbytes for values in arrays.values())


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    if values.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return values
