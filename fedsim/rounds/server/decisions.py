"""Decisions about a run that come from outside of it: the server waits for them while its clock stands.

A server without them asks its selector for a cohort, and the learner for losses. With them it stops where a decision is
due, and goes on as part of the call that brings it: no event comes between, so that a run whose decisions are those of
its own selector is the same run.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from simpy import Environment, Event

from fedsim.clock import process_now
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.selectors import Cohort, RoundView


class Asked(Enum):
    """What a server waits for."""

    COHORT = "a cohort for the round that has begun"
    PLACES = "clients for the vacant places of an asynchronous server"
    REPORT = "what is known of the updates of the round that is over"


class Wish(Enum):
    """A decision that is no cohort yet."""

    SELECTORS = "the cohort of the run's own selector"


Answer = Cohort | Wish | None
"""A cohort, the wish for the selector's, or nothing: no cohort, or no report."""
FINISHED: Final = "the run is finished from outside"
"""Cause of the interrupt that ends a run before its last round."""


@dataclass(frozen=True)
class Closed:
    """A round that is over, before its selector and policy know; ``own`` is the round's own cohort, if it has one."""

    number: int
    start_s: float
    end_s: float
    ended_by: RoundEnd
    candidates: int
    version: int
    own: CohortRun | None
    served: Members


class SteppedServer(Protocol):
    """What may be asked of a server that waits for decisions."""

    @property
    def in_flight(self) -> int:
        """How many clients were sent and have not delivered, as far as the server knows."""
        ...

    def look(self, number: int, size: int | None = None) -> RoundView | None:
        """Return what the selector would see now, in a round; None without candidates."""
        ...

    def selected(self, number: int, size: int) -> Cohort | None:
        """Return the selector's clients for vacant places of an asynchronous server now; None for none."""
        ...

    def send(self, cohort: Cohort) -> None:
        """Send clients one by one now, from the newest model, as an asynchronous server does."""
        ...

    def leave_vacant(self, vacant: int) -> None:
        """Let places without a client in flight stay vacant until there is a candidate."""
        ...

    def look_around(self) -> None:
        """Let a server that waits for its clients see what has changed."""
        ...


class Decisions:
    """What a server asks from outside, and what has happened since."""

    server: SteppedServer

    def __init__(self) -> None:
        self.asked: Asked | None = None
        self.number = self.vacant = 0
        self.limit_s = math.inf
        self.selected: Cohort | None = None
        self.closed: Closed | None = None
        self.ended: list[tuple[CohortRun, int, float]] = []
        self.finished = False
        self._answer: Answer = None
        self._awaited: Event | None = None

    def wait(self, env: Environment, asked: Asked) -> Generator[Event, Any, Answer]:
        """Wait for a decision, and return it."""
        self.asked, self._awaited, self._answer = asked, env.event(), None
        try:
            yield self._awaited
        finally:
            self.asked = self._awaited = None
        return self._answer

    def answer(self, answer: Answer) -> None:
        """Let the server go on with a decision, up to its next wait, as part of this call."""
        awaited = self._awaited
        if awaited is None:
            self.asked = None  # an asynchronous server waits for its clients, and not for the places
            return
        self._answer = answer
        process_now(awaited)

    def take_selected(self) -> Cohort | None:
        """Return the selector's cohort, once; None if it has selected no client."""
        taken, self.selected = self.selected, None
        return taken

    def take_ended(self) -> list[tuple[CohortRun, int, float]]:
        """Return the clients that have delivered, or were given up, since the last call."""
        taken, self.ended = self.ended, []
        return taken
