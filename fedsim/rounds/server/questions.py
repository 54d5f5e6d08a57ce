"""A question to clients before the selection, and what they return, both with their transfers on the clock.

Stream: ``probe-selection`` by round; where a round draws more than once, by (round, number of draws before).
"""

import math
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, cast

import numpy as np
from simpy import Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.learning import Model, Release
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.effects.contract import AskingServer, Effect, Effects
from fedsim.rounds.secure.exchange import SecureExchange
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.crowd import Draws
from fedsim.selectors import Answers, Probe, RandomizedResponse, RoundView

PROBE_DRAWS: Final = 2**40
"""Added to the round it makes the draw of a probe, so that the participation that follows has other random times.

Added once more for each earlier probe of an asynchronous server in the same round.
"""

_ONE_ANSWER: Final = PROBE_DRAWS + 1
"""The draw of a client's only statement of its number of samples, in whichever round it is asked."""

_WITHOUT_WORK: Final = ("resources", "samples")
"""Questions that take a client no work."""


class Questions(Effect):
    """Puts the questions of a server's selector.

    A probe takes the phases of a participation: a message down, work and a message up, each of them timed, over links
    that may be shared, and paid for by batteries. A client that leaves in between does not respond. The server waits
    for the probe's time, or until each client has responded or is lost, which the server notices on an open connection.
    """

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self._draws = Draws()
        self._number = self._before = self._draw = 0

    def before_selection(self, server: AskingServer, view: RoundView) -> Generator[Event, Any, Answers | None]:
        """Return what clients respond to the selector's question; None if it has none."""
        put, number = self.context.selector.probe, server.number
        rng = self.context.streams.generator("probe-selection", *self._draws.keys(number))
        probe = None if put is None else put(view, rng)
        if probe is None or not probe.client.size:
            return None
        return (yield from self._ask(server, number, server.model, probe))

    def _ask(self, server: AskingServer, number: int, model: Model, probe: Probe) -> Generator[Event, Any, Answers]:
        """Ask clients, and return their numbers at the end of the server's wait."""
        self._before = self._before + 1 if number == self._number else 0
        self._number = number
        context, client, draw = self.context, probe.client, PROBE_DRAWS * (1 + self._before) + number
        self._draw = draw
        workload, name = context.clients.workload, context.selector.name
        asks_loss = probe.asks == "loss"
        samples = self._samples(probe)
        compute_s = None if probe.asks in _WITHOUT_WORK else context.clients.compute.duration_s(client, draw, samples)
        bits = workload.down_bits if probe.down_bits is None else probe.down_bits, probe.up_bits
        plan = server.message(client, draw, bits, samples, compute_s)
        plan.why_all = "the selector's question waits for every answer; choose a wait_s"
        releases, sizes, accountant = dict[int, Release](), dict[int, float](), context.accountant
        # The expected seconds of work and upload disclose nothing of a client's data.
        if asks_loss and accountant is not None and not context.selector.asks_losses:
            raise SelectorError(
                f"{name}.probe asks for losses in a run with privacy", f"allowed: only with {name}.asks_losses = True"
            )

        def charge(i: int) -> None:
            releases[i] = Release(*cast(PrivacyAccountant, accountant).charge_numbers(int(client[i])))

        plan.on_upload = charge if asks_loss and accountant is not None and accountant.numbers_share > 0 else None
        if probe.response is not None and accountant is not None:
            plan.on_upload = self._sizes_charged(probe, accountant, sizes)
        rows = server.rows
        start_s = server.start_s

        def record(asked: Participations) -> None:
            epsilon = np.zeros(client.size)
            epsilon[list(releases)] = [release.epsilon for release in releases.values()]
            epsilon[list(sizes)] = list(sizes.values())
            rows.add_message("probes", number, asked, epsilon=epsilon)

        def in_vain(unanswered: int) -> str:
            return (
                f"selector: the question of {name} in round {server.number}, at {start_s:.9g} s, waits for ever: "
                f"{unanswered} of the clients asked can never answer, since their links carry nothing; allowed: a "
                "wait_s for answers, or faster links"
            )

        arrived = yield from server.ask(plan, record, probe.wait_s, in_vain)
        return self._answers(probe, number, model, client, arrived, releases)

    def _sizes_charged(
        self, probe: Probe, accountant: PrivacyAccountant, sizes: dict[int, float]
    ) -> Callable[[int], None] | None:
        """Return what charges a client for the number of its samples, and notes the epsilon by its position.

        None where the selector states that numbers are exact: they leak without bound.
        """
        selector, client = self.context.selector, probe.client
        cost = 0.0 if probe.response is None or math.isinf(probe.response.epsilon) else probe.response.epsilon
        if not selector.asks_sizes or not math.isclose(selector.sizes_cost, cost):
            raise SelectorError(
                f"{selector.name}.probe asks for numbers of samples at {cost!r} epsilon in a run with privacy",
                f"allowed: only with {selector.name}.asks_sizes = True and {selector.name}.sizes_cost = {cost!r}",
            )

        def charge(i: int) -> None:
            sizes[i] = accountant.charge_size(int(client[i]), cost, once=selector.sizes_paid_once)

        return charge if cost else None

    def _samples(self, probe: Probe) -> FloatArray:
        """Return the samples that each client passes through its model in response."""
        context, client = self.context, probe.client
        if probe.asks == "loss":
            return context.learner.probe_samples(client, probe.samples)
        if probe.asks in _WITHOUT_WORK:
            return np.zeros(client.size)
        if why := why_no_norms(context):
            name = context.selector.name
            raise SelectorError(f"{name}.probe asks for norms of updates {why}", "allowed: losses or resources")
        return context.clients.workload.samples[client]

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
        if probe.response is not None:
            return Answers(
                client=client,
                loss=unknown,
                compute_s=unknown,
                uplink_s=unknown,
                samples=self._sizes_told(client, probe.response),
            )
        workload = context.clients.workload
        compute_s = context.clients.compute.expected_s(workload.samples)[client]
        uplink_s = context.clients.links.expected_uplink_s(workload.up_bits)[client]
        return Answers(client=client, loss=unknown, compute_s=compute_s, uplink_s=uplink_s)

    def _sizes_told(self, client: IntArray, response: RandomizedResponse) -> IntArray:
        """Return the numbers of samples that clients state; 1 where no client has data.

        What decides client k's statement is drawn from the streams ``size-told`` and ``size-drawn`` for (k, draw).
        Where all statements of a client cost one, the draw is the same in all rounds: a client that is asked again,
        because its first response was lost on the way, says the same again, which discloses nothing more. Statements
        that nothing links are drawn anew all the same.
        """
        streams, samples = self.context.clients.streams, self.context.learner.samples
        selector = self.context.selector
        draw = _ONE_ANSWER if selector.sizes_paid_once and not selector.sizes_unlinked else self._draw
        uniform = [streams.uniform(name, client, draw) for name in ("size-told", "size-drawn")]
        return response.answers(samples[client] if samples.any() else np.ones_like(client), *uniform)


def why_no_norms(context: ServerContext) -> str:
    """Return why clients cannot be asked for the norms of their updates; empty if they can."""
    if context.accountant is not None:
        return "in a run with privacy: norms of updates are not private"
    if context.learner.remembers:
        return "where an update depends on those before it: it would be made twice"
    if context.rules.policy.traits.concurrency is not None:
        return "at an asynchronous server, whose model moves on meanwhile"
    return ""


def exchanges_of(context: ServerContext, effects: Effects) -> Effects:
    """Return those of the run, then the selector's questions and the steps of secure aggregation."""
    own = [Questions(context)] if context.selector.probe is not None else []
    return Effects(
        [*effects, *own, *([] if context.protection.secure is None else [SecureExchange(context.protection.secure)])]
    )
