"""A question to clients before the selection, and their answers, both with their transfers on the clock."""

from collections.abc import Generator, Mapping
from typing import Any, Final, cast

import numpy as np
from simpy import Environment, Event, Interrupt

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import LastOfInstant, first_of
from fedsim.errors import SelectorError
from fedsim.learning import Model, Release
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.clients.participation import Participations
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.round_log import RoundLog
from fedsim.selectors import Answers, Probe

PROBE_DRAWS: Final = 2**40
"""Added to the round it makes the draw of a probe, so that the participation that follows has other random times.

Added once more for each earlier probe of an asynchronous server in the same round.
"""


class Prober:
    """Puts the questions of a coordinator's selector.

    A probe takes the phases of a participation: a message down, work and a message up, each of them timed, over links
    that may be shared, and paid for by batteries. A client that leaves in between does not answer. The server waits for
    the probe's time, or until each client has answered or is lost, which the server notices on an open connection.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    dispatcher : Dispatcher
    log : records what the questions cost

    Attributes
    ----------
    unanswered : number of clients that have not answered the present question
    """

    def __init__(self, env: Environment, context: ServerContext, dispatcher: Dispatcher, log: RoundLog) -> None:
        self.env, self.context, self._dispatcher, self._log = env, context, dispatcher, log
        self._number = self._before = self.unanswered = 0

    def ask(self, number: int, model: Model, probe: Probe, availability_draw: int) -> Generator[Event, Any, Answers]:
        """Ask clients at the beginning of a round, and return the answers at the end of the server's wait.

        Parameters
        ----------
        number : of the round
        model : whose loss is asked for
        probe : Probe
        availability_draw : draw of availability that holds in the round
        """
        self._before = self._before + 1 if number == self._number else 0
        self._number = number
        context, client, draw = self.context, probe.client, PROBE_DRAWS * (1 + self._before) + number
        workload = context.clients.workload
        asks_loss = probe.asks == "loss"
        samples = self._samples(probe)
        assignment = Assignment(
            client=client,
            number=number,
            draw=draw,
            availability_s=self.env.now,
            availability_draw=availability_draw,
            bits=(workload.down_bits if probe.down_bits is None else probe.down_bits, probe.up_bits),
            samples=samples,
            compute_s=(
                np.zeros(client.size)
                if probe.asks == "resources"
                else context.clients.compute.duration_s(client, draw, samples)
            ),
            waits_for_all=probe.wait_s is None,
            why_all="the selector's question waits for every answer; choose a wait_s",
        )
        over, running = self.env.event(), client.size
        self.unanswered = running

        def ended(*_: object) -> None:
            nonlocal running
            running -= 1
            self.unanswered = running
            if not running:
                over.succeed()

        sent, releases = self._log.sent, dict[int, Release]()
        accountant = context.clients.accountant
        # The expected seconds of work and upload tell nothing of a client's data.
        if asks_loss and accountant is not None and not context.selector.asks_losses:
            name = context.selector.name
            raise SelectorError(
                f"{name}.probe asks for losses in a run with privacy", f"allowed: only with {name}.asks_losses = True"
            )
        private = asks_loss and accountant is not None and accountant.numbers_share > 0

        def charge(i: int) -> None:
            releases[i] = Release(*cast(PrivacyAccountant, accountant).charge_numbers(int(client[i])))

        asked = self._dispatcher.send(assignment, np.ones(client.size), charge if private else None, ended)
        try:
            if probe.wait_s is None:
                yield over
            else:
                yield from first_of(self.env, over, LastOfInstant(self.env, probe.wait_s))
        except Interrupt:
            yield from self._close(number, sent, client, asked, releases)
            raise
        yield from self._close(number, sent, client, asked, releases)
        return self._answers(probe, number, model, client, np.flatnonzero(asked.arrived), releases)

    def _samples(self, probe: Probe) -> FloatArray:
        """Return the samples that each client passes through its model for an answer, shape (q,)."""
        context, client = self.context, probe.client
        if probe.asks == "loss":
            return context.learner.probe_samples(client, probe.samples)
        if probe.asks == "resources":
            return np.zeros(client.size)
        if why := why_no_norms(context):
            name = context.selector.name
            raise SelectorError(f"{name}.probe asks for norms of updates {why}", "allowed: losses or resources")
        return context.clients.workload.samples[client]

    def _close(
        self, number: int, sent: int, client: IntArray, asked: Participations, releases: Mapping[int, Release]
    ) -> Generator[Event, Any, None]:
        """Cancel clients that have not answered, and record what the question has cost."""
        if asked.cancel():
            yield self.env.timeout(0)
        self.unanswered = 0
        self._dispatcher.finalize(client, asked)
        epsilon = np.zeros(client.size)
        epsilon[list(releases)] = [release.epsilon for release in releases.values()]
        self._log.probed(number, sent, asked.records(client), epsilon)

    def _answers(
        self,
        probe: Probe,
        number: int,
        model: Model,
        asked: IntArray,
        arrived: IntArray,
        releases: Mapping[int, Release],
    ) -> Answers:
        context, client, unknown = self.context, asked[arrived], np.full(arrived.size, np.nan)
        if probe.asks == "loss":
            loss = context.learner.probe_losses(model, client, probe.samples, number)
            if releases:
                made = [releases[i] for i in arrived.tolist()]
                loss = context.sent_numbers(client, made, {"loss": loss})["loss"]
            return Answers(client=client, loss=loss, compute_s=unknown, uplink_s=unknown)
        if probe.asks == "update_norm":
            # The cohort's updates are these: nothing is computed twice.
            updates = context.learner.updates(model, client)
            norm = context.learner.measure(updates, ("update_norm",)).get("update_norm", unknown)
            return Answers(client=client, loss=unknown, compute_s=unknown, uplink_s=unknown, update_norm=norm)
        workload = context.clients.workload
        compute_s = context.clients.compute.expected_s(workload.samples)[client]
        uplink_s = context.clients.links.expected_uplink_s(workload.up_bits)[client]
        return Answers(client=client, loss=unknown, compute_s=compute_s, uplink_s=uplink_s)


def why_no_norms(context: ServerContext) -> str:
    """Return why clients cannot be asked for the norms of their updates; empty if they can."""
    if context.clients.accountant is not None:
        return "in a run with privacy: norms of updates are not private"
    if context.learner.remembers:
        return "where an update depends on those before it: it would be made twice"
    if context.policy.traits.concurrency is not None:
        return "at an asynchronous server, whose model moves on meanwhile"
    return ""
