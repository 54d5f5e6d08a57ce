"""What keeps results under their digests, so that no work is done twice.

A digest names everything that determines a result, so a result under a digest never changes. There are two kinds of
results: records, a few numbers each, and arrays, such as a model with the state of its server optimiser.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Record = Mapping[str, float]
"""Numbers by name: what a training reports, or the evaluation of a model. NaN and infinities are numbers."""

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: a model, an update, the state of an optimiser."""


class Store(Protocol):
    """Results under digests; several runs may share one, in one process or in several."""

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        """Return the records that are kept under some of these digests."""
        ...

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Keep records under their digests. They are kept always: no rule lets go of a record."""
        ...

    def arrays(self, digest: str) -> Arrays | None:
        """Return the arrays kept under a digest, read-only, bit by bit as they were put; None if they are not kept."""
        ...

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Keep arrays under a digest, as long as there is room for them; those used longest ago go first."""
        ...

    def remove_arrays(self, digest: str) -> None:
        """Let go of the arrays under a digest, if they are kept."""
        ...
