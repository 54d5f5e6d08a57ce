"""The server from the side of a policy: how it works under one, and what a policy may ask of it."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from simpy import Environment, Event

from fedsim.arrays import IntArray
from fedsim.capabilities import EDGES, UPDATES
from fedsim.clock import Waiting
from fedsim.rounds.policies.round import Round
from fedsim.selectors import Cohort

if TYPE_CHECKING:
    from fedsim.rounds.clients.cohort import CohortRun


@dataclass(frozen=True, kw_only=True)
class ServerTraits:
    """How a server works under a policy.

    ``cohort_size`` is None for the selector's own number, ``concurrency`` for a server that sends one cohort a round,
    and ``buffer_size`` for an aggregation of all that has arrived; otherwise it takes the earliest. A server waits for
    one client for ``give_up_after_s`` at most. With ``overlaps_rounds`` clients stay in flight when a round ends, and a
    round may begin while all of them are. Without ``tolerates_losses`` a round does not end before all of its cohort
    have delivered.

    ``remembered_rounds`` bounds the lengths and durations in `PastRounds`; with None, memory grows with the rounds.
    ``provides`` lists what other parts of a scenario may require: ``"edges"``, the policy runs at an edge server, and
    ``"updates"``, it aggregates the updates of clients.
    """

    cohort_size: int | None = None
    concurrency: int | None = None
    buffer_size: int | None = None
    give_up_after_s: float = math.inf
    overlaps_rounds: bool = False
    tolerates_losses: bool = True
    remembered_rounds: int | None = None
    provides: frozenset[str] = frozenset({EDGES, UPDATES})


class ServerPort(Protocol):
    """What a policy may ask of the server that runs its rounds."""

    env: Environment

    @property
    def buffered(self) -> int:
        """How many updates have arrived and wait for an aggregation, whenever their clients started.

        Where late clients are cancelled, updates of the present round are not among them before it is over.
        """
        ...

    @property
    def in_flight(self) -> int:
        """How many clients were sent and have not delivered, as far as the server knows; lost ones are among them."""
        ...

    def select(self, round_: Round, cohort_size: int | None) -> Generator[Event, Any, Cohort | None]:
        """Return the round's cohort; None if no client is available and others are in flight."""
        ...

    def dispatch(self, cohort: Cohort, round_: Round) -> "CohortRun":
        """Send the round's cohort from the newest model."""
        ...

    def refill(self, round_: Round, concurrency: int) -> bool:
        """Send clients one by one until a number of them are in flight; return whether any is or will be available."""
        ...

    def cancel_older_than(self, lag: int) -> Waiting:
        """Cancel clients that train a model more than ``lag`` versions old."""
        ...

    def buffered_clients(self) -> IntArray:
        """Return the clients whose updates wait for their first aggregation."""
        ...

    def next_arrival(self) -> Event:
        """Return the event of the next update, the next client given up or the next client that becomes available.

        Updates trigger it where late clients are not cancelled; elsewhere use `Round.delivered`.
        """
        ...
