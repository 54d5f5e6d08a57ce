"""The cohorts that a server has sent, until the fate of every member is decided."""

import math
from collections.abc import Iterable
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Waiting
from fedsim.errors import PartError
from fedsim.history.outcomes import Fate
from fedsim.learning import Model
from fedsim.measurements import NUMBERS
from fedsim.network import Links
from fedsim.rounds.aggregation.rules import AggregationRule
from fedsim.rounds.aggregation.weightings import cohort_weights
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.clients.sampled_work import SampledWork, SampledWorks
from fedsim.rounds.clients.widths import WidthChoice
from fedsim.rounds.plan import Plan
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.decisions import Decisions
from fedsim.rounds.server.roster import Roster
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.update_buffer import UpdateBuffer
from fedsim.selectors import Allocation, Cohort

_BY_DISPATCH: Final = attrgetter("order")
_NOTHING_GIVEN: Final = Allocation()


class CohortRuns:
    """Sends and cancels cohorts, takes in their updates, and has the log record members with a decided fate."""

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        clients: Clients,
        roster: Roster,
        buffer: UpdateBuffer,
        log: RoundLog,
        rule: AggregationRule,
        decisions: Decisions | None = None,
    ) -> None:
        self.env, self.context, self._clients = env, context, clients
        self._roster, self._buffer, self._log, self._rule = roster, buffer, log, rule
        self._weights = context.weighting.of_clients(context.learner.samples, context.clients.streams)
        traits = context.policy.traits
        self.end_with_round = context.late.cancels and not traits.overlaps_rounds
        self._asynchronous = traits.concurrency is not None
        self._waits_for_all = not traits.tolerates_losses
        self._decisions = decisions
        self._sent = 0
        self._open: dict[CohortRun, None] = {}
        # Open cohorts with members that have ended since the last round.
        self._ended: dict[CohortRun, None] = {}

    def send(
        self,
        number: int,
        cohort: Cohort,
        model: Model,
        draw: int,
        availability_draw: int,
        *,
        looked_s: float | None = None,
        limit_s: float = math.inf,
    ) -> CohortRun:
        context, client, now_s = self.context, cohort.client, self.env.now
        drew = None if cohort.sampling is None else self._sampled.of(client, cohort.sampling, draw)
        noised = "" if context.releases is None or context.releases.server is None else context.selector.name
        weight, total = cohort_weights(cohort, self._weights_of(client, drew), context.weighting, noised)
        repeat = self._buffer.repeats(client, model.version)
        run = CohortRun(self._sent, number, cohort, model, weight, total, repeat)
        if cohort.work is not None:
            rounded = [context.learner.whole_steps(client, run.work, up=up) for up in (True, False)]
            # More than the usual work is to fit into some time.
            run.work = np.where(run.work > 1.0, rounded[1], rounded[0])
        workload = context.clients.workload
        if self._widths is not None and not cohort.trained:
            run.level = self._widths.levels(client, limit_s)
        down, up, samples = workload.of(client, run.level)
        if cohort.trained:
            # A client that has trained for a question has its update: the message down only asks for it.
            down, samples = 0.0, np.zeros(client.size)
        if drew is not None and cohort.sampling is not None:
            # Noise and masks hide who has drawn nothing.
            hidden = context.clients.accountant is not None or context.secure is not None
            (down, up), samples = drew.bits(cohort.sampling, down, up, hidden=hidden), drew.samples
            run.drawn, run.silent = drew.drawn, None if hidden else drew.silent
        compute_s = samples if cohort.trained else context.clients.compute.duration_s(client, draw, samples)
        given = cohort.allocation or _NOTHING_GIVEN
        if given.cpu_frequency is not None:
            compute_s = compute_s / given.cpu_frequency
        plan = Plan(
            client,
            number,
            draw,
            looked_s=now_s if looked_s is None else looked_s,
            candidacy_draw=availability_draw,
            bits=(down, up),
            samples=samples,
            compute_s=compute_s,
        )
        plan.work, plan.deadline_s, plan.update = run.work, now_s + limit_s, not cohort.trained
        plan.waits_for_all = self._waits_for_all and not self._limited
        plan.links = self._allocated(client, given)
        plan.cpu_frequency, plan.transmit_power_dbm = given.cpu_frequency, given.transmit_power_dbm
        on_end = None if self.end_with_round else partial(self._client_ended, run)
        accountant = context.clients.accountant
        if accountant is not None:
            accountant.cohort_sent()
            plan.on_upload = partial(run.charge, accountant, not NUMBERS.isdisjoint(context.selector.needs))
        try:
            run.participations = Participations(self._clients, plan, on_end)
        except PartError as error:
            error.name_clients(client)
            raise
        self._sent += 1
        self._open[run] = None
        if not self.end_with_round:
            self._roster.sent(run)
        context.knowledge.sent(client)
        self._rule.on_dispatch(client, model)
        self._log.dispatched(run)
        return run

    def _weights_of(self, client: IntArray, drew: SampledWork | None) -> FloatArray:
        """Return the weight of each client of a cohort; by what it has drawn, or what is stated, of samples."""
        counted = self.context.clients.workload.counted(client) if drew is None else drew.drawn.taken
        if counted is None:
            return self._weights[client]
        count: NDArray[Any] = np.zeros(self._weights.size, dtype=counted.dtype)
        count[client] = counted
        return self.context.weighting.of_clients(count, self.context.clients.streams)[client]

    @cached_property
    def _sampled(self) -> SampledWorks:
        return SampledWorks(self.context.learner, self.context.clients.streams)

    def _allocated(self, client: IntArray, allocation: Allocation) -> Links | None:
        """Return the links of a cohort under an allocation, None for the run's."""
        bandwidth_hz, power_dbm = allocation.bandwidth_hz, allocation.transmit_power_dbm
        if bandwidth_hz is None and power_dbm is None:
            return None
        return self.context.clients.links.allocated(client, bandwidth_hz, power_dbm)

    def cancel(self, runs: Iterable[CohortRun]) -> Waiting:
        """Interrupt the clients of cohorts that are in flight, and let them stop."""
        cut = [run.participations.cancel() for run in runs]
        if any(cut):
            yield self.env.timeout(0)

    def cancel_before(self, version: int) -> Waiting:
        """Cancel the cohorts that started from models before a version."""
        old = [run for run in self._open if run.model.version < version]
        self._roster.cancelled(old)
        yield from self.cancel(old)

    def trains_from(self, version: int) -> bool:
        """Return whether a cohort is open that started from the model of a version."""
        return any(run.model.version == version for run in self._open)

    @property
    def in_flight(self) -> int:
        if not self.end_with_round:
            return self._roster.in_flight
        return sum([int(np.count_nonzero(~run.participations.arrived)) for run in self._open])

    @property
    def _limited(self) -> bool:
        """Whether the present round has a limit from outside, whatever its policy waits for."""
        return self._decisions is not None and self._decisions.limit_s < math.inf

    @property
    def any_in_flight(self) -> bool:
        return any(not run.participations.ended.all() for run in self._open)

    def served(self, number: int) -> Members:
        """Return the members of open cohorts whose updates the aggregation of a round has used."""
        used = [(run, np.flatnonzero(run.served_round == number)) for run in self._open]
        return [part for part in used if part[1].size]

    def close_round(self, run: CohortRun) -> None:
        """Take in the updates of a round's own cohort, and mark its other members as late."""
        self._ended[run] = None
        if self.end_with_round:
            run.participations.settle()
            self._buffer.take(run, run.buffered)
        if not run.participations.all_delivered:
            run.late |= ~run.participations.arrived
            run.participations.mark_late()

    def finalize(self, arrived: Members) -> Members:
        """Record the members whose fate is decided after an aggregation, and return them."""
        changed = sorted({*self._ended, *[run for run, _ in arrived]}, key=_BY_DISPATCH)
        self._ended.clear()
        final: Members = []
        for run in changed:
            run.decide_lost()
            final.append((run, self._log.finalize(run)))
            if not run.undecided:
                del self._open[run]
            elif run.buffered.size:
                self._ended[run] = None
        return final

    def stop(self) -> Waiting:
        yield from self.cancel(list(self._open))
        self._buffer.discard()
        self._buffer.take_arrived()
        self._roster.clear()

    def finalize_all(self) -> Members:
        """Record all members of stopped cohorts, and return them."""
        final: Members = []
        for run in self._open:
            if self.end_with_round and run not in self._ended:
                run.participations.settle()
            run.decide(run.buffered, Fate.WASTED_UNMERGED)
            run.decide_lost()
            final.append((run, self._log.finalize(run)))
        self._log.check_probes()
        self._open.clear()
        self._ended.clear()
        return final

    @cached_property
    def _widths(self) -> WidthChoice | None:
        """The choice of widths; None where all clients train the whole model."""
        clients, workload = self.context.clients, self.context.clients.workload
        if workload.widths is None:
            return None
        return WidthChoice(workload.widths, clients.links, clients.compute, workload)

    def _client_ended(self, run: CohortRun, i: int, delivered: bool) -> None:
        """Record that a member of a cohort has delivered, or that it is lost, which the server does not see."""
        client = int(run.cohort.client[i])
        run.participations.settle(np.array([i]))
        self._ended[run] = None
        # An asynchronous server waits for a lost client; a synchronous one finds it among the next candidates.
        if delivered or not self._asynchronous:
            self._roster.mark_idle(client)
        if delivered:
            self._roster.delivered(client, run)
            self._buffer.take(run, np.array([i]))
            if self._decisions is not None:
                self._decisions.ended.append((run, i, self.env.now))
            self._roster.notify()
