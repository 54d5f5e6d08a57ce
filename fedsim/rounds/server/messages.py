"""Messages of a server beside participations: each is a plan of other sizes, and takes the same ways as a model."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import LastOfInstant, Waiting, first_of
from fedsim.per_client import Values
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.effects.contract import Effect
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.server.crowd import Crowd
from fedsim.rounds.server.rows import Rows


def _no_row(_: Participations) -> None:
    """Leave a message without a row."""


class Messages:
    """What effects ask of a server: links, media, losses and energy hold for messages as for participations."""

    env: Environment
    clients: Clients
    crowd: Crowd
    rows: Rows
    number: int
    _sending: Sequence[Effect]
    _question: tuple[Participations, Callable[[int], str]] | None = None

    def message(
        self,
        client: IntArray,
        draw: int,
        bits: tuple[Values, Values],
        samples: FloatArray | None = None,
        compute_s: FloatArray | None = None,
    ) -> Plan:
        none = np.zeros(client.size)
        return Plan(
            client,
            self.number,
            draw,
            Look(self.env.now, self.crowd.draw(self.number)),
            bits=bits,
            samples=none if samples is None else samples,
            compute_s=none if compute_s is None else compute_s,
        )

    def ask(
        self,
        plan: Plan,
        record: Callable[[Participations], None] = _no_row,
        wait_s: float | None = None,
        in_vain: Callable[[int], str] = "{} clients can never respond".format,
    ) -> Generator[Event, Any, IntArray]:
        """Do as `AskingServer.ask`, and record its end; ``in_vain`` says why none comes, given how many are silent."""
        plan.update, plan.waits_for_all = False, wait_s is None
        over, running = self.env.event(), plan.client.size

        def ended(*_: object) -> None:
            nonlocal running
            running -= 1
            if not running:
                over.succeed()

        if wait_s is None and plan.on_upload is None and self.clients.none_is_lost:
            # The last response is the one event that counts.
            asked = Participations(self.clients, plan)
            over = asked.delivered(plan.client.size)
        else:
            asked = Participations(self.clients, plan, ended)
        self._question = asked, in_vain
        try:
            if wait_s is None:
                yield over
            else:
                yield from first_of(self.env, over, LastOfInstant(self.env, wait_s))
        except Interrupt:
            yield from self._close_question(asked, record)
            raise
        yield from self._close_question(asked, record)
        return np.flatnonzero(asked.arrived)

    def sent(self, plan: Plan, members: IntArray, numbers: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        for effect in self._sending:
            numbers = effect.sends(plan, members, numbers)
        return numbers

    def _close_question(self, asked: Participations, record: Callable[[Participations], None]) -> Waiting:
        """Cancel clients that have not responded, and record what the question has cost."""
        if asked.cancel():
            yield self.env.timeout(0)
        self._question = None
        asked.settle()
        record(asked)

    def unanswered(self) -> str:
        """Return why the present question waits, if no client is in flight any more; empty without one."""
        if self._question is None:
            return ""
        asked, why = self._question
        return why(int(np.count_nonzero(~asked.ended)))
