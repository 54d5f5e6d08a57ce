"""What a server step may know."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability
from fedsim.learning import Learner
from fedsim.rounds.aggregation.weightings import BySamples, Weighting
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.run import Run
from fedsim.rounds.server.view import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams

_NAMED: Final = 5
"""Updates that a note names."""


@dataclass
class Refused:
    """Clients and rounds of the updates that a run has refused since they were no numbers."""

    updates: list[tuple[int, int]] = field(default_factory=list)

    def note(self) -> str:
        if not self.updates:
            return ""
        named = ", ".join(f"client {client} in round {number}" for client, number in self.updates[:_NAMED])
        more = len(self.updates) - _NAMED
        return (
            f"{len(self.updates):,} updates were no numbers and were refused (rounds.refuse_nonfinite_updates): {named}"
            f"{f' and {more:,} others' if more > 0 else ''}. Usual causes: a too high learning.local.learning_rate, "
            "or very large values in the data"
        )


@dataclass(frozen=True, kw_only=True)
class RoundRules:
    """When rounds end, and what becomes of the updates that arrive."""

    policy: RoundPolicy
    late: LateRule = field(default_factory=Cancel)
    minimum_updates: int = 1
    weighting: Weighting = field(default_factory=BySamples)
    server_restart: ServerRestart | None = None
    refused: Refused | None = None
    until_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server process of one run, or of one edge server, depends on."""

    clients: Run
    effects: Effects
    streams: Streams
    availability: Availability
    learner: Learner
    selector: SelectorPort
    knowledge: Knowledge
    rules: RoundRules

    @cached_property
    def expected_duration_s(self) -> FloatArray:
        """Mean seconds of a participation of each client, shape (K,)."""
        return np.asarray(self.clients.expected_s.sum(axis=0))

    def at_edge(self, member: IntArray) -> Self:
        """Return what an edge server with some of the clients depends on, with random streams of the same names."""
        return replace(self, effects=Effects(effect.at_edge(member) for effect in self.effects))
