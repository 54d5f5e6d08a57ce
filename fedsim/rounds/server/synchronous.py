"""A server that sends one cohort a round: a round from the selection to its row, from top to bottom.

A flat federation has one server, a hierarchical one has one at every edge server.

Streams: ``selection`` and ``selection-cut`` by round; where a round draws more than once, by (round, number of draws
before).
"""

import math
from collections.abc import Generator, Iterable
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np
from simpy import Environment, Event

from fedsim.answers import unchecked
from fedsim.arrays import IntArray
from fedsim.clock import Waiting
from fedsim.errors import FedsimError, PartError, ScenarioError, SelectorError
from fedsim.history.outcomes import Fate, RoundEnd
from fedsim.learning import Model
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.plan import Look
from fedsim.rounds.policies.contracts import POLICIES, Running, waits_for_whole_cohort
from fedsim.rounds.policies.round import Round
from fedsim.rounds.server.buffer import Buffer
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.crowd import Crowd
from fedsim.rounds.server.loads import Loads
from fedsim.rounds.server.messages import Messages
from fedsim.rounds.server.oracle import with_future
from fedsim.rounds.server.rows import Rows
from fedsim.rounds.server.view import all_members, with_answers
from fedsim.selectors import Cohort, RoundView
from fedsim.selectors.candidates import ask
from fedsim.streams import Draws

_BY_DISPATCH: Final = attrgetter("order")
_NOBODY: Final = Cohort(np.zeros(0, dtype=np.int64))


