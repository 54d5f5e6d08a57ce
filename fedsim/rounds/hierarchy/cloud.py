"""The cloud above edge servers: each edge server runs rounds with its own clients, and the cloud aggregates models."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

import numpy as np
from simpy import Environment, Event, Interrupt, Process

from fedsim.arrays import FloatArray
from fedsim.clock import Waiting, rest_of_instant
from fedsim.errors import FedsimError
from fedsim.history.outcomes import RoundEnd
from fedsim.history.recorder import Recorder
from fedsim.learning import Model
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.hierarchy.backhaul import BACKHAUL
from fedsim.rounds.hierarchy.cloud_rules import CLOUD_RULE, EdgeStatus
from fedsim.rounds.hierarchy.edge_server import EdgeCycle, EdgeServer
from fedsim.rounds.hierarchy.settings import Hierarchy
from fedsim.rounds.server.asynchronous import server_of
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.synchronous import SynchronousServer

_BY_EDGE: Final = attrgetter("edge")


class Cloud:
    """Aggregates the models of edge servers; a `RoundRunner`, as the server of a flat federation is.

    A round lies between two aggregations. A cloud that waits for all aggregates once all edge servers are back. Any
    other cloud aggregates each model as it arrives; models that arrive at the same instant are aggregated one after
    another, each in a round of its own, in the order of their edge servers, which then fetch the newest model.

    A model's version counts the aggregations that led to it: those at the edge servers, and at least one of the cloud
    for each of its rounds, so that no version occurs twice. The cloud adds one more if clients in flight train the
    newest model that an edge server has delivered, so that the cloud's model is a later version for them.
    """

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        hierarchy: Hierarchy,
        clients: Clients,
        recorder: Recorder,
    ) -> None:
        self.env, self.context = env, context
        self._rows = Rows(recorder, context)
        self.model: Model = context.learner.initial()
        settings = hierarchy.edges
        self._rule, self._optimizer = CLOUD_RULE.checked(settings.merging), settings.server
        carry = BACKHAUL.checked(settings.backhaul).open(
            env, clients.run.links, clients.run.medium, context.clients.workload.down_bits
        )
        self._edges = [
            EdgeServer(
                env,
                edge,
                self._server(edge, hierarchy, clients),
                settings.rounds,
                self._rule.skips_idle_edges,
                carry,
            )
            for edge in range(len(hierarchy.members))
        ]
        self._samples = _samples(context, hierarchy)
        self._delivered = np.zeros(len(self._edges), dtype=np.int64)
        self._aggregations = 0
        self._round: tuple[int, float] | None = None
        self.may_wait_on = context.rules.policy.traits.concurrency is not None
        self._processes: list[Process] = []
        self._in_progress: dict[int, EdgeCycle] = {}
        self._back: list[EdgeCycle] = []
        self._queue: list[EdgeCycle] = []
        self._changed: Event = env.event()

    def next_start_s(self, number: int) -> float:
        if self._queue or self._back:
            return self.env.now
        starts_s = [edge.resumes_s if edge.number in self._in_progress else edge.next_start_s() for edge in self._edges]
        return max(self.env.now, min(starts_s))

    def run_round(self, number: int, start_s: float) -> Waiting:
        """Run until the cloud has aggregated, or no edge server has a model to deliver."""
        begun_s = self.env.now
        self._round = number, begun_s
        if self._rule.waits_for_all:
            self._processes = [self.env.process(self._run_once(edge)) for edge in self._edges]
            yield self.env.all_of(self._processes)
            self._processes = []
            cycles = sorted(self._in_progress.values(), key=_BY_EDGE)
        else:
            if not self._processes:
                self._processes = [self.env.process(self._run_on(edge)) for edge in self._edges]
            cycles = yield from self._next()
        candidates = self._candidates()
        self._aggregate(number, cycles)
        self._rows.close(number, begun_s, self.env.now, candidates, self.model.version)
        self._round = None

    def shutdown(self) -> Waiting:
        yield from self._stop()
        for edge in self._edges:
            yield from edge.server.shutdown()
        self._discard()

    def abort_round(self) -> Generator[Event, Any, bool]:
        """Lose all cycles in progress, as cloud and edge servers crash; return whether that ends a round."""
        yield from self._stop()
        candidates = self._candidates()
        for edge in self._edges:
            yield from edge.server.abort_round()
        self._discard()
        round_, self._round = self._round, None
        if round_ is None:
            return False
        self._rows.close(*round_, self.env.now, candidates, self.model.version, RoundEnd.RESTART)
        return True

    def waits_in_vain(self) -> FedsimError | None:
        """Return the error about an edge server's policy that waits although no client is in flight; None if one is."""
        found = (edge.server.waits_in_vain() for edge in self._edges)
        return next((error for error in found if error is not None), None)

    def nothing_comes(self) -> str:
        """Return why no edge server that is in a round can expect an update; empty while one can."""
        whys = [self._edges[edge].server.nothing_comes() for edge in self._in_progress]
        return "; ".join(dict.fromkeys(whys)) if all(whys) else ""

    def stop_waiting(self) -> bool:
        """End the rounds of all edge servers with what has arrived."""
        for edge in self._edges:
            edge.server.stop_waiting()
        return True

    def _candidates(self) -> int:
        return sum(self._edges[edge].server.candidates for edge in self._in_progress)

    def _stop(self) -> Waiting:
        stopped = [process for process in self._processes if process.is_alive]
        for process in stopped:
            process.interrupt()
        yield self.env.all_of(stopped)

    def _discard(self) -> None:
        """Record the cycles in progress, whose models are lost."""
        for _, cycle in sorted(self._in_progress.items()):
            self._record(None, cycle, None, 0.0)
        self._processes, self._in_progress, self._back, self._queue = [], {}, [], []

    def _server(self, edge: int, hierarchy: Hierarchy, clients: Clients) -> SynchronousServer:
        """Return what runs the rounds of an edge server; a single one has the random streams of a flat server."""
        context = replace(self.context.at_edge(hierarchy.members[edge]), selector=hierarchy.selectors[edge])
        member = None
        if len(hierarchy.members) > 1:
            member = hierarchy.members[edge]
            context = replace(
                context,
                streams=context.streams.within("edge", edge),
                availability=context.availability.part(member),
                selector=context.selector.at_edge(member, context.learner.samples),
            )
        rows = Rows(self._rows.recorder, context, edge, self._rows)
        return server_of(context)(self.env, context, clients, rows, member)

    def _begin(self, edge: EdgeServer) -> EdgeCycle:
        cycle = self._in_progress[edge.number] = EdgeCycle(edge.number, self.model, self._aggregations, self.env.now)
        return cycle

    def _run_once(self, edge: EdgeServer) -> Waiting:
        """Run one cycle of an edge server, unless no client is available and it does not wait for one."""
        if edge.scheduled_s() is None:
            return
        try:
            yield from edge.run(self._begin(edge))
        except Interrupt:
            return

    def _run_on(self, edge: EdgeServer) -> Waiting:
        """Run cycle after cycle of an edge server, as long as a client will ever be available."""
        try:
            while (start_s := edge.scheduled_s()) is not None:
                yield from edge.wait(start_s)
                cycle = self._begin(edge)
                yield from edge.run(cycle)
                cycle.received = self.env.event()
                self._back.append(cycle)
                self._notify()
                yield cycle.received
        except Interrupt:
            return
        self._notify()

    def _notify(self) -> None:
        if not self._changed.triggered:
            self._changed.succeed()

    def _next(self) -> Generator[Event, Any, list[EdgeCycle]]:
        """Return the next cycle that is complete, once there is one; none if no edge server runs any more."""
        while not self._queue:
            if not self._back:
                if not any(process.is_alive for process in self._processes):
                    return []
                self._changed = self.env.event()
                yield self._changed
                # Edge servers that come back at the same instant are ordered together.
                yield from rest_of_instant(self.env)
            self._queue, self._back = sorted(self._back, key=_BY_EDGE), []
        return [self._queue.pop(0)]

    def _aggregate(self, number: int, cycles: Sequence[EdgeCycle]) -> None:
        """Make the cloud's next model of the models that cycles have delivered, and let the edge servers continue."""
        size = len(self._edges)
        fresh, staleness, shares = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64), np.zeros(size)
        newest = self.model.version + 1
        for cycle in cycles:
            if cycle.model is not None:
                fresh[cycle.edge], staleness[cycle.edge] = True, self._aggregations - cycle.aggregations
                self._edges[cycle.edge].model = cycle.model
                self._delivered[cycle.edge] += 1
                newest = max(newest, cycle.model.version)
        if fresh.any():
            in_use = any(self._edges[cycle.edge].server.trains_from(newest) for cycle in cycles)
            own, shares = self._rule.shares(EdgeStatus(self._samples, self._delivered.copy(), fresh, staleness))
            mean = self._mean(own, shares, newest, in_use=in_use)
            self.model = self.context.learner.server_step(self.model, mean, self._optimizer)
            self._aggregations += 1
        for cycle in cycles:
            delivered = cycle.model is not None
            self._record(number, cycle, int(staleness[cycle.edge]) if delivered else None, shares[cycle.edge])
            del self._in_progress[cycle.edge]
            if cycle.received is not None:
                cycle.received.succeed()

    def _mean(self, own: float, shares: FloatArray, version: int, *, in_use: bool) -> Model:
        """Return the mean of the cloud's model and the edge servers' last ones, weighted by their shares."""
        last = [(edge.model, float(share)) for edge, share in zip(self._edges, shares, strict=True)]
        parts = [(model, share) for model, share in [(self.model, own), *last] if share > 0]
        if len(parts) == 1 and parts[0][0].version == version and self._optimizer.adds_update:
            return parts[0][0]
        models, weights = zip(*parts, strict=True)
        return self.context.learner.merge(models, np.array(weights), version=version + in_use)

    def _record(self, number: int | None, cycle: EdgeCycle, staleness: int | None, weight: float) -> None:
        downlink_s, uplink_s = cycle.transfer_s
        downlink_bits, uplink_bits = cycle.sent_bits
        self._rows.recorder.add_row(
            "edge_participations",
            round=number,
            edge=cycle.edge,
            edge_rounds=cycle.rounds,
            start_s=cycle.start_s,
            downlink_s=downlink_s,
            uplink_s=uplink_s,
            end_s=min(cycle.end_s, self.env.now),
            downlink_bits=downlink_bits,
            uplink_bits=uplink_bits,
            start_version=cycle.fetched.version,
            staleness=staleness,
            weight=float(weight),
        )


def _samples(context: ServerContext, hierarchy: Hierarchy) -> FloatArray:
    """Return the samples of each edge server's clients; the numbers of clients if no client has samples."""
    samples = context.learner.samples
    if not samples.any():
        return np.array([member.size for member in hierarchy.members], dtype=np.float64)
    return np.array([samples[member].sum() for member in hierarchy.members], dtype=np.float64)
