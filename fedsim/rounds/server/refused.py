"""Updates that are no numbers, which a server refuses where a scenario says so."""

from dataclasses import dataclass, field
from typing import Final

_NAMED: Final = 5
"""Updates that a note names."""


@dataclass
class Refused:
    """Clients and rounds of the updates that a run has refused."""

    updates: list[tuple[int, int]] = field(default_factory=list)

    def note(self) -> str:
        """Return a sentence on them; empty without any."""
        if not self.updates:
            return ""
        named = ", ".join(f"client {client} in round {number}" for client, number in self.updates[:_NAMED])
        more = len(self.updates) - _NAMED
        return (
            f"{len(self.updates):,} updates were no numbers and were refused (rounds.refuse_nonfinite_updates): {named}"
            f"{f' and {more:,} others' if more > 0 else ''}. Usual causes: a too high learning.local.learning_rate, "
            "or very large values in the data"
        )