class SynchronousServer(Messages):
    """One server and its clients; a `RoundRunner` to the run, and a `ServerPort` to its policy."""

    asynchronous: bool = False
    may_wait_on: bool = False

    def __init__(
        self, env: Environment, context: ServerContext, clients: Clients, rows: Rows, member: IntArray | None = None
    ) -> None:
        learner, policy = context.learner, context.rules.policy
        self.env, self.context, self.clients, self.rows = env, context, clients, rows
        self.selector, self.traits, self.learner = context.selector, policy.traits, learner
        self.streams, self._sending = context.streams, context.effects.having("sends")
        self.model: Model = learner.initial()
        rule = policy.aggregation(learner)
        self.rule = context.rules.late.aggregation(learner) if rule is None else rule
        self.crowd = Crowd(env, context.availability, learner.samples.size, member)
        self.buffer = Buffer(context, self.rule)
        self.loads = Loads(context)
        self.clients_end_with_round = context.rules.late.cancels and not self.traits.overlaps_rounds
        # Ties with a crash, with the rounds of other servers and with calls from outside are ties of events.
        alone = self.crowd.whole and context.rules.server_restart is None and not self.may_wait_on
        self._ends_together = alone and waits_for_whole_cohort(policy)
        self._before_selection = context.effects.having("before_selection")
        self._before_dispatch = context.effects.having("before_dispatch")
        self._before_aggregation = context.effects.having("before_aggregation")
        self._generators, self._selections = context.streams.pool("selection"), Draws()
        self.number = self.candidates = self._sent = 0
        self.round: Round | None = None
        self.start_s = self.looked_s = self._looked_at_s = 0.0
        self._limit_s: float | None = None
        self._open: dict[CohortRun, None] = {}
        self._ended: dict[CohortRun, None] = {}  # open cohorts with members that have ended since the last round

    # A round.

    def run_round(self, number: int, start_s: float) -> Waiting:
        """Run a round that starts now, with clients whose availability is taken as of ``start_s``."""
        round_ = self._begin(number, start_s)
        try:
            self.rule.on_round_start(self.model)
            ended_by = yield from self._serve(round_)
            yield from self._finish(round_, ended_by)
        except PartError as error:
            error.place(number, self.env.now)
            raise
        self.round = None

    def _begin(self, number: int, start_s: float) -> Round:
        past = self.rows.past
        limit_s = self.context.rules.policy.time_limit_s(past)
        self.round = round_ = Round(self.env, number, self.context.learner.samples.size, past, limit_s)
        self.number, self.start_s, self._limit_s = number, start_s, limit_s if limit_s < math.inf else None
        return round_

    def _serve(self, round_: Round) -> Running:
        """Send a cohort, and wait for it as long as the policy says."""
        yield from self._dispatch(round_)
        ended_by = yield from self.context.rules.policy.wait(self, round_)
        if round_.cohort_run is not None:
            yield from self._close(round_.cohort_run)
        return ended_by

    def _dispatch(self, round_: Round) -> Waiting:
        """Select a cohort and send it; none if clients are in flight and no other is available."""
        if self.traits.most_lag is not None:
            yield from self._cancel_before(self.model.version - self.traits.most_lag)
        cohort = yield from self._select(self.traits.cohort_size)
        if cohort is None:
            return
        for effect in self._before_dispatch:
            cohort = yield from effect.before_dispatch(self, cohort)
        # After messages, which take time, clients are there or not as of now.
        looked_s = None if self._before_dispatch else self.looked_s
        round_.cohort_run = self._send(cohort, self.number, looked_s=looked_s, limit_s=round_.time_limit_s)

    def _close(self, run: CohortRun) -> Waiting:
        """Stop waiting for a round's own cohort: take in what has arrived, and mark its other members as late."""
        members = run.participations
        whole = members.all_delivered
        if self.clients_end_with_round:
            if not whole:
                yield from self._cancel([run])
            members.settle()
            self.buffer.take(run, run.everyone if whole else run.buffered)
        self._ended[run] = None
        if not whole:
            run.mark_late()
        for effect in self._before_aggregation:
            delivered = np.flatnonzero(members.arrived)
            counted = yield from effect.before_aggregation(self, members.plan, delivered)
            if counted.size < delivered.size:
                self.buffer.refuse(run, np.setdiff1d(delivered, counted))

    def _finish(self, round_: Round, ended_by: RoundEnd) -> Waiting:
        self._aggregate()
        self._record(round_, self.env.now, ended_by)
        return
        yield

    def _aggregate(self) -> None:
        self.model = self.buffer.aggregate(self.number, self.model)

    def _record(self, round_: Round, end_s: float, ended_by: RoundEnd) -> None:
        self.buffer.measure()
        arrived = self.buffer.take_arrived()
        final = self._finalize(arrived)
        counted = self._counted(round_, final)
        rows = self.rows
        rows.count(counted)
        rows.close(round_.number, round_.start_s, end_s, self.candidates, self.model.version, ended_by)
        self.context.knowledge.update(arrived, self.env.now)
        rows.report(round_, end_s, self._reported(counted, arrived), self.buffer.picked)

    def _counted(self, round_: Round, final: Members) -> Members:
        """Return the members that the row of a round counts: those of its own cohort."""
        return [] if round_.cohort_run is None else [all_members(round_.cohort_run)]

    def _reported(self, counted: Members, arrived: Members) -> Members:
        return counted

    # Candidates and the selector's cohort.

    def _select(self, size: int | None) -> Generator[Event, Any, Cohort | None]:
        """Return the round's cohort: empty if no client will ever be available, None if others are in flight."""
        if self._beside:
            return (yield from self._choose([self._view(self.env.now, size)], size))
        found = [(yield from self._await_candidates(self.start_s, size))]
        cohort = yield from self._choose(found, size)
        return _NOBODY if cohort is None else cohort

    @property
    def _beside(self) -> bool:
        """Whether a cohort is sent beside clients in flight, for which the server does not wait."""
        return self.traits.overlaps_rounds and self.crowd.in_flight > 0

    def _await_candidates(self, time_s: float, size: int | None) -> Generator[Event, Any, RoundView | None]:
        """Return the selector's view as soon as there is a candidate; None if there will never be one."""
        view = self._view(time_s, size)
        while view is None:
            next_candidate = self.crowd.next_candidate(self.number)
            if next_candidate is None:
                return None
            yield next_candidate
            view = self._view(self.env.now, size)
        return view

    def _choose(self, found: list[RoundView | None], size: int | None) -> Generator[Event, Any, Cohort | None]:
        """Return the selector's cohort for a view; None without candidates. See `ask` for the list."""
        view, beside = found.pop(), self._beside
        for effect in self._before_selection:
            answers = None if view is None else (yield from effect.before_selection(self, view))
            if answers is not None:
                now_s = self.env.now
                view = self._view(now_s, size) if beside else (yield from self._await_candidates(now_s, size))
                view = None if view is None else with_answers(view, answers)
        if view is None:
            return None
        shown, candidates = [view], view.count
        del view
        cohort = self._selected(shown)
        if cohort.client.size:
            return cohort
        if beside:
            return None
        raise SelectorError(
            f"{self.selector.name}.select returned no client in round {self.number}, "
            f"though there are {candidates} candidates",
            "allowed: one candidate at least where there are any",
        )

    def _view(self, time_s: float, size: int | None) -> RoundView | None:
        """Return the selector's view of the candidates of an instant; None without candidates."""
        self.looked_s, self._looked_at_s = time_s, self.env.now
        candidates = self.crowd.look(time_s, self.number)
        self.candidates = candidates.count
        if not self.candidates:
            return None
        known, number, now_s, limit_s = self.context.knowledge, self.number, self.env.now, self._limit_s
        if self.selector.oracle:
            view = known.view(number, now_s, candidates.everyone(), size, limit_s)
            return with_future(self.context, self.clients, view, self.crowd.draw(number))
        if candidates.complete and self.crowd.whole:
            return known.view(number, now_s, None, size, limit_s)
        return known.view_of(number, now_s, candidates, size, limit_s)

    def _selected(self, shown: list[RoundView]) -> Cohort:
        """Return the selector's cohort, cut at random to the size asked for if it is larger; see `ask` for the list."""
        keys, wanted = self._selections.keys(self.number), shown[0].wanted
        (rng,) = self._generators.generators([keys])
        cohort = ask(self.selector.select, shown, rng)
        if wanted is None or cohort.client.size <= wanted:
            return cohort
        rng = self.context.streams.generator("selection-cut", *keys)
        return cohort.part(np.sort(rng.choice(cohort.client.size, wanted, replace=False)))

    # Clients in flight.

    def _send(
        self, cohort: Cohort, draw: int, *, looked_s: float | None = None, limit_s: float = math.inf
    ) -> CohortRun:
        """Send the newest model to a cohort, whose random times have a key of their own."""
        context, client, model = self.context, cohort.client, self.model
        run = self.loads.begin(self._sent, self.number, cohort, model, self.buffer.repeats(client, model.version))
        now_s = self.env.now
        look = Look(now_s if looked_s is None else looked_s, self.crowd.draw(self.number))
        run.plan = plan = self.loads.plan(run, draw, look, now_s + limit_s)
        plan.waits_for_all, plan.ends_together = self._waits_for_all, self._ends_together
        on_end = None if self.clients_end_with_round else partial(self._client_ended, run)
        try:
            run.participations = Participations(self.clients, plan, on_end)
        except PartError as error:
            error.name_clients(client)
            raise
        self.loads.weigh(run)
        self._sent += 1
        self._open[run] = None
        if not self.clients_end_with_round:
            self.crowd.sent(run)
        context.knowledge.sent(client)
        self.rule.on_dispatch(client, model)
        self.rows.dispatched(run)
        return run

    @property
    def _waits_for_all(self) -> bool:
        return not self.traits.tolerates_losses

    def _client_ended(self, run: CohortRun, i: int, delivered: bool) -> None:
        """Record that a member of a cohort has delivered, or that it is lost, which the server does not see."""
        client, member = int(run.cohort.client[i]), np.array([i])
        run.participations.settle(member)
        self._ended[run] = None
        # An asynchronous server waits for a lost client; a synchronous one finds it among the next candidates.
        if delivered or not self.asynchronous:
            self.crowd.mark_idle(client)
        if delivered:
            self.crowd.delivered(client, run)
            self.buffer.take(run, member)
            self.crowd.notify()

    def _cancel(self, runs: Iterable[CohortRun]) -> Waiting:
        """Interrupt the clients of cohorts that are in flight, and let them stop."""
        cut = [run.participations.cancel() for run in runs]
        if any(cut):
            yield self.env.timeout(0)

    def _cancel_before(self, version: int) -> Waiting:
        old = [run for run in self._open if run.model.version < version]
        self.crowd.cancelled(version)
        yield from self._cancel(old)

    def _finalize(self, arrived: Members) -> Members:
        """Record the members whose fate is decided after an aggregation, and return them."""
        changed = self._ended
        for run, _ in arrived:
            changed[run] = None
        self._ended = {}
        final: Members = []
        for run in sorted(changed, key=_BY_DISPATCH) if len(changed) > 1 else changed:
            if run.undecided:
                run.decide_lost()
            final.append((run, self.rows.finalize(run)))
            if not run.undecided:
                del self._open[run]
            elif run.buffered.size:
                self._ended[run] = None
        return final

    # What the run and its policy ask.

    def next_start_s(self, number: int) -> float:
        if self.traits.overlaps_rounds and self.crowd.in_flight:
            return float(self.env.now)
        start_s = self.crowd.next_start_s(number)
        # A busy client becomes idle, whether it is eligible then or not.
        return float(self.env.now) if start_s == np.inf and self.crowd.any_busy else start_s

    def abort_round(self) -> Generator[Event, Any, bool]:
        final = yield from self._stop()
        round_, self.round = self.round, None
        if round_ is None:
            return False
        self.rows.count(self._aborted(round_, final))
        self.rows.close(
            round_.number, round_.start_s, self.env.now, self.candidates, self.model.version, RoundEnd.RESTART
        )
        return True

    def _aborted(self, round_: Round, final: Members) -> Members:
        """Return the members that an aborted round counts; those of earlier rounds were counted there as late."""
        return [part for part in final if part[0] is round_.cohort_run]

    def shutdown(self) -> Waiting:
        yield from self._stop()

    def _stop(self) -> Generator[Event, Any, Members]:
        """Cancel all clients in flight, discard all updates, and return what has become of the members."""
        yield from self._cancel(list(self._open))
        self.buffer.discard()
        self.buffer.take_arrived()
        self.crowd.clear()
        final: Members = []
        for run in self._open:
            if self.clients_end_with_round and run not in self._ended:
                run.participations.settle()
            run.decide(run.buffered, Fate.WASTED_UNMERGED)
            run.decide_lost()
            final.append((run, self.rows.finalize(run)))
        self._open, self._ended = {}, {}
        return final

    def waits_in_vain(self) -> FedsimError | None:
        """Return the error about messages that no client can answer, or a policy that waits for no client."""
        round_ = self.round
        if round_ is None or any(not run.participations.ended.all() for run in self._open):
            return None
        if unanswered := self.unanswered():
            return ScenarioError(unanswered)
        policy = POLICIES.kind_of(unchecked(self.context.rules.policy))
        delivered = 0 if round_.cohort_run is None else int(round_.cohort_run.participations.arrived.sum())
        error = PartError(
            f"policy {policy}.wait waits for ever: no client is in flight, and "
            f"{delivered} of the round's {round_.size} have delivered",
            "allowed: an event that triggers once no client is in flight, or a time limit",
        )
        ends_s = [float(run.participations.ended_s.max(initial=0.0)) for run in self._open]
        # The end of time is an event too, but no second of the run.
        noticed_s = self.env.now if self.env.now < math.inf else max(round_.start_s, *ends_s, 0.0)
        error.place(round_.number, noticed_s)
        return error

    def nothing_comes(self) -> str:
        return ""

    def stop_waiting(self) -> bool:
        """End the round with what has arrived; a cohort that was not sent leaves no round to end."""
        return False

    def any_available(self, time_s: float, number: int) -> bool:
        return self.crowd.any_available(time_s, number)

    def trains_from(self, version: int) -> bool:
        """Return whether a cohort is open that started from the model of a version."""
        return any(run.model.version == version for run in self._open)

    @property
    def in_flight(self) -> int:
        if not self.clients_end_with_round:
            return self.crowd.in_flight
        return sum([int(np.count_nonzero(~run.participations.arrived)) for run in self._open])

    @property
    def buffered(self) -> int:
        return self.buffer.count(self.model.version)

    def buffered_clients(self) -> IntArray:
        return self.buffer.clients()

    def next_arrival(self) -> Event:
        return self.crowd.next_change()
