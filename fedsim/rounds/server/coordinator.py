"""One server and its clients: a round is run as the policy says, then the updates that have arrived are aggregated.

A flat federation has one coordinator, a hierarchical one has one at every edge server.
"""

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.answers import unchecked
from fedsim.arrays import IntArray
from fedsim.clock import Waiting, rest_of_instant
from fedsim.errors import FedsimError, PartError, ScenarioError
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import Model
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.cohort import CohortRun
from fedsim.rounds.policies.contracts import POLICIES, Running
from fedsim.rounds.policies.round import Round
from fedsim.rounds.secure.exchange import InClear
from fedsim.rounds.server.cohort_runs import CohortRuns
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.decisions import Asked, Closed, Decisions
from fedsim.rounds.server.knowledge import all_members
from fedsim.rounds.server.probing import Prober
from fedsim.rounds.server.refill import Refill
from fedsim.rounds.server.roster import Roster
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.selection import Ask, Selection
from fedsim.rounds.server.update_buffer import UpdateBuffer
from fedsim.selectors import Cohort, RoundView


class Coordinator:
    """Runs rounds with its clients; a `RoundRunner` to the server process, and a `ServerPort` to the policy."""

    def __init__(
        self,
        env: Environment,
        context: ServerContext,
        clients: Clients,
        log: RoundLog,
        member: IntArray | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        self.env, self.context, self._log, self._decisions = env, context, log, decisions
        self.model: Model = context.learner.initial()
        self._clients = context.learner.samples.size
        self._traits = context.policy.traits
        rule = context.policy.aggregation(context.learner)
        self._rule = context.late.aggregation(context.learner) if rule is None else rule
        self._buffer = UpdateBuffer(context, self._rule)
        self._roster = Roster(env, self._clients, member)
        self._runs = CohortRuns(env, context, clients, self._roster, self._buffer, log, self._rule, decisions)
        self._selection = Selection(env, context, clients, self._roster, decisions)
        self._prober = Prober(env, context, clients, log)
        secure = context.secure
        self._masking = InClear() if secure is None else secure.masking(env, clients, log.stepped)
        self._refill = Refill(env, context, self._roster, self._selection, self._send_one, decisions)
        self._round: Round | None = None
        if decisions is not None:
            decisions.server = self
        self._start_s = 0.0

    def next_start_s(self, number: int) -> float:
        if self._traits.overlaps_rounds and self._roster.in_flight:
            return float(self.env.now)
        start_s = self._selection.next_start_s(number)
        # A busy client becomes idle, whether it is eligible then or not.
        return float(self.env.now) if start_s == np.inf and self._roster.any_busy else start_s

    def run_round(self, number: int, start_s: float) -> Waiting:
        """Run a round that starts now, with clients whose availability is taken as of ``start_s``."""
        policy, past = self.context.policy, self._log.past
        limit_s = policy.time_limit_s(past)
        round_ = self._round = Round(self.env, number, self._clients, past, limit_s)
        self._selection.limit_s = limit_s if limit_s < np.inf else None
        self._start_s, self._refill.number = start_s, number
        try:
            self._rule.on_round_start(self.model)
            if self._traits.concurrency is None:
                yield from self._dispatch(round_)
                ended_by = yield from policy.wait(self, round_)
            else:
                ended_by = yield from self._filling(policy.wait(self, round_), round_, self._traits.concurrency)
            revealed, own = True, round_.cohort_run
            if own is not None:
                if self._runs.end_with_round and not own.participations.all_delivered:
                    yield from self._runs.cancel([own])
                self._runs.close_round(own)
                revealed = yield from self._masking.reveal(own)
            yield from self._close(round_, ended_by, revealed=revealed)
        except PartError as error:
            error.place(number, self.env.now)
            raise
        self._round = None

    def abort_round(self) -> Generator[Event, Any, bool]:
        yield from self._stop()
        final = self._runs.finalize_all()
        round_, self._round = self._round, None
        if round_ is None:
            return False
        # A synchronous server's clients of earlier rounds have been counted there as late.
        everyone = self._traits.concurrency is not None
        self._log.count([part for part in final if everyone or part[0] is round_.cohort_run])
        self._log.close(
            round_.number, round_.start_s, self.env.now, self.candidates, self.model.version, RoundEnd.RESTART
        )
        if self._decisions is not None:
            self._decisions.closed = self._closed(round_, self.env.now, RoundEnd.RESTART)
            if round_.cohort_run is not None:
                yield from self._decisions.wait(self.env, Asked.REPORT)
        return True

    def shutdown(self) -> Waiting:
        yield from self._stop()
        self._runs.finalize_all()

    def waits_in_vain(self) -> FedsimError | None:
        """Return the error about a question that no client can answer, or a policy that waits for no client."""
        round_ = self._round
        if round_ is None or self._runs.any_in_flight:
            return None
        if self._prober.unanswered:
            return ScenarioError(
                f"selector: the question of {self.context.selector.name} in round {round_.number}, at "
                f"{self._start_s:.9g} s, waits for ever: {self._prober.unanswered} of the clients asked can never "
                "answer, since their links carry nothing; allowed: a wait_s for answers, or faster links"
            )
        if self._masking.unanswered:
            return ScenarioError(
                f"rounds.secure_aggregation: a step of round {round_.number} waits for ever: "
                f"{self._masking.unanswered} clients can never answer, since their links carry nothing; allowed: a "
                "wait_s for answers, or faster links"
            )
        policy = POLICIES.kind_of(unchecked(self.context.policy))
        delivered = 0 if round_.cohort_run is None else int(round_.cohort_run.participations.arrived.sum())
        error = PartError(
            f"policy {policy}.wait waits for ever: no client is in flight, and "
            f"{delivered} of the round's {round_.size} have delivered",
            "allowed: an event that triggers once no client is in flight, or a time limit",
        )
        error.place(round_.number, round_.start_s)
        return error

    @property
    def candidates(self) -> int:
        return self._selection.candidates

    def any_available(self, time_s: float, number: int) -> bool:
        """Return whether a client, idle or not, is available at an instant of a round."""
        return self._selection.any_available(time_s, number)

    def trains_from(self, version: int) -> bool:
        return self._runs.trains_from(version)

    @property
    def in_flight(self) -> int:
        return self._runs.in_flight

    @property
    def buffered(self) -> int:
        return self._buffer.count(self.model.version)

    def buffered_clients(self) -> IntArray:
        return self._buffer.clients()

    def next_arrival(self) -> Event:
        return self._roster.next_change()

    def select(self, round_: Round, cohort_size: int | None) -> Generator[Event, Any, Cohort | None]:
        if self._traits.overlaps_rounds and self._roster.in_flight:
            beside = yield from self._selection.after_question(lambda: round_.number, cohort_size, self._ask(round_))
            self._limit(round_)
            return beside
        chosen = yield from self._selection.of_round(round_.number, self._start_s, cohort_size, self._ask(round_))
        self._limit(round_)
        return (yield from self._masking.prepare(round_.number, chosen, self._selection.draw(round_.number)))

    def _dispatch(self, round_: Round) -> Waiting:
        """Select a cohort and send it."""
        if self._traits.most_lag is not None:
            yield from self._runs.cancel_before(self.model.version - self._traits.most_lag)
        cohort = yield from self.select(round_, self._traits.cohort_size)
        if cohort is None:
            return
        number, selection = round_.number, self._selection
        round_.cohort_run = self._runs.send(
            number,
            cohort,
            self.model,
            number,
            selection.draw(number),
            looked_s=selection.looked_s,
            limit_s=round_.time_limit_s,
        )

    def _filling(self, waiting: Running, round_: Round, concurrency: int) -> Running:
        """Fill vacant places before each wait of the policy; what has ended the round, or enough without candidates."""
        try:
            event = next(waiting)
            while self._refill.to(concurrency, self._ask(round_)):
                value = yield event
                yield from rest_of_instant(self.env)
                event = waiting.send(value)
        except StopIteration as end:
            ended_by: RoundEnd = end.value
            return ended_by
        finally:
            waiting.close()
        return RoundEnd.ENOUGH

    def look(self, number: int, size: int | None = None) -> RoundView | None:
        return self._selection.look(number, size)

    def selected(self, number: int, size: int) -> Cohort | None:
        return self._selection.at_once(number, size)

    def send(self, cohort: Cohort) -> None:
        self._refill.send(cohort)

    def leave_vacant(self, vacant: int) -> None:
        self._refill.leave_vacant(vacant)

    def look_around(self) -> None:
        self._roster.notify()

    def _limit(self, round_: Round) -> None:
        """Let a round that begins end no later than is decided outside."""
        if self._decisions is not None:
            round_.time_limit_s = min(round_.time_limit_s, self._decisions.limit_s)

    def _ask(self, round_: Round) -> Ask:
        return partial(self._prober.ask, round_.number, self.model)

    def _send_one(self, number: int, cohort: Cohort, draw: int) -> CohortRun:
        return self._runs.send(number, cohort, self.model, draw, self._selection.draw(number))

    def _stop(self) -> Waiting:
        yield from self._refill.stop_asking()
        yield from self._runs.stop()

    def _closed(self, round_: Round, end_s: float, ended_by: RoundEnd) -> Closed:
        """Return a round that is over, for decisions from outside."""
        return Closed(
            round_.number,
            round_.start_s,
            end_s,
            ended_by,
            self.candidates,
            self.model.version,
            round_.cohort_run,
            self._runs.served(round_.number),
        )

    def _close(self, round_: Round, ended_by: RoundEnd, *, revealed: bool) -> Waiting:
        """Aggregate the updates that have arrived, if their sum is known, and record and report the round."""
        number, own, end_s = round_.number, round_.cohort_run, self.env.now
        asynchronous = self._traits.concurrency is not None
        if not revealed:
            self._buffer.discard()
        self.model = self._buffer.aggregate(number, self.model)
        if self._decisions is not None:
            self._decisions.closed = self._closed(round_, end_s, ended_by)
            yield from self._decisions.wait(self.env, Asked.REPORT)
        self._buffer.measure()
        arrived = self._buffer.take_arrived()
        final = self._runs.finalize(arrived)
        counted = final if asynchronous else [] if own is None else [all_members(own)]
        self._log.count(counted)
        self._log.add_energies(self._buffer.energies)
        self._log.add_server_noise(number, self._buffer.noise)
        self._log.close(number, round_.start_s, end_s, self.candidates, self.model.version, ended_by)
        self.context.knowledge.update(arrived, self.env.now)
        given_up = self._roster.take_given_up()
        reported = [*arrived, *map(all_members, given_up)] if asynchronous else counted
        self._log.report(round_, end_s, reported, self._buffer.picked)
