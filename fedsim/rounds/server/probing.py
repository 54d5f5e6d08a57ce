"""A question to clients before the selection, and their answers: both on the air, and on the clock."""

from collections.abc import Generator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt

from fedsim.clock import LastOfInstant, first_of
from fedsim.learning import Model
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.clients.participation import Participations
from fedsim.rounds.clients.record import ParticipationRecords
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.round_log import RoundLog
from fedsim.selectors import Answers, Probe

PROBE_TURNS: Final = 2**40
"""Added to the round it makes the turn of a probe, whose luck is not that of the participation that follows.

Added once more for each probe of an asynchronous server in the same round before.
"""


class Prober:
    """Puts the questions of a coordinator's selector.

    The clients that are asked answer as they take part: a message down, work, a message up, each of them timed, over
    links that may be shared, and paid for by batteries. Who leaves in between does not answer. The server waits as long
    as the probe says, or until everybody has answered or is lost, which shows where a connection stays open.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    dispatcher : Dispatcher
    log : records what the questions cost
    """

    def __init__(self, env: Environment, context: ServerContext, dispatcher: Dispatcher, log: RoundLog) -> None:
        self.env, self.context, self._dispatcher, self._log = env, context, dispatcher, log
        self._number = self._before = 0

    def ask(self, number: int, model: Model, probe: Probe, availability_draw: int) -> Generator[Event, Any, Answers]:
        """Ask clients at the beginning of a round, and return what has arrived when the server stops waiting.

        The question's luck is not that of the participation that follows.

        Parameters
        ----------
        number : of the round
        model : whose loss is asked for
        probe : Probe
        availability_draw : draw of availability that holds in the round
        """
        self._before = self._before + 1 if number == self._number else 0
        self._number = number
        context, client, turn = self.context, probe.client, PROBE_TURNS * (1 + self._before) + number
        asks_loss = probe.asks == "loss"
        samples = context.learner.probe_samples(client, probe.samples) if asks_loss else np.zeros(client.size)
        assignment = Assignment(
            client=client,
            number=number,
            draw=turn,
            availability_s=self.env.now,
            availability_draw=availability_draw,
            bits=(context.clients.workload.down_bits if probe.down_bits is None else probe.down_bits, probe.up_bits),
            samples=samples,
            compute_s=context.clients.compute.duration_s(client, turn, samples) if asks_loss else np.zeros(client.size),
            waits_for_all=probe.wait_s is None,
        )
        over, running = self.env.event(), client.size

        def ended(*_: object) -> None:
            nonlocal running
            running -= 1
            if not running:
                over.succeed()

        there = self._dispatcher.send(assignment, np.ones(client.size), on_end=ended)
        try:
            if probe.wait_s is None:
                yield over
            else:
                yield from first_of(self.env, over, LastOfInstant(self.env, probe.wait_s))
        except Interrupt:
            yield from self._close(number, client, there)
            raise
        yield from self._close(number, client, there)
        return self._answers(probe, number, model, client[there.arrived])

    def _close(self, number: int, client: NDArray[np.int64], there: Participations) -> Generator[Event, Any, None]:
        """Cut off whoever has not answered, and take down what the question has cost."""
        if there.cancel():
            yield self.env.timeout(0)
        self._dispatcher.finalize(there)
        self._log.probed(number, ParticipationRecords.of(there, client, np.arange(client.size)))

    def _answers(self, probe: Probe, number: int, model: Model, client: NDArray[np.int64]) -> Answers:
        context, unknown = self.context, np.full(client.size, np.nan)
        if probe.asks == "loss":
            loss = context.learner.probe_losses(model, client, probe.samples, number)
            return Answers(client=client, loss=loss, compute_s=unknown, uplink_s=unknown)
        everyone = np.arange(context.learner.samples.size, dtype=np.int64)
        compute_s = context.clients.compute.expected_s(context.clients.workload.samples(everyone))[client]
        uplink_s = context.clients.links.expected_uplink_s(context.clients.workload.up_bits)[client]
        return Answers(client=client, loss=unknown, compute_s=compute_s, uplink_s=uplink_s)
