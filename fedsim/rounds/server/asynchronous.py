"""A server that has a number of clients in flight, each of them a cohort of its own.

The clients, their messages and the end of a round are those of the synchronous server.
"""

import math
from collections.abc import Callable, Generator
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt, Process

from fedsim.arrays import IntArray
from fedsim.clock import LastOfInstant, call_when, delay_until, rest_of_instant, tie_s
from fedsim.errors import ScenarioError, SelectorError
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.policies.contracts import Running
from fedsim.rounds.policies.round import Round
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.give_ups import FEW, FIRST_LOOKS, LOOKS, Patience, patience
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.synchronous import SynchronousServer
from fedsim.rounds.server.view import all_members
from fedsim.selectors import Cohort

PATIENCE: Final = 10_000
"""Clients given up in a row after which no delivery is expected any more, whatever the times are."""


class AsynchronousServer(SynchronousServer):
    """Fills vacant places with idle clients, one by one, until enough updates have arrived."""

    asynchronous = may_wait_on = True
    least_given_up = 1
    """Clients given up in a row before the server may say that none delivers."""

    def __init__(
        self, env: Environment, context: ServerContext, clients: Clients, rows: Rows, member: IntArray | None = None
    ) -> None:
        super().__init__(env, context, clients, rows, member)
        self.concurrency = self.traits.concurrency or 1
        self._looks_again_s = -math.inf
        self._asking: Process | None = None
        self._declined_at: int | None = None
        self._watched = self._in_vain = False
        self._patience = Patience(PATIENCE)
        if self._before_dispatch or self._before_aggregation:
            raise ScenarioError(
                "rounds.policy: an asynchronous server sends one client at a time, and has no messages before a cohort "
                "is sent or its updates are added up; allowed: effects without before_dispatch and before_aggregation"
            )

    @property
    def _beside(self) -> bool:
        return True

    def _serve(self, round_: Round) -> Running:
        """Fill vacant places before each wait of the policy; return what ends it, or enough if no client ever comes."""
        waiting = self.context.rules.policy.wait(self, round_)
        try:
            event = next(waiting)
            while self._refill():
                value = yield event
                yield from rest_of_instant(self.env)
                event = waiting.send(value)
        except StopIteration as end:
            ended_by: RoundEnd = end.value
            return ended_by
        finally:
            waiting.close()
        return RoundEnd.ENOUGH

    def _refill(self) -> bool:
        """Send clients, perhaps after a question, until enough are in flight; return whether any is or may be."""
        if self._in_vain:
            return False
        if self._before_selection:
            return self._after_question()
        while (vacant := self.concurrency - self.crowd.in_flight) > 0:
            cohort = self._at_once(vacant)
            if cohort is None:
                return self._look_again_later()
            self.send(cohort)
        return True

    def _at_once(self, size: int) -> Cohort | None:
        """Return a cohort to send now; None without candidates, or if the selector selects none."""
        view = self._view(self.env.now, size)
        if view is None:
            return None
        shown = [view]
        del view
        cohort = self._selected(shown)
        return cohort if cohort.client.size else None

    def send(self, cohort: Cohort) -> None:
        """Send clients one by one, each with the draw of its own next participation."""
        participations = self.context.knowledge.participations
        for i in range(cohort.client.size):
            one = cohort if cohort.client.size == 1 else cohort.part(np.array([i]))
            run = self._send(one, int(participations[one.client[0]]) + 1)
            if self.traits.give_up_after_s < math.inf:
                self.crowd.wait_for(run)
                self._watch()

    # A question before the selection.

    def _after_question(self) -> bool:
        """Put a question if places are vacant; return whether anything will happen."""
        asking = self._asking is not None and self._asking.is_alive
        if asking or self.crowd.in_flight >= self.concurrency:
            return True
        # A selector that has just selected no client is asked again once the candidates have changed.
        if self._declined_at == self.crowd.released:
            self._declined_at = None
            return self._look_again_later()
        self._asking = self.env.process(self._ask_and_send())
        return True

    def _ask_and_send(self) -> Generator[Event, Any, None]:
        """Put a question and send the clients that the selector selects then."""
        try:
            cohort = yield from self._select(self.concurrency - self.crowd.in_flight)
        except Interrupt:
            return
        self._declined_at = self.crowd.released if cohort is None else None
        if cohort is not None:
            self.send(cohort)
        self.crowd.notify()

    # Clients that are given up.

    def _watch(self) -> None:
        """Have a timer for the client in flight that was sent first, unless there is one.

        Most clients deliver before they are given up: a timer for each would grow with what they have done.
        """
        run = self.crowd.longest_waited_for()
        if run is not None and not self._watched:
            self._watched = True
            self._call_last(delay_until(self.env, self._gives_up_s(run)), self._give_up_due)

    def _gives_up_s(self, run: CohortRun) -> float:
        return float(run.participations.start_s + self.traits.give_up_after_s)

    def _give_up_due(self) -> None:
        """Stop waiting for clients that have not delivered in time, and let others take their places."""
        run = self.crowd.longest_waited_for()
        due = run is not None and self._gives_up_s(run) <= self.env.now
        if due and (tied_s := tie_s(self.env)):
            self._call_last(tied_s, self._give_up_due)
            return
        while run is not None and self._gives_up_s(run) <= self.env.now:
            self._give_up(run)
            run = self.crowd.longest_waited_for()
        self._watched = False
        self._watch()

    def _give_up(self, run: CohortRun) -> None:
        crowd, in_a_row = self.crowd, self.crowd.lost_in_a_row + 1
        if self.context.rules.until_s is None and (not crowd.released or in_a_row == FEW):
            plan, most_s = run.participations.plan, self.traits.give_up_after_s
            looks = LOOKS if in_a_row == FEW else FIRST_LOOKS
            found = patience(self.context.clients, crowd.member, plan, most_s, looks)
            self._patience = found or Patience(PATIENCE)
        if in_a_row >= max(self._patience.clients, self.least_given_up):
            raise ScenarioError(
                f"rounds.policy.give_up_s: {self.traits.give_up_after_s} is not allowed; {in_a_row} clients in a row "
                f"were given up and none delivered{self._patience.why}; allowed: a time in which some can deliver"
            )
        run.participations.cancel()
        run.given_up_s = self.env.now
        crowd.give_up(run)
        crowd.notify()

    def nothing_comes(self) -> str:
        """Return why no update can be expected: all clients in flight are lost, or as many as can be were given up."""
        crowd = self.crowd
        if self.round is None:
            return ""
        if crowd.in_flight and all(run.participations.ended.all() for run in self._open):
            return f"all {crowd.in_flight} clients in flight are lost"
        if crowd.lost_in_a_row >= self.concurrency:
            return f"the last {crowd.lost_in_a_row} clients were given up, and none has delivered"
        return ""

    def stop_waiting(self) -> bool:
        self._in_vain = True
        self.crowd.notify()
        return True

    # Candidates that come later.

    def _look_again_later(self) -> bool:
        """Look again when the next idle client becomes available; return whether anything will happen."""
        candidates = self.candidates
        next_s = self.crowd.next_candidate_s(self.number)
        # Where there was no candidate, the question for the next instant may have found a draw with one now.
        if next_s > self.env.now or not candidates:
            if next_s < math.inf and next_s != self._looks_again_s:
                self._looks_again_s = next_s
                self._call_last(max(next_s - self.env.now, float(np.spacing(self.env.now))), self._look_again)
        elif not self.crowd.in_flight:
            raise SelectorError(
                f"{self.selector.name}.select returned no client in round {self.number} and none is in "
                f"flight, though there are {candidates} candidates",
                "allowed: one candidate at least where none is in flight",
            )
        return self.crowd.in_flight > 0 or next_s < math.inf

    def _look_again(self) -> None:
        # The sum of now and the wait may have been rounded to just before the instant; then there is one more wait.
        self._looks_again_s, self._declined_at = -math.inf, None
        self.crowd.notify()

    def _call_last(self, delay_s: float, what: Callable[[], None]) -> None:
        call_when(LastOfInstant(self.env, delay_s), lambda _: what())

    # The end of a round, and of the run.

    def _counted(self, round_: Round, final: Members) -> Members:
        return final

    def _aborted(self, round_: Round, final: Members) -> Members:
        return final

    def _reported(self, counted: Members, arrived: Members) -> Members:
        return [*arrived, *map(all_members, self.crowd.take_given_up())]

    def _stop(self) -> Generator[Event, Any, Members]:
        if self._asking is not None and self._asking.is_alive:
            self._asking.interrupt()
            yield self._asking
        self._asking, self._declined_at = None, None
        return (yield from super()._stop())


def server_of(context: ServerContext) -> type[SynchronousServer]:
    return SynchronousServer if context.rules.policy.traits.concurrency is None else AsynchronousServer
