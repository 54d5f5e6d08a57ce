"""The contract of a store: results under their digests, so that no work is done twice.

A digest names everything that determines a result, so that a result under a digest never changes. There are two kinds
of results: records, a few numbers each, and arrays, such as a model with the state of its server optimiser.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final, Protocol

from numpy.typing import NDArray

Record = Mapping[str, float]
"""Numbers by name: the report of a training, or the evaluation of a model; NaN and infinities are numbers."""

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: a model, an update, the state of an optimiser."""


class Store(Protocol):
    """Results under digests; several runs may share one, in one process or in several."""

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        """Return the stored records among these digests."""

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Store records under their digests for good: no rule removes a record."""

    def arrays(self, digest: str) -> Arrays | None:
        """Return the arrays stored under a digest, read-only, bit by bit as they were put; None if there are none."""

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Store arrays under a digest, as long as there is room for them; those used longest ago go first."""

    def remove_arrays(self, digest: str) -> None:
        """Remove the arrays under a digest, if there are any."""


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
        if (size := _nbytes(arrays)) > self.limit_bytes:
            return
        kept = {name: values.copy() if values.flags.writeable else values for name, values in arrays.items()}
        for values in kept.values():
            values.flags.writeable = False
        with self._lock:
            self.array_bytes += size - _nbytes(self._arrays.pop(digest, {}))
            self._arrays[digest] = kept
            while self.array_bytes > self.limit_bytes:
                self.array_bytes -= _nbytes(self._arrays.popitem(last=False)[1])

    def remove_arrays(self, digest: str) -> None:
        with self._lock:
            self.array_bytes -= _nbytes(self._arrays.pop(digest, {}))


class NoStore(MemoryStore):
    """Stores nothing; a run has the records of its own results in memory (`fedsim.learning.lineage.known`)."""

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Keep nothing."""

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Keep nothing."""


def _nbytes(arrays: Arrays) -> int:
    return sum(values.nbytes for values in arrays.values())
