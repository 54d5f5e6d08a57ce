"""The selection of a cohort: candidates, the selector's question and cohort, and the size that the server asks for.

Streams: ``selection``, ``selection-cut`` and ``probe-selection`` by round; where a round draws more than once, by
(round, number of draws before).
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import IntArray
from fedsim.errors import SelectorError
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.server.candidates import CandidateSet
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.decisions import Asked, Decisions, Wish
from fedsim.rounds.server.oracle import with_future
from fedsim.rounds.server.roster import Roster
from fedsim.selectors import Answers, Cohort, Probe, RoundView
from fedsim.selectors.candidates import ask

Ask = Callable[[Probe, int], Generator[Event, Any, Answers]]
"""Puts a question to clients, given the draw of their availability."""


class Selection:
    """Selects among the available and idle clients of a server."""

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        clients: Clients,
        roster: Roster,
        decisions: Decisions | None = None,
    ) -> None:
        self.env, self.context, self._roster, self.selector = env, context, roster, context.selector
        self.candidates, self._clients = 0, clients
        self.looked_s = self._looked_at_s = 0.0
        self.limit_s: float | None = None
        self._decisions = decisions
        self._tracker = context.availability.tracker(roster.member)
        self._candidates = CandidateSet(roster.member, whole_crowd=roster.whole_crowd)
        self._round_draw = (0, 0)
        self._questions, self._selections = _Draws(), _Draws()
        self._generators = context.streams.pool("selection")

    def of_round(self, number: int, start_s: float, size: int | None, ask: Ask) -> Generator[Event, Any, Cohort]:
        """Return a round's cohort; an empty one if no client is in flight and none will ever be available again.

        If all available clients are in flight, wait until a client is idle. A selector that has a question for clients
        sees the candidates that are left after the responses.
        """
        view = yield from self._await_candidates(number, start_s, size)
        if self._decisions is not None and view is not None:
            del view
            decided = yield from self._decided(self._decisions, number, lambda: self._looking_again(number, size, ask))
            return Cohort(np.zeros(0, dtype=np.int64)) if decided is None else decided
        shown = [view]
        del view
        return (yield from self._selectors(number, shown, size, ask))

    def _decided(
        self,
        decisions: Decisions,
        number: int,
        selectors: Callable[[], Generator[Event, Any, Cohort | None]],
    ) -> Generator[Event, Any, Cohort | None]:
        """Return the cohort that is decided outside; None for none."""
        while True:
            decisions.number = number
            answer = yield from decisions.wait(self.env, Asked.COHORT)
            if answer is not Wish.SELECTORS:
                return answer
            decisions.selected = yield from selectors()

    def _looking_again(self, number: int, size: int | None, ask: Ask) -> Generator[Event, Any, Cohort]:
        """Return the selector's cohort, where the clock may have moved since the candidates were looked at."""
        found = [(yield from self._await_candidates(number, self._present_s, size))]
        return (yield from self._selectors(number, found, size, ask))

    def _selectors(
        self, number: int, found: list[RoundView | None], size: int | None, ask: Ask
    ) -> Generator[Event, Any, Cohort]:
        """Return the selector's cohort for a view, after its question to clients; see `ask` for the list."""
        view = found.pop()
        answers = None if self.selector.probe is None else (yield from self._answers(number, view, ask))
        if answers is not None:
            view = _with(answers, (yield from self._await_candidates(number, self.env.now, size)))
        if view is None:
            return Cohort(np.zeros(0, dtype=np.int64))
        shown, candidates = [view], view.count
        del view
        cohort = self._cohort(number, shown)
        if not cohort.client.size:
            raise SelectorError(
                f"{self.selector.name}.select returned no client in round {number}, "
                f"though there are {candidates} candidates"
            )
        return cohort

    def after_question(
        self, number: Callable[[], int], size: int | None, ask: Ask
    ) -> Generator[Event, Any, Cohort | None]:
        """Return a cohort to send beside clients in flight, after the selector's question; None as `at_once`."""
        if self._decisions is not None:
            return (yield from self._decided(self._decisions, number(), lambda: self._beside(number, size, ask)))
        return (yield from self._beside(number, size, ask))

    def _beside(self, number: Callable[[], int], size: int | None, ask: Ask) -> Generator[Event, Any, Cohort | None]:
        view = self._view(number(), self.env.now, size)
        answers = yield from self._answers(number(), view, ask)
        if answers is not None:
            view = _with(answers, self._view(number(), self.env.now, size))
        shown = [] if view is None else [view]
        del view
        return self._cohort_or_none(number(), shown)

    def at_once(self, number: int, size: int | None) -> Cohort | None:
        """Return a cohort to send now; None without candidates, or if the selector selects none."""
        view = self._view(number, self.env.now, size)
        shown = [] if view is None else [view]
        del view
        return self._cohort_or_none(number, shown)

    def look(self, number: int, size: int | None = None) -> RoundView | None:
        """Return what the selector would see now; None without candidates. It is no selection."""
        known = self.candidates if self.env.now == self._looked_at_s else None
        view = self._view(number, self._present_s, size)
        self.candidates = self.candidates if known is None else known
        return view

    def any_candidate(self, number: int) -> bool:
        """Return whether there is a candidate for a vacant place of an asynchronous server now."""
        return self._view(number, self.env.now, None) is not None

    @property
    def _present_s(self) -> float:
        """Instant of which the clients' availability holds now: that of the last look, until the clock moves."""
        return self.looked_s if self.env.now == self._looked_at_s else self.env.now

    def draw(self, number: int) -> int:
        """Return the draw of availability that holds in a round: its number, or the repeated draw found for it."""
        if self._round_draw[0] != number:
            # A round that starts while clients are in flight does not wait; its draw holds at once.
            self.next_start_s(number)
        return self._round_draw[1]

    def next_start_s(self, number: int) -> float:
        """Return the first instant from now on with an available client in a round, whose draw holds from here on."""
        if self._tracks_any(self.env.now, number):
            start_s, draw = self.env.now, number
        else:
            start_s, draw = self.context.availability.next_s(self.env.now, number)
        self._round_draw = number, draw
        return start_s

    def any_available(self, time_s: float, number: int) -> bool:
        return self._tracks_any(time_s, self.draw(number))

    def next_candidate_s(self, number: int) -> float:
        """Return the first instant from now on with an available and idle client; inf if there is none."""
        if not self._roster.any_busy:
            return self.next_start_s(number)
        draw = self.draw(number)
        self._update(self.env.now, draw)
        if self._candidates.count:
            return self.env.now
        return self.context.availability.next_s(self.env.now, draw, self._roster.member[self._roster.idle])[0]

    def _await_candidates(
        self, number: int, time_s: float, size: int | None
    ) -> Generator[Event, Any, RoundView | None]:
        """Return the selector's view as soon as there is a candidate; None if there will never be one."""
        view = self._view(number, time_s, size)
        while view is None:
            next_candidate = self._next_candidate(number)
            if next_candidate is None:
                return None
            yield next_candidate
            view = self._view(number, self.env.now, size)
        return view

    def _next_candidate(self, number: int) -> Event | None:
        """Return the event of the next candidate: a client becomes idle, or available; None if there is none."""
        next_s = self.next_candidate_s(number)
        if next_s == np.inf:
            return self._roster.next_idle() if self._roster.any_busy else None
        idle = self._roster.next_idle()
        return idle | self.env.timeout(max(next_s - self.env.now, float(np.spacing(self.env.now))))

    def _answers(self, number: int, view: RoundView | None, ask: Ask) -> Generator[Event, Any, Answers | None]:
        """Return what clients respond to the selector's question; None if it has none."""
        if view is None or self.selector.probe is None:
            return None
        rng = self.context.streams.generator("probe-selection", *self._questions.keys(number))
        probe = self.selector.probe(view, rng)
        if probe is None or not probe.client.size:
            return None
        return (yield from ask(probe, self.draw(number)))

    def _view(self, number: int, time_s: float, size: int | None) -> RoundView | None:
        """Return the selector's view; None without candidates."""
        self.looked_s, self._looked_at_s = time_s, self.env.now
        draw, candidates = self.draw(number), self._candidates
        self._update(time_s, draw)
        self.candidates = candidates.count
        if not self.candidates:
            return None
        knowledge, now_s, limit_s = self.context.knowledge, self.env.now, self.limit_s
        if self.selector.oracle:
            view = knowledge.view(number, now_s, candidates.everyone(), size, limit_s)
            return with_future(self.context, self._clients, view, draw)
        if candidates.complete and self._roster.whole_crowd:
            return knowledge.view(number, now_s, None, size, limit_s)
        return knowledge.view_of(number, now_s, candidates, size, limit_s)

    def _tracks_any(self, time_s: float, draw: int) -> bool:
        position = self._tracker.update(time_s, draw)
        if position.size:
            self._come_or_gone(position)
        return self._tracker.count > 0

    def _update(self, time_s: float, draw: int) -> None:
        """Bring the candidates up to an instant of a draw: clients have come or gone, or become busy or idle."""
        for position in (self._tracker.update(time_s, draw), self._roster.take_turned()):
            if position.size:
                self._come_or_gone(position)

    def _come_or_gone(self, position: IntArray) -> None:
        self._candidates.put(position, self._tracker.available[position] & ~self._roster.busy(position))

    def _cohort_or_none(self, number: int, shown: list[RoundView]) -> Cohort | None:
        """Return the selector's cohort; None without a view, or if it is empty."""
        if not shown:
            return None
        cohort = self._cohort(number, shown)
        return cohort if cohort.client.size else None

    def _cohort(self, number: int, shown: list[RoundView]) -> Cohort:
        """Return the selector's cohort, cut at random to the size asked for if it is larger; see `ask` for the list."""
        keys = self._selections.keys(number)
        wanted = shown[0].wanted
        (rng,) = self._generators.generators([keys])
        cohort = ask(self.selector.select, shown, rng)
        if wanted is None or cohort.client.size <= wanted:
            return cohort
        rng = self.context.streams.generator("selection-cut", *keys)
        return cohort.part(np.sort(rng.choice(cohort.client.size, wanted, replace=False)))


class _Draws:
    """Draws from one stream of a server, which may draw several times in a round."""

    def __init__(self) -> None:
        self._last = self._times = 0

    def keys(self, number: int) -> tuple[int, ...]:
        """Return the keys of the next draw: the round, and for repeated draws of that round how many came before."""
        self._times = self._times + 1 if self._last == number else 0
        self._last = number
        return (number, self._times) if self._times else (number,)


def _with(answers: Answers, view: RoundView | None) -> RoundView | None:
    """Return a view with the responses of clients that are candidates now."""
    return None if view is None else replace(view, answers=answers_of(answers, view))


def answers_of(answers: Answers, view: RoundView) -> Answers:
    """Return the responses of clients that are candidates now."""
    kept = np.isin(answers.client, view.client)
    columns = {name: column for name, column in vars(answers).items() if column is not None}
    return Answers(**{name: column[kept] for name, column in columns.items()})
