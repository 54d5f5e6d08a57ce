"""One server and its clients: select, send, wait as the policy says, merge what has arrived.

A flat federation has one coordinator, a hierarchical one has one at every edge. What arrives is kept and merged in
`fedsim.rounds.server.update_buffer`, who is waited for stands in `fedsim.rounds.server.roster`, and what the selector
is told in `fedsim.rounds.server.knowledge`.
"""

import math
from collections.abc import Generator, Iterable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.clock import Waiting
from fedsim.history.outcomes import Fate, RoundEnd
from fedsim.learning import Model
from fedsim.rounds.clients.assignment import Assignment
from fedsim.rounds.clients.cohort import CohortRun, Members, cohort_weights
from fedsim.rounds.clients.dispatch import Dispatcher
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.knowledge import everybody, learn, reports
from fedsim.rounds.server.probing import Prober
from fedsim.rounds.server.roster import Roster
from fedsim.rounds.server.round_log import RoundLog
from fedsim.rounds.server.selection import Selection
from fedsim.rounds.server.update_buffer import UpdateBuffer
from fedsim.selectors import Cohort


class Coordinator:
    """Runs rounds with its clients.

    Parameters
    ----------
    env : Environment
    context : ServerContext
    dispatcher : sends cohorts over the links that all coordinators of a run share
    choice : how it selects
    records : what is taken down

    Attributes
    ----------
    model : its newest model
    """

    def __init__(
        self, env: Environment, context: ServerContext, dispatcher: Dispatcher, choice: Selection, records: RoundLog
    ) -> None:
        self.env, self.context, self.choice, self.records = env, context, choice, records
        self.model: Model = context.learner.initial()
        self._dispatcher = dispatcher
        self._prober = Prober(env, context, dispatcher, records)
        self._traits = traits = context.policy.traits
        rule = context.policy.aggregation(context.learner)
        self._rule = context.late.aggregation(context.learner) if rule is None else rule
        self._cancels = context.late.cancels and not traits.overlaps_rounds
        self._asynchronous = traits.concurrency is not None
        self._needs = choice.selector.needs
        self._intake = UpdateBuffer(context, self._rule, self._needs)
        self._crew = Roster(env, choice, self._send, traits.give_up_after_s)
        self.past = PastRounds()
        self.clients = context.learner.samples.size
        self._sent = 0
        self._flights: dict[CohortRun, None] = {}
        self._ended: dict[CohortRun, None] = {}
        self._open: Round | None = None

    def opens_s(self, number: int) -> float:
        """Return when a round can start: as soon as anybody is there, or now if somebody is at work anyway."""
        if self._traits.overlaps_rounds and self._crew.outstanding:
            return float(self.env.now)
        opens_s = self.choice.next_start_s(number)
        # Whoever is at work comes back, charged enough or not.
        return float(self.env.now) if opens_s == np.inf and self.choice.busy else opens_s

    def round(self, number: int, opens_s: float) -> Generator[Event, Any, None]:
        """Run a round that begins now, for clients that are looked at as of ``opens_s``."""
        policy = self.context.policy
        round_ = self._open = Round(self.env, number, self.clients, self.past, policy.time_limit_s(self.past))
        self._opens_s = opens_s
        self._crew.number = number
        self._rule.on_round_start(self.model)
        ended_by = yield from policy.run(self, round_)
        if self._cancels and round_.cohort_run is not None:
            yield from self._cut_off([round_.cohort_run])
        self._close(round_, ended_by)
        self._open = None

    def select(self, round_: Round, cohort_size: int | None) -> Generator[Event, Any, Cohort | None]:
        """Return the round's cohort; None if no client is available and others are in flight."""
        ask = partial(self._prober.ask, round_.number, self.model)
        if self._traits.overlaps_rounds and self._crew.outstanding:
            return (yield from self.choice.beside(lambda: round_.number, cohort_size, ask))
        return (yield from self.choice.choose(round_.number, self._opens_s, cohort_size, ask))

    def dispatch(self, cohort: Cohort, round_: Round) -> CohortRun:
        """Send the round's cohort from the newest model."""
        round_.cohort_run = self._send(
            round_.number, cohort, round_.number, opens_s=self.choice.looked_s, closes_after_s=round_.time_limit_s
        )
        return round_.cohort_run

    def cancel_older_than(self, lag: int) -> Waiting:
        """Cancel clients that train a model more than ``lag`` versions old."""
        old = [flight for flight in self._flights if self.model.version - flight.model.version > lag]
        for flight in old:
            for client in flight.cohort.client.tolist():
                self._crew.dismiss(client, flight)
        yield from self._cut_off(old)

    def end(self) -> Generator[Event, Any, Members]:
        """Cut off whoever is at work, and lose what has not been merged: the run is over, or the server crashes.

        Return of whom it has become known by that what came of them.
        """
        yield from self._crew.stop_asking()
        yield from self._cut_off(list(self._flights))
        self._intake.lose()
        self._intake.arrived()
        self._crew.forget()
        settled: Members = []
        for flight in self._flights:
            if self._cancels:
                self._dispatcher.finalize(flight.participations)
            flight.fate[flight.buffered] = Fate.WASTED_UNMERGED
            flight.decide_lost()
            settled.append((flight, self.records.settle(flight)))
        self.records.check_asked()
        self._flights.clear()
        self._ended.clear()
        return settled

    def crash(self) -> Generator[Event, Any, bool]:
        """Lose what is under way and what waits to be merged; return whether a round has ended by that."""
        settled = yield from self.end()
        round_, self._open = self._open, None
        if round_ is None:
            return False
        for flight, members in settled:
            # Those of earlier rounds have been counted there as late.
            if self._asynchronous or flight is round_.cohort_run:
                self.records.count(flight.participations.outcome[members])
        candidates, version = self.choice.candidates, self.model.version
        self.records.close(round_.number, round_.start_s, self.env.now, candidates, version, RoundEnd.RESTART)
        return True

    @property
    def in_flight(self) -> int:
        """How many clients were sent and have not been heard of."""
        return self._crew.outstanding

    @property
    def buffered(self) -> int:
        """How many updates wait to be merged."""
        return self._intake.count(self.model.version)

    def buffered_clients(self) -> NDArray[np.int64]:
        """Return the clients whose updates wait to be merged."""
        return self._intake.clients()

    def refill(self, round_: Round, concurrency: int) -> bool:
        """Send clients until a number of them are in flight; return whether any is or will be available."""
        return self._crew.fill(concurrency, partial(self._prober.ask, round_.number, self.model))

    def next_arrival(self) -> Event:
        """Return the event that is triggered when an update arrives, a client is given up or somebody comes."""
        return self._crew.change()

    def works_on(self, version: int) -> bool:
        """Return whether any of its clients is at work on the model of a version."""
        return any(flight.model.version == version for flight in self._flights)

    @cached_property
    def _mean_uplink_s(self) -> NDArray[np.float64]:
        """How long an upload takes each client of the crowd on average."""
        return self.context.clients.links.expected_uplink_s(self.context.clients.workload.up_bits)

    def _cut_off(self, flights: Iterable[CohortRun]) -> Generator[Event, Any, None]:
        cut = [flight.participations.cancel() for flight in flights]
        if any(cut):
            yield self.env.timeout(0)

    def _send(
        self,
        number: int,
        cohort: Cohort,
        turn: int,
        *,
        opens_s: float | None = None,
        closes_after_s: float = math.inf,
    ) -> CohortRun:
        """Send a cohort; its clients' presence is looked at as of now if it has not been before."""
        context, client = self.context, cohort.client
        weight, total = cohort_weights(cohort, context.learner.samples[client])
        flight = CohortRun(self._sent, number, cohort, self.model, weight, total)
        flight.repeat = self._intake.repeats(client, self.model.version)
        if cohort.work is not None:
            flight.work = context.learner.whole_steps(client, flight.work, up=True)
        samples = context.clients.workload.samples(client)
        assignment = Assignment(
            client=client,
            number=number,
            draw=turn,
            availability_s=self.env.now if opens_s is None else opens_s,
            availability_draw=self.choice.draw(number),
            bits=(context.clients.workload.down_bits, context.clients.workload.up_bits),
            samples=samples,
            compute_s=context.clients.compute.duration_s(client, turn, samples),
            deadline_s=self.env.now + closes_after_s,
            least_share=self.context.late.least_share,
            mean_uplink_s=None if self.context.late.least_share == 1.0 else self._mean_uplink_s[client],
            waits_for_all=not self._traits.tolerates_losses,
        )
        on_end = partial(self._member_ended, flight) if not self._cancels else None
        flight.participations = self._dispatcher.send(assignment, flight.work, flight.releases, on_end)
        self._sent += 1
        self._flights[flight] = None
        self._crew.sent(flight)
        self.choice.sent(cohort, busy=not self._cancels)
        self._rule.on_dispatch(client, self.model)
        self.records.sent(flight)
        return flight

    def _member_ended(self, flight: CohortRun, i: int, delivered: bool) -> None:
        """Take down that a member has delivered, or is lost, which the server does not see."""
        client = int(flight.cohort.client[i])
        self._dispatcher.finalize(flight.participations, np.array([i]))
        self._ended[flight] = None
        # An asynchronous server waits for whoever is lost; a synchronous one finds it among those that come anew.
        if delivered or not self._asynchronous:
            self.choice.free(client)
        if delivered:
            self._crew.heard(client, flight)
            self._intake.take(flight, [i])
            self._crew.notify()

    def _close(self, round_: Round, ended_by: RoundEnd) -> None:
        """Merge what has arrived, and take down and report what came of whom."""
        number, own, now_s = round_.number, round_.cohort_run, self.env.now
        if own is not None:
            self._ended[own] = None
            if self._cancels:
                self._dispatcher.finalize(own.participations)
                self._intake.take(own, own.buffered.tolist())
            own.late |= ~own.participations.arrived
            own.participations.mark_late()
        self.model = self._intake.aggregate(number, self.model)
        arrived = self._intake.arrived()
        settled = self._settle(arrived)
        counted = settled if self._asynchronous else [everybody(own)] if own is not None else []
        for flight, members in counted:
            self.records.count(flight.participations.outcome[members])
        self.records.close(number, round_.start_s, now_s, self.choice.candidates, self.model.version, ended_by)
        learn(self.context.knowledge, arrived)
        given_up, self._crew.given_up = self._crew.given_up, []
        known = [*arrived, *map(everybody, given_up)] if self._asynchronous else counted
        told = reports(number, now_s, known, self._needs)
        self.choice.selector.observe(told)
        self._remember(round_, np.where(told.delivered, told.duration_s, np.inf))

    def _settle(self, arrived: Members) -> Members:
        """Take down those of whom it is known by now what came of them; return them."""
        changed = sorted({*self._ended, *(flight for flight, _ in arrived)}, key=lambda flight: flight.order)
        self._ended.clear()
        settled: Members = []
        for flight in changed:
            flight.decide_lost()
            settled.append((flight, self.records.settle(flight)))
            if flight.decided:
                del self._flights[flight]
            elif flight.buffered.size:
                self._ended[flight] = None
        return settled

    def _remember(self, round_: Round, durations_s: NDArray[np.float64]) -> None:
        """Remember the round as the policies of those to come will want it."""
        sent_s = round_.start_s if round_.cohort_run is None else round_.cohort_run.participations.start_s
        self.past.rounds_s.append(self.env.now - sent_s)
        self.past.durations_s.append(durations_s)
        self.past.deadline_s = round_.time_limit_s
        self.past.picked = self._intake.picked
