"""The server from the side of a policy: how it works under one, and what a policy may ask of it."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from simpy import Environment, Event

from fedsim.arrays import IntArray
from fedsim.capabilities import EDGES, UPDATES
from fedsim.clock import Waiting
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.policies.round import Round
from fedsim.selectors import Cohort


@dataclass(frozen=True, kw_only=True)
class ServerTraits:
    """How a server works under a policy.

    Attributes
    ----------
    cohort_size : clients that the server asks the selector for; None for the selector's own number
    concurrency : clients that an asynchronous server keeps in flight; None for a server that sends one cohort a round
    buffer_size : updates that an aggregation takes, the earliest first; None for all that have arrived
    give_up_after_s : longest time for which an asynchronous server waits for one client; inf for no limit
    overlaps_rounds : whether clients stay in flight when a round ends, and a round may begin while all are in flight
    tolerates_losses : whether a round ends although a client of its cohort never delivers
    remembered_rounds : how many of the last rounds `PastRounds` keeps with lengths and durations; None for all of them,
        whose memory grows with the rounds
    provides : abilities that other parts of a scenario may require; ``"edges"``: it runs at an edge server;
        ``"updates"``: it aggregates the updates of clients

    Examples
    --------
    >>> from fedsim.rounds import POLICIES
    >>> POLICIES.make({"kind": "k-fastest", "k": 10}).traits.cohort_size  # 10 times 1.3
    13
    >>> POLICIES.make("wait-for-all").traits.tolerates_losses
    False
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
    """What a policy may ask of the server that runs its rounds.

    Attributes
    ----------
    env : Environment

    Examples
    --------
    >>> from fedsim import Scenario, simulate
    >>> from fedsim.history import RoundEnd
    >>> from fedsim.rounds import RoundPolicy
    >>> class Telling(RoundPolicy):
    ...     def run(self, server: ServerPort, round_):
    ...         cohort = yield from server.select(round_, None)
    ...         server.dispatch(cohort, round_)
    ...         yield round_.delivered(3)
    ...         print(f"{server.in_flight} of {round_.size} in flight after {server.env.now} s")
    ...         return RoundEnd.ENOUGH
    >>> scenario = Scenario(
    ...     name="four", crowd={"clients": 4}, learning="none", network={"kind": "pause-two-speed", "std_s": 0.0},
    ...     devices={"compute": "zero"}, rounds={"count": 1, "policy": Telling()}, selector="all",
    ... )
    >>> history = simulate(scenario)
    1 of 4 in flight after 0.8 s
    """

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
        """Return the round's cohort; None if no client is available and others are in flight.

        Parameters
        ----------
        round_ : the present round
        cohort_size : number of clients asked of the selector; None for its own number
        """
        ...

    def dispatch(self, cohort: Cohort, round_: Round) -> CohortRun:
        """Send the round's cohort from the newest model.

        Parameters
        ----------
        cohort : what `select` returned
        round_ : the present round, whose `cohort_run` is set

        Returns
        -------
        CohortRun
        """
        ...

    def refill(self, round_: Round, concurrency: int) -> bool:
        """Send clients one by one until a number of them are in flight; return whether any is or will be available.

        Parameters
        ----------
        round_ : the present round
        concurrency : number of clients to have in flight

        Returns
        -------
        whether any client is available, or will be
        """
        ...

    def cancel_older_than(self, lag: int) -> Waiting:
        """Cancel clients that train a model more than ``lag`` versions old.

        Parameters
        ----------
        lag : in versions, at least 0
        """
        ...

    def buffered_clients(self) -> IntArray:
        """Return the clients whose updates wait for their first aggregation, shape (n,)."""
        ...

    def next_arrival(self) -> Event:
        """Return the event of the next update, the next client given up or the next client that becomes available.

        Updates trigger it where late clients are not cancelled; elsewhere use `Round.delivered`.
        """
        ...
