"""Who is asked to take part: candidates, the selector's answer, and as many of it as the server has room for."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.errors import SelectorError
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.oracle import OracleKnowledge
from fedsim.selectors import Answers, Cohort, OracleView, Probe, RoundView, SelectorPort

Asking = Generator[Event, Any, Answers]
Ask = Callable[[Probe, int], Asking]
"""Puts a question to clients, given the draw of their availability."""


class Selection:
    """Selects among those of a coordinator's clients that are there and free.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    selector : asked for cohorts
    member : ids of the coordinator's clients, ascending; None for all of the crowd

    Attributes
    ----------
    candidates : how many there were at the last selection
    looked_s : instant at which their presence was looked at then
    """

    def __init__(
        self, env: Environment, context: ServerContext, selector: SelectorPort, member: NDArray[np.int64] | None = None
    ) -> None:
        self.env, self.context, self.selector = env, context, selector
        self.candidates = 0
        self.looked_s = 0.0
        self._member = member
        clients = context.learner.samples.size
        self._everyone = np.arange(clients, dtype=np.int64) if member is None else member
        self._busy = np.zeros(clients, dtype=bool)
        self._freed: Event | None = None
        self._round_draw = (0, 0)
        self._drawn: dict[str, tuple[int, int]] = {}

    def choose(self, number: int, opens_s: float, wanted: int | None, ask: Ask) -> Generator[Event, Any, Cohort]:
        """Return a round's cohort; nobody where nobody is at work and nobody will ever come again.

        Where everybody who is there is busy, wait until somebody is not. A selector that has a question for clients
        gets their answers first, and then sees who is there after them.

        Parameters
        ----------
        number : round, from 1
        opens_s : instant at which the clients' presence is looked at
        wanted : how many the server asks for; None for as many as the selector chooses
        ask : puts a question to clients

        Raises
        ------
        SelectorError
            If the selector's answer is no cohort of the candidates, or is empty.
        """
        view = yield from self._somebody(number, opens_s, wanted)
        answers = yield from self._answers(number, view, ask)
        if answers is not None:
            view = _with(answers, (yield from self._somebody(number, self.env.now, wanted)))
        if view is None:
            return Cohort(np.zeros(0, dtype=np.int64))
        cohort = self._ask(number, view)
        if not cohort.client.size:
            raise SelectorError(
                f"{self.selector.name}.select returned nobody in round {number}, "
                f"though there are {view.client.size} candidates"
            )
        return cohort

    def _somebody(self, number: int, opens_s: float, wanted: int | None) -> Generator[Event, Any, RoundView | None]:
        """Return what the selector may see, as soon as anybody is there and free; None if nobody ever will be."""
        view = self._view(number, opens_s, wanted)
        while view is None:
            somebody = self._somebody_free(number)
            if somebody is None:
                return None
            yield somebody
            view = self._view(number, self.env.now, wanted)
        return view

    def _answers(self, number: int, view: RoundView | None, ask: Ask) -> Generator[Event, Any, Answers | None]:
        """Return what clients answer to the selector's question; None if it has none."""
        if view is None or self.selector.probe is None:
            return None
        probe = self.selector.probe(view, self.context.streams.generator(*self._luck("probe-selection", number)))
        if probe is None or not probe.client.size:
            return None
        return (yield from ask(probe, self.draw(number)))

    def beside(self, number: Callable[[], int], wanted: int | None, ask: Ask) -> Generator[Event, Any, Cohort | None]:
        """Return a cohort to send beside those that are at work; None as `more` does, without waiting for anybody.

        The number is that of the round at any instant: an asynchronous server's may change while it asks.
        """
        view = self._view(number(), self.env.now, wanted)
        answers = yield from self._answers(number(), view, ask)
        if answers is not None:
            view = _with(answers, self._view(number(), self.env.now, wanted))
        return None if view is None else self._some(number(), view)

    def more(self, number: int, wanted: int | None) -> Cohort | None:
        """Return at most so many clients to send now; None if nobody is there and free, or the selector wants none."""
        view = self._view(number, self.env.now, wanted)
        return None if view is None else self._some(number, view)

    def draw(self, number: int) -> int:
        """Return the draw of availability that holds in a round: its number, or the repeated draw found for it."""
        of_round, draw = self._round_draw
        return draw if of_round == number else number

    def next_start_s(self, number: int) -> float:
        """Return the first instant from now on with an available client in a round, whose draw holds from here on."""
        start_s, draw = self.context.availability.next_s(self.env.now, number)
        self._round_draw = number, draw
        return start_s

    def anybody(self, time_s: float, number: int) -> bool:
        """Return whether a client, idle or not, is available at an instant of a round."""
        return bool(self.context.availability.available(self._everyone, time_s, self.draw(number)).any())

    @property
    def busy(self) -> bool:
        """Whether any of its clients is at work beyond the round in which it was sent."""
        return bool(self._busy.any())

    def sent(self, cohort: Cohort, *, busy: bool) -> None:
        """Take down that a cohort is at work, and whether its members stay busy beyond the round."""
        if busy:
            self._busy[cohort.client] = True
        self.context.knowledge.participations[cohort.client] += 1

    def free(self, client: int) -> None:
        """Take down that a client is done."""
        self._busy[client] = False
        if self._freed is not None:
            self._freed.succeed()
            self._freed = None

    def comes_s(self, number: int) -> float:
        """Return the first instant from now on at which anybody is there and free; `inf` if nobody comes."""
        free = ~self._busy[self._everyone]
        if free.all():
            return self.next_start_s(number)
        return self.context.availability.next_s(self.env.now, self.draw(number), self._everyone[free])[0]

    def _somebody_free(self, number: int) -> Event | None:
        """Return the event of the next client that is done, or that comes and is free; None if there is none."""
        comes_s = self.comes_s(number)
        if comes_s == np.inf and not self.busy:
            return None
        self._freed = self.env.event()
        if comes_s == np.inf:
            return self._freed
        wait_s = max(comes_s - self.env.now, float(np.spacing(self.env.now)))
        return self._freed | self.env.timeout(wait_s)

    def _view(self, number: int, time_s: float, wanted: int | None) -> RoundView | None:
        """Return what the selector may see; None if nobody is there and free."""
        self.looked_s = time_s
        busy = self._busy if self._member is None else self._busy[self._member]
        there = self.context.availability.available(self._everyone, time_s, self.draw(number)) & ~busy
        everybody = bool(there.all())
        self.candidates = there.size if everybody else int(np.count_nonzero(there))
        if not self.candidates:
            return None
        candidates = None if everybody and self._member is None else self._everyone[there]
        view = self.context.knowledge.view(number, self.env.now, candidates, wanted)
        return OracleKnowledge(self.context, view, self.draw(number)).added() if isinstance(view, OracleView) else view

    def _some(self, number: int, view: RoundView) -> Cohort | None:
        """Return the selector's cohort, or None if it wants nobody."""
        cohort = self._ask(number, view)
        return cohort if cohort.client.size else None

    def _ask(self, number: int, view: RoundView) -> Cohort:
        """Return the selector's cohort, cut down at random to what is wanted if it chose more."""
        streams, (name, *keys) = self.context.streams, self._luck("selection", number)
        cohort = self.selector.select(view, streams.generator(name, *keys))
        if view.wanted is None or cohort.client.size <= view.wanted:
            return cohort
        rng = streams.generator("selection-cut", *keys)
        return cohort.part(np.sort(rng.choice(cohort.client.size, view.wanted, replace=False)))

    def _luck(self, name: str, number: int) -> tuple[str, *tuple[int, ...]]:
        """Return a stream and its keys: the round, and how often it was drawn from in that before, if it was."""
        last, times = self._drawn.get(name, (0, 0))
        times = times + 1 if last == number else 0
        self._drawn[name] = number, times
        return (name, number, times) if times else (name, number)


def _with(answers: Answers, view: RoundView | None) -> RoundView | None:
    """Return a view with the answers of those that are candidates now."""
    return None if view is None else replace(view, answers=_still_there(answers, view))


def _still_there(answers: Answers, view: RoundView) -> Answers:
    """Return the answers of those that are candidates now."""
    kept = np.isin(answers.client, view.client)
    return Answers(**{name: column[kept] for name, column in vars(answers).items()})
