"""Results of trainings and probes under their digests, so that no work is done twice."""

from collections import OrderedDict
from typing import Final, Protocol

from fedsim.learning.contracts import Evaluation
from fedsim.learning.executors.contracts import TrainingResult

Kept = TrainingResult | Evaluation

_DEFAULT_BYTES: Final = 2**28
_EVALUATION_BYTES: Final = 512
"""Two numbers, and what Python takes for them, their digest and their place among the others."""


class Store(Protocol):
    """Results under digests; several runs may share one."""

    def get(self, digest: str) -> Kept | None:
        """Return the result kept under a digest, or None."""
        ...

    def put(self, digest: str, result: Kept) -> None:
        """Keep a result."""
        ...


class MemoryStore:
    """Results in memory up to a limit; beyond it those used longest ago are dropped first.

    Several runs may share one: a scenario in which only times differ finds every training of the run before.

    Parameters
    ----------
    limit_bytes : int >= 0
        Most memory that the kept results may take; a larger single result is not kept at all.

    Attributes
    ----------
    hits, misses : how often a result was asked for and found, or not found
    """

    def __init__(self, limit_bytes: int = _DEFAULT_BYTES) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes: {limit_bytes!r} is not allowed; it must be at least 0")
        self.limit_bytes = limit_bytes
        self.hits = self.misses = 0
        self.nbytes = 0
        self._results: OrderedDict[str, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, digest: str) -> Kept | None:
        """Return the result kept under a digest, or None."""
        found = self._results.get(digest)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._results.move_to_end(digest)
        return found

    def put(self, digest: str, result: Kept) -> None:
        """Keep a result, dropping others if need be."""
        before = self._results.pop(digest, None)
        self.nbytes -= 0 if before is None else _nbytes(before)
        if _nbytes(result) > self.limit_bytes:
            return
        self._results[digest] = result
        self.nbytes += _nbytes(result)
        while self.nbytes > self.limit_bytes:
            self.nbytes -= _nbytes(self._results.popitem(last=False)[1])


def _nbytes(result: Kept) -> int:
    return result.nbytes if isinstance(result, TrainingResult) else _EVALUATION_BYTES
