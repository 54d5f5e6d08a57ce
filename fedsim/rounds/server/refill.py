"""How an asynchronous server keeps a number of clients in flight."""

import math
from collections.abc import Callable, Generator
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt, Process

from fedsim.clock import LastOfInstant, call_when, delay_until, tie_s
from fedsim.errors import ScenarioError, SelectorError
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.decisions import Asked, Decisions
from fedsim.rounds.server.roster import Roster
from fedsim.rounds.server.selection import Ask, Selection
from fedsim.selectors import Cohort

PATIENCE: Final = 10_000
"""After this number of clients given up in a row, no delivery is expected any more."""

Send = Callable[[int, Cohort, int], CohortRun]
"""Sends a cohort in a round; the last argument is the draw that its random times are keyed by."""


class Refill:
    """Sends idle clients, one by one, until a number of them are in flight."""

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        roster: Roster,
        selection: Selection,
        send: Send,
        decisions: Decisions | None = None,
    ) -> None:
        self.env, self._roster, self._selection, self._send = env, roster, selection, send
        self._participations = context.knowledge.participations
        self._give_up_after_s = context.policy.traits.give_up_after_s
        self.number, self._decisions = 0, decisions
        self._looks_again_s = -math.inf
        self._question: Process | None = None
        self._declined_at: int | None = None
        self._watched = False

    def to(self, concurrency: int, ask: Ask) -> bool:
        """Send clients until a number of them are in flight; return whether any is or will be available.

        If the selector asks clients first, they are sent when these have responded.
        """
        if self._decisions is not None:
            return self._wait_outside(self._decisions, concurrency)
        if self._selection.selector.probe is not None:
            return self._after_question(concurrency, ask)
        while self._roster.in_flight < concurrency:
            cohort = self._selection.at_once(self.number, concurrency - self._roster.in_flight)
            if cohort is None:
                return self._look_again_later()
            self.send(cohort)
        return True

    def leave_vacant(self, vacant: int) -> bool:
        """Look again later, if places are vacant and there is no candidate; return whether anything will happen."""
        if vacant > 0 and not self._selection.any_candidate(self.number):
            return self._look_again_later()
        return True

    def _wait_outside(self, decisions: Decisions, concurrency: int) -> bool:
        vacant = concurrency - self._roster.in_flight
        if decisions.finished or not self.leave_vacant(vacant):
            return False
        decisions.number, decisions.vacant, decisions.asked = self.number, vacant, Asked.PLACES
        return True

    def stop_asking(self) -> Generator[Event, Any, None]:
        """Break off the present question, if there is one."""
        if self._question is not None and self._question.is_alive:
            self._question.interrupt()
            yield self._question
        self._question, self._declined_at = None, None

    def _after_question(self, concurrency: int, ask: Ask) -> bool:
        """Put a question if places are vacant; return whether anything will happen."""
        asking = self._question is not None and self._question.is_alive
        if asking or self._roster.in_flight >= concurrency:
            return True
        # A selector that has just selected no client is asked again once the candidates have changed.
        if self._declined_at == self._roster.released:
            self._declined_at = None
            return self._look_again_later()
        self._question = self.env.process(self._ask(concurrency, ask))
        return True

    def _ask(self, concurrency: int, ask: Ask) -> Generator[Event, Any, None]:
        """Put a question and send the clients that the selector selects then."""
        try:
            size = concurrency - self._roster.in_flight
            cohort = yield from self._selection.after_question(lambda: self.number, size, ask)
        except Interrupt:
            return
        self._declined_at = self._roster.released if cohort is None else None
        if cohort is not None:
            self.send(cohort)
        self._roster.notify()

    def send(self, cohort: Cohort) -> None:
        """Send clients one by one, each with the draw of its own next participation."""
        for i in range(cohort.client.size):
            one = cohort.part(np.array([i]))
            run = self._send(self.number, one, int(self._participations[one.client[0]]) + 1)
            if self._give_up_after_s < math.inf:
                self._roster.wait_for(run)
                self._watch()

    def _watch(self) -> None:
        """Have a timer for the client in flight that was sent first, unless there is one.

        Most clients deliver before they are given up: a timer for each would grow with what they have done.
        """
        run = self._roster.longest_waited_for()
        if run is not None and not self._watched:
            self._watched = True
            self._call_last(delay_until(self.env, self._gives_up_s(run)), self._give_up_due)

    def _gives_up_s(self, run: CohortRun) -> float:
        return float(run.participations.start_s + self._give_up_after_s)

    def _give_up_due(self) -> None:
        """Stop waiting for clients that have not delivered in time, and let others take their places."""
        run = self._roster.longest_waited_for()
        due = run is not None and self._gives_up_s(run) <= self.env.now
        if due and (tied_s := tie_s(self.env)):
            self._call_last(tied_s, self._give_up_due)
            return
        while run is not None and self._gives_up_s(run) <= self.env.now:
            self._give_up(run)
            run = self._roster.longest_waited_for()
        self._watched = False
        self._watch()

    def _give_up(self, run: CohortRun) -> None:
        self._roster.lost_in_a_row += 1
        if self._roster.lost_in_a_row > PATIENCE:
            raise ScenarioError(
                f"rounds.policy.give_up_s: {self._give_up_after_s} is not allowed; {PATIENCE} clients in a row were "
                "given up and none delivered; allowed: a time in which some can deliver"
            )
        run.participations.cancel()
        run.given_up_s = self.env.now
        if self._decisions is not None:
            self._decisions.ended.append((run, 0, self.env.now))
        self._roster.give_up(run)
        self._roster.notify()

    def _look_again_later(self) -> bool:
        """Look again when the next idle client becomes available; return whether anything will happen."""
        candidates = self._selection.candidates
        next_s = self._selection.next_candidate_s(self.number)
        # Where there was no candidate, the question for the next instant may have found a draw with one now.
        if next_s > self.env.now or not candidates:
            if next_s < math.inf and next_s != self._looks_again_s:
                self._looks_again_s = next_s
                self._call_last(max(next_s - self.env.now, float(np.spacing(self.env.now))), self._look_again)
        elif not self._roster.in_flight:
            raise SelectorError(
                f"{self._selection.selector.name}.select returned no client in round {self.number} and none is in "
                f"flight, though there are {candidates} candidates"
            )
        return self._roster.in_flight > 0 or next_s < math.inf

    def _look_again(self) -> None:
        # The sum of now and the wait may have been rounded to just before the instant; then there is one more wait.
        self._looks_again_s, self._declined_at = -math.inf, None
        self._roster.notify()

    def _call_last(self, delay_s: float, what: Callable[[], None]) -> None:
        call_when(LastOfInstant(self.env, delay_s), lambda _: what())
