"""A question to clients before the selection, and what they return, both with their transfers on the clock.

Stream: ``probe-selection`` by round; where a round draws more than once, by (round, number of draws before).
"""

from collections.abc import Generator
from typing import Any, Final

import numpy as np
from simpy import Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.learning import Learner, Model
from fedsim.rounds.effects.contract import BesidePhases, Effect
from fedsim.rounds.effects.server_port import AskingServer
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run
from fedsim.selectors import Answers, Probe, RandomizedResponse, RoundView
from fedsim.streams import Draws

PROBE_DRAWS: Final = 2**40
"""Added to the round it makes the draw of a probe, so that the participation that follows has other random times.

Added once more for each earlier probe of an asynchronous server in the same round.
"""

_ONE_ANSWER: Final = PROBE_DRAWS + 1
"""The draw of a client's only statement of its number of samples, in whichever round it is asked."""

_WITHOUT_WORK: Final = ("resources", "samples")
"""Questions that take a client no work."""


class Questions(BesidePhases):
    """Puts the questions of a server's selector.

    A probe takes the phases of a participation. The server waits for the probe's time, or until each client has
    responded or is lost, which the server notices on an open connection.
    """

    def __init__(self, *, private: bool) -> None:
        self._private, self._draws = private, Draws()
        self._number = self._before = 0

    def begin(self, run: Run) -> None:
        self._run = run

    def at_edge(self, member: IntArray) -> Effect:
        mine = Questions(private=self._private)
        mine.begin(self._run)
        return mine

    def before_selection(self, server: AskingServer, view: RoundView) -> Generator[Event, Any, Answers | None]:
        """Return what clients respond to the selector's question; None if it has none."""
        put = server.selector.probe
        rng = server.streams.generator("probe-selection", *self._draws.keys(server.number))
        probe = None if put is None else put(view, rng)
        if probe is None or not probe.client.size:
            return None
        return (yield from self._ask(server, server.number, server.model, probe))

    def _ask(self, server: AskingServer, number: int, model: Model, probe: Probe) -> Generator[Event, Any, Answers]:
        """Ask clients, and return their numbers at the end of the server's wait."""
        self._before = self._before + 1 if number == self._number else 0
        self._number = number
        client, draw, run = probe.client, PROBE_DRAWS * (1 + self._before) + number, self._run
        samples = self._samples(server, probe)
        compute_s = None if probe.asks in _WITHOUT_WORK else run.compute.duration_s(client, draw, samples)
        bits = run.workload.down_bits if probe.down_bits is None else probe.down_bits, probe.up_bits
        plan = server.message(client, draw, bits, samples, compute_s)
        plan.question, plan.why_all = probe, "the selector's question waits for every answer; choose a wait_s"
        rows, name, start_s = server.rows, server.selector.name, server.start_s

        def record(asked: Any) -> None:
            rows.add_message("probes", number, asked)

        def in_vain(unanswered: int) -> str:
            return (
                f"selector: the question of {name} in round {server.number}, at {start_s:.9g} s, waits for ever: "
                f"{unanswered} of the clients asked can never answer, since their links carry nothing; allowed: a "
                "wait_s for answers, or faster links"
            )

        arrived = yield from server.ask(plan, record, probe.wait_s, in_vain)
        return self._answers(server, probe, model, plan, arrived)

    def _samples(self, server: AskingServer, probe: Probe) -> FloatArray:
        """Return the samples that each client passes through its model in response."""
        if probe.asks == "loss":
            return server.learner.probe_samples(probe.client, probe.samples)
        if probe.asks in _WITHOUT_WORK:
            return np.zeros(probe.client.size)
        if why := why_no_norms(server.learner, private=self._private, asynchronous=server.asynchronous):
            name = server.selector.name
            raise SelectorError(f"{name}.probe asks for norms of updates {why}", "allowed: losses or resources")
        return self._run.workload.samples[probe.client]

    def _answers(self, server: AskingServer, probe: Probe, model: Model, plan: Plan, arrived: IntArray) -> Answers:
        learner, workload, client = server.learner, self._run.workload, plan.client[arrived]
        found: dict[str, Any] = {name: np.full(arrived.size, np.nan) for name in ("loss", "compute_s", "uplink_s")}
        if probe.asks == "loss":
            loss = learner.probe_losses(model, client, probe.samples, plan.number)
            found |= server.sent(plan, arrived, {"loss": loss})
        elif probe.asks == "update_norm":
            # The cohort's updates are these: nothing is computed twice.
            measured = learner.measure(learner.updates(model, client), ("update_norm",))
            found["update_norm"] = measured.get("update_norm", np.full(arrived.size, np.nan))
        elif probe.response is not None:
            found["samples"] = self._sizes_stated(server, client, plan.draw, probe.response)
        else:
            found["compute_s"] = self._run.compute.expected_s(workload.samples)[client]
            found["uplink_s"] = self._run.links.expected_uplink_s(workload.up_bits)[client]
        return Answers(client=client, **found)

    def _sizes_stated(
        self, server: AskingServer, client: IntArray, draw: int, response: RandomizedResponse
    ) -> IntArray:
        """Return the numbers of samples that clients state; 1 where no client has data.

        What decides client k's statement is drawn from the streams ``size-told`` and ``size-drawn`` for (k, draw).
        Where all statements of a client cost one, the draw is the same in all rounds: a client that is asked again,
        because its first response was lost on the way, says the same again, which discloses nothing more. Statements
        that nothing links are drawn anew all the same.
        """
        streams, samples, selector = self._run.streams, server.learner.samples, server.selector
        draw = _ONE_ANSWER if selector.sizes_paid_once and not selector.sizes_unlinked else draw
        uniform = [streams.uniform(name, client, draw) for name in ("size-told", "size-drawn")]
        return response.answers(samples[client] if samples.any() else np.ones_like(client), *uniform)


def why_no_norms(learner: Learner, *, private: bool, asynchronous: bool) -> str:
    """Return why clients cannot be asked for the norms of their updates; empty if they can."""
    if private:
        return "in a run with privacy: norms of updates are not private"
    if learner.remembers:
        return "where an update depends on those before it: it would be made twice"
    return "at an asynchronous server, whose model moves on meanwhile" if asynchronous else ""
