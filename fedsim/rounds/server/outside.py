"""Decisions about a run that come from outside of it: the server waits for them while its clock stands.

A server without them asks its selector for a cohort, and the learner for losses. With them it stops where a decision is
due, and goes on as part of the call that brings it: no event comes between, so that a run whose decisions are those of
its own selector is the same run.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import IntArray
from fedsim.clock import Waiting, process_now
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.policies.round import Round
from fedsim.rounds.server.asynchronous import AsynchronousServer
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.give_ups import FEW
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.synchronous import SynchronousServer
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


class Decisions:
    """What a server asks from outside, and what has happened since."""

    server: "SteppedServer"

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


class SteppedServer(SynchronousServer):
    """A server whose cohorts, limits and reports come from outside."""

    may_wait_on = True

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        clients: Clients,
        rows: Rows,
        member: IntArray | None = None,
        *,
        decisions: Decisions,
    ) -> None:
        super().__init__(env, context, clients, rows, member)
        self.decisions = decisions
        decisions.server = self

    def look(self, size: int | None = None) -> RoundView | None:
        """Return what the selector would see now; None without candidates. It is no selection."""
        known = self.candidates if self.env.now == self._looked_at_s else None
        view = self._view(self._present_s, size)
        self.candidates = self.candidates if known is None else known
        return view

    def selected(self, size: int) -> Cohort | None:
        """Return the selector's clients for vacant places of an asynchronous server now; None for none."""
        view = self._view(self.env.now, size)
        if view is None:
            return None
        cohort = self._selected([view])
        return cohort if cohort.client.size else None

    def send(self, cohort: Cohort) -> None:
        """Send clients one by one now, from the newest model, as an asynchronous server does."""
        raise NotImplementedError

    def leave_vacant(self, vacant: int) -> bool:
        """Let places without a client in flight stay vacant until there is a candidate."""
        return True

    def nothing_comes(self) -> str:
        """Return why no update can be expected; while a decision is due, time passes only if the caller lets it."""
        asked = self.decisions.asked
        if asked is Asked.COHORT or (asked is Asked.PLACES and not self.crowd.in_flight):
            return "no client was sent before"
        return super().nothing_comes()

    def nobody_comes(self) -> bool:
        """Return whether no client is in flight, and none can ever be selected again."""
        crowd, now_s = self.crowd, self.env.now
        if crowd.in_flight or crowd.any_busy or self.look() is not None:
            return False
        return crowd.availability.next_s(now_s, crowd.draw(self.number), crowd.member)[0] == math.inf

    def look_around(self) -> None:
        """Let a server that waits for its clients see what has changed."""
        self.crowd.notify()

    @property
    def _present_s(self) -> float:
        """Instant of which the clients' availability holds now: that of the last look, until the clock moves."""
        return self.looked_s if self.env.now == self._looked_at_s else self.env.now

    def _select(self, size: int | None) -> Generator[Event, Any, Cohort | None]:
        if self._beside:
            cohort = yield from self._decided(lambda: super(SteppedServer, self)._select(size))
        else:
            found = [(yield from self._await_candidates(self.start_s, size))]
            if found[0] is None:
                cohort = None
            else:
                del found
                cohort = yield from self._decided(lambda: self._of_selector(size))
            cohort = Cohort(np.zeros(0, dtype=np.int64)) if cohort is None else cohort
        if self.round is not None:
            self.round.time_limit_s = min(self.round.time_limit_s, self.decisions.limit_s)
        return cohort

    def _decided(
        self, selectors: Callable[[], Generator[Event, Any, Cohort | None]]
    ) -> Generator[Event, Any, Cohort | None]:
        decisions = self.decisions
        while True:
            decisions.number = self.number
            answer = yield from decisions.wait(self.env, Asked.COHORT)
            if answer is not Wish.SELECTORS:
                return answer
            decisions.selected = yield from selectors()

    def _of_selector(self, size: int | None) -> Generator[Event, Any, Cohort | None]:
        """Return the selector's cohort, where the clock may have moved since the candidates were looked at."""
        found = [(yield from self._await_candidates(self._present_s, size))]
        cohort = yield from self._choose(found, size)
        return Cohort(np.zeros(0, dtype=np.int64)) if cohort is None else cohort

    @property
    def _waits_for_all(self) -> bool:
        return super()._waits_for_all and self.decisions.limit_s == math.inf

    def _client_ended(self, run: CohortRun, i: int, delivered: bool) -> None:
        if delivered:
            self.decisions.ended.append((run, i, self.env.now))
        super()._client_ended(run, i, delivered)

    def _finish(self, round_: Round, ended_by: RoundEnd) -> Waiting:
        end_s = self.env.now
        self._aggregate()
        self.decisions.closed = self._closed(round_, end_s, ended_by)
        yield from self.decisions.wait(self.env, Asked.REPORT)
        self._record(round_, end_s, ended_by)

    def abort_round(self) -> Generator[Event, Any, bool]:
        round_ = self.round
        begun = yield from super().abort_round()
        if round_ is not None:
            self.decisions.closed = self._closed(round_, self.env.now, RoundEnd.RESTART)
            if round_.cohort_run is not None:
                yield from self.decisions.wait(self.env, Asked.REPORT)
        return begun

    def _closed(self, round_: Round, end_s: float, ended_by: RoundEnd) -> Closed:
        used = [(run, np.flatnonzero(run.served_round == round_.number)) for run in self._open]
        return Closed(
            round_.number,
            round_.start_s,
            end_s,
            ended_by,
            self.candidates,
            self.model.version,
            round_.cohort_run,
            [part for part in used if part[1].size],
        )


class SteppedAsynchronousServer(SteppedServer, AsynchronousServer):
    """An asynchronous server whose clients come from outside."""

    least_given_up = FEW  # the next call may state other times

    def send(self, cohort: Cohort) -> None:
        AsynchronousServer.send(self, cohort)

    def leave_vacant(self, vacant: int) -> bool:
        if vacant > 0 and self._view(self.env.now, None) is None:
            return self._look_again_later()
        return True

    def _refill(self) -> bool:
        decisions, vacant = self.decisions, self.concurrency - self.crowd.in_flight
        if self._in_vain or decisions.finished or not self.leave_vacant(vacant):
            return False
        decisions.number, decisions.vacant, decisions.asked = self.number, vacant, Asked.PLACES
        return True

    def _give_up(self, run: CohortRun) -> None:
        super()._give_up(run)
        self.decisions.ended.append((run, 0, self.env.now))


def stepped_server_of(context: ServerContext, decisions: Decisions) -> Callable[..., SteppedServer]:
    kind = SteppedServer if context.rules.policy.traits.concurrency is None else SteppedAsynchronousServer
    return partial(kind, decisions=decisions)
