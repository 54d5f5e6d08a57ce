"""Whom a server has sent and not heard of since, and how an asynchronous one keeps so many at work.

An asynchronous server whose selector asks clients first has one question in the air at a time. Updates go on arriving
and being merged meanwhile; places that fall vacant wait for the next question.
"""

import math
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt, Process

from fedsim.clock import LastOfInstant, tie_s
from fedsim.errors import ScenarioError, SelectorError
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.server.selection import Ask, Selection
from fedsim.selectors import Cohort

PATIENCE: Final = 10_000
"""After so many clients in a row that were given up, nobody is expected to deliver ever."""

Send = Callable[[int, Cohort, int], CohortRun]
"""Sends a cohort in a round, with the luck of a turn."""


class Roster:
    """The clients that a server waits for, as far as it knows: lost ones are among them.

    Parameters
    ----------
    env : Environment
    choice : selects among the clients that are there and free
    send : sends one client
    give_up_after_s : longest wait of an asynchronous server for one client; inf for no limit

    Attributes
    ----------
    number : of the server's round
    outstanding : how many they are
    given_up : cohorts of one that the server stopped waiting for since the list was last emptied
    """

    def __init__(self, env: Environment, choice: Selection, send: Send, give_up_after_s: float) -> None:
        self.env, self._choice, self._send, self._give_up_after_s = env, choice, send, give_up_after_s
        clients = choice.context.learner.samples.size
        self._awaited = np.full(clients, -1)
        self.number = self.outstanding = 0
        self.given_up: list[CohortRun] = []
        self._in_vain = 0
        self._changed: Event = env.event()
        self._looks_again_s = -math.inf
        self._question: Process | None = None
        self._in_vain_asked = False

    def sent(self, flight: CohortRun) -> None:
        """Take down that a cohort is on its way."""
        client = flight.cohort.client
        self.outstanding += int(np.count_nonzero(self._awaited[client] < 0))
        self._awaited[client] = flight.order

    def heard(self, client: int, flight: CohortRun) -> None:
        """Take down that a client has delivered that was sent with a cohort."""
        self._in_vain = 0
        self.dismiss(client, flight)

    def dismiss(self, client: int, flight: CohortRun) -> None:
        """Wait no longer for a client that was sent with a cohort."""
        if self._awaited[client] == flight.order:
            self._awaited[client] = -1
            self.outstanding -= 1
            self._in_vain_asked = False

    def forget(self) -> None:
        """Wait for nobody any more; they are free."""
        for client in np.flatnonzero(self._awaited >= 0).tolist():
            self._choice.free(client)
        self._awaited[:] = -1
        self.outstanding = 0
        self.given_up.clear()

    def fill(self, concurrency: int, ask: Ask) -> bool:
        """Send clients until so many are at work or nobody is free; return whether anybody is or will be there.

        If the selector asks clients first, they are sent when it has been answered.

        Parameters
        ----------
        concurrency : how many shall be at work
        ask : puts a question to clients

        Raises
        ------
        SelectorError
            If nobody is at work and the selector wants none of those that are there: nothing would ever happen.
        """
        if self._choice.selector.probe is not None:
            return self._fill_after_question(concurrency, ask)
        while self.outstanding < concurrency:
            cohort = self._choice.more(self.number, concurrency - self.outstanding)
            if cohort is None:
                return self._look_again_later()
            self._send_each(cohort)
        return True

    def stop_asking(self) -> Generator[Event, Any, None]:
        """Break off the question that is in the air, if there is one."""
        if self._question is not None and self._question.is_alive:
            self._question.interrupt()
            yield self._question
        self._question, self._in_vain_asked = None, False

    def change(self) -> Event:
        """Return the event that is triggered when an update arrives, a client is given up or somebody comes."""
        if self._changed.triggered:
            self._changed = self.env.event()
        return self._changed

    def notify(self) -> None:
        """Trigger that event."""
        if not self._changed.triggered:
            self._changed.succeed()

    def _fill_after_question(self, concurrency: int, ask: Ask) -> bool:
        """Put a question if places are vacant; return whether anything will happen."""
        asking = self._question is not None and self._question.is_alive
        if asking or self.outstanding >= concurrency:
            return True
        if self._in_vain_asked:
            self._in_vain_asked = False
            return self._look_again_later()
        self._question = self.env.process(self._ask(concurrency, ask))
        return True

    def _ask(self, concurrency: int, ask: Ask) -> Generator[Event, Any, None]:
        """Put a question and send whom the selector wants then."""
        try:
            cohort = yield from self._choice.beside(lambda: self.number, concurrency - self.outstanding, ask)
        except Interrupt:
            return
        self._in_vain_asked = cohort is None
        if cohort is not None:
            self._send_each(cohort)
        self.notify()

    def _send_each(self, cohort: Cohort) -> None:
        """Send clients one by one, each with the luck of its own next turn, however often that comes in a round."""
        for i in range(cohort.client.size):
            self._send_one(cohort.part(np.array([i])))

    def _send_one(self, cohort: Cohort) -> None:
        turn = int(self._choice.context.knowledge.participations[cohort.client[0]]) + 1
        flight = self._send(self.number, cohort, turn)
        if self._give_up_after_s < math.inf:
            self._call_after(self._give_up_after_s, partial(self._give_up, flight))

    def _give_up(self, flight: CohortRun) -> None:
        """Stop waiting for a client that has not delivered, and let another take its place."""
        client = int(flight.cohort.client[0])
        if self._awaited[client] == flight.order:
            if tied_s := tie_s(self.env):
                self._call_after(tied_s, partial(self._give_up, flight))
                return
            self._in_vain += 1
            if self._in_vain > PATIENCE:
                raise ScenarioError(
                    f"rounds.policy.give_up_s: {self._give_up_after_s} is not allowed; {PATIENCE} clients in a row "
                    "were given up and none delivered; allowed: a time in which some can deliver"
                )
            flight.participations.cancel()
            flight.given_up_s = self.env.now
            self.given_up.append(flight)
            self.dismiss(client, flight)
            self._choice.free(client)
            self.notify()

    def _look_again_later(self) -> bool:
        """Look again when the next client comes that is free; return whether anything will happen."""
        comes_s = self._choice.comes_s(self.number)
        # Where nobody was there, asking may have tossed anew, and somebody is now.
        if comes_s > self.env.now or not self._choice.candidates:
            if comes_s < math.inf and comes_s != self._looks_again_s:
                self._looks_again_s = comes_s
                self._call_after(max(comes_s - self.env.now, float(np.spacing(self.env.now))), self._look_again)
        elif not self.outstanding:
            raise SelectorError(
                f"{self._choice.selector.name}.select returned nobody in round {self.number} and nobody is "
                f"at work, though there are {self._choice.candidates} candidates"
            )
        return self.outstanding > 0 or comes_s < math.inf

    def _look_again(self) -> None:
        # The sum of now and the wait may have rounded to just before that instant; then it is waited for once more.
        self._looks_again_s, self._in_vain_asked = -math.inf, False
        self.notify()

    def _call_after(self, delay_s: float, what: Callable[[], None]) -> None:
        """Call a function after whatever else happens at an instant."""
        timer = LastOfInstant(self.env, delay_s)
        # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
        if timer.callbacks is not None:
            timer.callbacks.append(lambda _: what())
