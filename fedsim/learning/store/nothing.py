"""No store: a run that no other run shares results with."""

from collections.abc import Mapping, Sequence

from fedsim.learning.store.contracts import Arrays, Record


class NoStore:
    """Stores nothing; a run has the records of its own results in memory (`fedsim.learning.lineage.kept`)."""

    def records(self, digests: Sequence[str]) -> dict[str, Record]:
        return {}

    def put_records(self, records: Mapping[str, Record]) -> None:
        """Keep nothing."""

    def arrays(self, digest: str) -> Arrays | None:
        return None

    def put_arrays(self, digest: str, arrays: Arrays) -> None:
        """Keep nothing."""

    def remove_arrays(self, digest: str) -> None:
        """Do nothing."""
