"""The server from the side of a policy: how it works under one, and what a policy may know of it."""

import math
from dataclasses import dataclass
from typing import Protocol

from simpy import Environment, Event

from fedsim.arrays import IntArray
from fedsim.capabilities import EDGES, UPDATES


@dataclass(frozen=True, kw_only=True)
class ServerTraits:
    """How a server works under a policy.

    ``cohort_size`` is None for the selector's own number, ``concurrency`` for a server that sends one cohort a round,
    and ``buffer_size`` for an aggregation of all that has arrived; otherwise it takes the earliest. A server waits for
    one client for ``give_up_after_s`` at most. With ``overlaps_rounds`` clients stay in flight when a round ends, and a
    round may begin while all of them are. Clients that train a model more than ``most_lag`` versions old are cancelled
    before a selection; None for none. Without ``tolerates_losses`` a round does not end before all of its cohort have
    delivered.

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
    most_lag: int | None = None
    remembered_rounds: int | None = None
    provides: frozenset[str] = frozenset({EDGES, UPDATES})


class ServerPort(Protocol):
    """What a policy may know of the server that it waits for."""

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

    def buffered_clients(self) -> IntArray:
        """Return the clients whose updates wait for their first aggregation."""
        ...

    def next_arrival(self) -> Event:
        """Return the event of the next update, the next client given up or the next client that becomes available.

        Updates trigger it where late clients are not cancelled; elsewhere use `Round.delivered`.
        """
        ...
