"""The contract of a store: results under their digests, so that no work is done twice.

A digest names everything that determines a result, so that a result under a digest never changes. There are two kinds
of results: records, a few numbers each, and arrays, such as a model with the state of its server optimiser.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Record = Mapping[str, float]
"""Numbers by name: the report of a training, or the evaluation of a model; NaN and infinities are numbers."""

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: a model, an update, the state of an optimiser."""


class Store(Protocol):
    """Results under digests; several runs may share one, in one process or in several."""

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        """Return the stored records among these digests."""
        ...

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Store records under their digests for good: no rule removes a record."""
        ...

    def arrays(self, digest: str) -> Arrays | None:
        """Return the arrays stored under a digest, read-only, bit by bit as they were put; None if there are none."""
        ...

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Store arrays under a digest, as long as there is room for them; those used longest ago go first."""
        ...

    def remove_arrays(self, digest: str) -> None:
        """Remove the arrays under a digest, if there are any."""
        ...
