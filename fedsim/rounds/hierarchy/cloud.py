"""The cloud above edge servers: each edge runs rounds with its own clients, and the cloud merges their models."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process

from fedsim.clock import rest_of_instant
from fedsim.history.outcomes import RoundEnd
from fedsim.history.recorder import Recorder
from fedsim.learning import FedAvg, Model
from fedsim.rounds.audit.audit import Audit
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.hierarchy.cloud_rules import EdgeStatus
from fedsim.rounds.hierarchy.edge_server import EdgeCycle, EdgeServer
from fedsim.rounds.hierarchy.settings import Hierarchy
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.coordinator import Coordinator
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.selection import Selection


class Cloud:
    """Merges the models of edge servers; to a server it is what a `Coordinator` is.

    A round is what lies between two merges. A cloud that waits for all merges once all edge servers are back. One that
    does not merges each model as it comes; models that come at the same instant are merged one after another, each in
    a round of its own, in the order of their edges' numbers, and then these edges fetch the newest model.

    A model's version counts the aggregations that led to it: those at the edges, and at the cloud at least one for each
    merge, so that no version ever comes back; and one more where clients are still at work on the newest model that an
    edge has brought, so that to them the cloud's mean is a later one.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    hierarchy : the edge servers
    dispatcher : sends cohorts over the links that all edges share
    recorder : Recorder
    audit : checks what is taken down; None for no checks

    Attributes
    ----------
    model : the newest model of the cloud
    """

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        hierarchy: Hierarchy,
        dispatcher: Dispatcher,
        recorder: Recorder,
        audit: Audit | None,
    ) -> None:
        self.env, self.context = env, context
        self.records = RoundLog(recorder, context, audit)
        self.model: Model = context.learner.initial()
        settings, self._merging = hierarchy.edges, hierarchy.edges.merging
        self._optimizer = settings.server or FedAvg()
        skips: bool = getattr(self._merging, "skips", False)
        carry = settings.backhaul.open(
            env, context.clients.links, dispatcher.medium, context.clients.workload.down_bits
        )
        self._edges = [
            EdgeServer(env, at, self._coordinator(at, hierarchy, dispatcher, audit), settings.rounds, skips, carry)
            for at in range(len(hierarchy.members))
        ]
        self._samples = _samples(context, hierarchy)
        self._came = np.zeros(len(self._edges), dtype=np.int64)
        self._merges = 0
        self._open: tuple[int, float] | None = None
        self._processes: list[Process] = []
        self._under_way: dict[int, EdgeCycle] = {}
        self._arrived: list[EdgeCycle] = []
        self._queue: list[EdgeCycle] = []
        self._news: Event = env.event()

    def opens_s(self, number: int) -> float:
        """Return when a round can start: now, or as soon as anybody is there; inf for never."""
        if self._queue or self._arrived:
            return self.env.now
        opens_s = [edge.resumes_s if edge.number in self._under_way else edge.opens_s() for edge in self._edges]
        return max(self.env.now, min(opens_s))

    def round(self, number: int, opens_s: float) -> Generator[Event, Any, None]:
        """Run until the cloud has merged, or there is nothing to merge."""
        start_s = self.env.now
        self._open = number, start_s
        if self._merging.waits_for_all:
            self._processes = [self.env.process(self._go_once(edge)) for edge in self._edges]
            yield self.env.all_of(self._processes)
            self._processes = []
            came = sorted(self._under_way.values(), key=_number)
        else:
            if not self._processes:
                self._processes = [self.env.process(self._keep_going(edge)) for edge in self._edges]
            came = yield from self._next()
        candidates = sum(self._edges[at].coordinator.choice.candidates for at in self._under_way)
        self._take_in(number, came)
        self.records.close(number, start_s, self.env.now, candidates, self.model.version)
        self._open = None

    def end(self) -> Generator[Event, Any, None]:
        """Stop the edge servers where they are, as the run is over."""
        yield from self._stop()
        for edge in self._edges:
            yield from edge.coordinator.end()
        self._lose()

    def crash(self) -> Generator[Event, Any, bool]:
        """Crash with all edge servers and lose what is under way; return whether a round has ended by that."""
        yield from self._stop()
        candidates = sum(self._edges[at].coordinator.choice.candidates for at in self._under_way)
        for edge in self._edges:
            yield from edge.coordinator.crash()
        self._lose()
        round_, self._open = self._open, None
        if round_ is None:
            return False
        self.records.close(*round_, self.env.now, candidates, self.model.version, RoundEnd.RESTART)
        return True

    def _stop(self) -> Generator[Event, Any, None]:
        stopped = [process for process in self._processes if process.is_alive]
        for process in stopped:
            process.interrupt()
        yield self.env.all_of(stopped)

    def _lose(self) -> None:
        """Take down the visits that are under way, of which nothing comes."""
        for _, visit in sorted(self._under_way.items()):
            self._take_down(None, visit, None, 0.0)
        self._processes, self._under_way, self._arrived, self._queue = [], {}, [], []

    def _coordinator(self, at: int, hierarchy: Hierarchy, dispatcher: Dispatcher, audit: Audit | None) -> Coordinator:
        """Return what runs the rounds of an edge server; the only one there is has the luck of a flat server."""
        context, member, selector = self.context, hierarchy.members[at], hierarchy.selectors[at]
        only = len(hierarchy.members) == 1
        if not only:
            streams, presence = context.streams.within("edge", at), context.availability.part(member)
            selector = selector.at_edge(member, context.learner.samples)
            context = replace(context, streams=streams, availability=presence, selector=selector)
        choice = Selection(self.env, context, selector, None if only else member)
        records = RoundLog(self.records.recorder, context, audit, at, self.records, None if only else member)
        return Coordinator(self.env, context, dispatcher, choice, records)

    def _begin(self, edge: EdgeServer) -> EdgeCycle:
        visit = self._under_way[edge.number] = EdgeCycle(edge.number, self.model, self._merges, self.env.now)
        return visit

    def _go_once(self, edge: EdgeServer) -> Generator[Event, Any, None]:
        """Let an edge server pay the cloud a visit, unless nobody is there and it does not wait."""
        if edge.opening() is None:
            return
        try:
            yield from edge.run(self._begin(edge))
        except Interrupt:
            return

    def _keep_going(self, edge: EdgeServer) -> Generator[Event, Any, None]:
        """Let an edge server come again and again, as long as anybody will ever be there."""
        try:
            while (opens_s := edge.opening()) is not None:
                yield from edge.wait(opens_s)
                visit = self._begin(edge)
                yield from edge.run(visit)
                visit.taken = self.env.event()
                self._arrived.append(visit)
                self._tell()
                yield visit.taken
        except Interrupt:
            return
        self._tell()

    def _tell(self) -> None:
        if not self._news.triggered:
            self._news.succeed()

    def _next(self) -> Generator[Event, Any, list[EdgeCycle]]:
        """Return the visit that is next, when it is there; none if all edge servers have gone home."""
        while not self._queue:
            if not self._arrived:
                if not any(process.is_alive for process in self._processes):
                    return []
                self._news = self.env.event()
                yield self._news
                # Whoever else comes at this instant is looked at together with the first.
                yield from rest_of_instant(self.env)
            self._queue, self._arrived = sorted(self._arrived, key=_number), []
        return [self._queue.pop(0)]

    def _take_in(self, number: int, came: Sequence[EdgeCycle]) -> None:
        """Make the cloud's next model of what edge servers have brought, and let them go on."""
        size = len(self._edges)
        fresh, staleness, shares = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64), np.zeros(size)
        newest = self.model.version + 1
        for visit in came:
            if visit.model is not None:
                fresh[visit.edge], staleness[visit.edge] = True, self._merges - visit.merges
                self._edges[visit.edge].model = visit.model
                self._came[visit.edge] += 1
                newest = max(newest, visit.model.version)
        if fresh.any():
            busy = any(self._edges[visit.edge].coordinator.works_on(newest) for visit in came)
            own, shares = self._merging.shares(EdgeStatus(self._samples, self._came.copy(), fresh, staleness))
            self.model = self._mean(own, shares, newest, busy=busy)
            self._merges += 1
        for visit in came:
            brought = visit.model is not None
            self._take_down(number, visit, int(staleness[visit.edge]) if brought else None, shares[visit.edge])
            del self._under_way[visit.edge]
            if visit.taken is not None:
                visit.taken.succeed()

    def _mean(self, own: float, shares: NDArray[np.float64], version: int, *, busy: bool) -> Model:
        """Return the step to the mean of the cloud's and the edges' models; without a share they are not trained."""
        parts = [
            (self.model, own),
            *((edge.model, float(share)) for edge, share in zip(self._edges, shares, strict=True)),
        ]
        parts = [(model, share) for model, share in parts if share > 0]
        if len(parts) == 1 and parts[0][0].version == version and self._optimizer.adds_update:
            return parts[0][0]
        models, weights = zip(*parts, strict=True)
        learner = self.context.learner
        mean = learner.merge(models, np.array(weights), version=version + busy)
        return learner.server_step(self.model, mean, self._optimizer)

    def _take_down(self, number: int | None, visit: EdgeCycle, staleness: int | None, weight: float) -> None:
        downlink_s, uplink_s = visit.seconds
        downlink_bits, uplink_bits = visit.bits
        self.records.recorder.add_edge_participation(
            round=number,
            edge=visit.edge,
            edge_rounds=visit.rounds,
            start_s=visit.start_s,
            downlink_s=downlink_s,
            uplink_s=uplink_s,
            end_s=min(visit.end_s, self.env.now),
            downlink_bits=downlink_bits,
            uplink_bits=uplink_bits,
            start_version=visit.began.version,
            staleness=staleness,
            weight=float(weight),
        )


def _number(visit: EdgeCycle) -> int:
    return visit.edge


def _samples(context: ServerContext, hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Return how many samples the clients of each edge have, or how many clients it has where no samples are known."""
    samples = context.learner.samples
    if not samples.any():
        return np.array([member.size for member in hierarchy.members], dtype=np.float64)
    return np.array([samples[member].sum() for member in hierarchy.members], dtype=np.float64)
