"""A cohort's participations on the clock: arithmetic where times are known, an event each elsewhere.

The phases of a whole cohort are planned at once, as arrays. A client has one pending event, the end of its present
wait, and no process of its own; consecutive phases of known duration are one wait. If the server waits for all clients,
and nothing else depends on one of them, the last end is the only event. A participation has one of three outcomes:
delivered, late (the server stopped waiting and cancelled it) or dropped (the client is lost). The server cannot tell
late from dropped; only the history can.
"""

import math
from collections import defaultdict
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from simpy import Event

from fedsim.arrays import BoolArray, FloatArray, IntArray, any_of, largest, numbers_of
from fedsim.clock import TIE_ULPS, call_after, call_after_others, call_next
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, PHASES, UPLINK, Outcome
from fedsim.network.transfers import Transfer
from fedsim.rounds.clients.clients import Clients, Stop, one
from fedsim.rounds.clients.schedule import Schedule
from fedsim.rounds.effects.contract import NEVER, Effect, Limit
from fedsim.rounds.plan import Plan

# Plain integers: assigned to an array several times faster than members of an enumeration.
_LATE: Final = int(Outcome.LATE)
_DROPPED: Final = int(Outcome.DROPPED)
_END: Final = len(PHASES)
_SLACK_ULPS: Final = 8
_TIE_ULPS: Final = 16 * TIE_ULPS
OnEnd = Callable[[int, bool], None]
"""Called with a client's position, and whether it has delivered, at the end of its participation."""
Columns = Sequence[MutableSequence[float]]
Left = Callable[[float, float, float], float]
"""As `Limit.left_s` of one member."""


class Participations:
    """The participations of the n clients of a cohort; its plan says what has become of them."""

    _ids: list[int]
    _schedule: Schedule
    # Columns of the plan, by phase, and for bits by downlink and uplink.
    _begun_s: Columns
    _queue_s: Columns
    _spent_s: Columns
    _sent_bits: Columns

    def __init__(self, clients: Clients, plan: Plan, on_end: OnEnd | None = None) -> None:
        self._clients, self.run, self.plan, self.env, self._on_end = clients, clients.run, plan, clients.env, on_end
        self.size = size = plan.client.size
        now_s = self.start_s = float(clients.env.now)
        self._delivered, self._in_flight = 0, size
        self._milestones: dict[int, Event] = {}
        self._ends_s = [math.nan] * size
        self._known_ends_s: FloatArray | None = None
        # Of each member: phases of the present wait, its start, and the event of its end.
        self._first, self._until, self._began_s = [DOWNLINK] * size, [DOWNLINK] * size, [now_s] * size
        self._awaited: list[Event | None] = [None] * size
        self._on_air: dict[int, Transfer] = {}
        self._cuts: list[tuple[int, int, float, float]] = []
        plan.begin(now_s, clients.known)
        for effect in clients.planning:
            effect.plan(plan)
        plan.sent_bits[0], plan.sent_bits[1] = plan.bits
        self._stops = clients.plan_known(plan)
        self._one_wait = clients.known == _END and plan.on_upload is None
        # Whether no event comes at the end of a member but the last.
        self._as_one = False
        if self._one_wait:
            self._until = [_END] * size
            self._plan_ends()
        if not self._as_one:
            call_next(self.env, self._begin)

    # What is known so far.

    @property
    def all_delivered(self) -> bool:
        if self._as_one:
            self._end_by_now()
        return self._delivered == self.size

    @property
    def ended_s(self) -> FloatArray:
        """Instant at which each participation ended; NaN for those in flight."""
        if self._as_one:
            self._end_by_now()
        if self._known_ends_s is None:
            self._known_ends_s = np.array(self._ends_s)
        return self._known_ends_s

    @property
    def ended(self) -> BoolArray:
        return ~np.isnan(self.ended_s)

    @property
    def arrived(self) -> BoolArray:
        """Whether each message up has arrived, in time or not."""
        uncut: BoolArray = self.plan.cut_in == NOT_CUT
        return uncut if not self._in_flight else self.ended & uncut

    @property
    def queued_s(self) -> FloatArray | float:
        """Seconds for which each member has waited, in all phases together; one number if none can."""
        if not self._clients.may_queue:
            return 0.0
        downlink_s, compute_s, uplink_s = self.plan.queue_s
        queued_s: FloatArray = downlink_s + compute_s + uplink_s
        return queued_s

    @property
    def outcome(self) -> Any:
        return self.plan.outcome

    @property
    def sent_bits(self) -> FloatArray:
        """Bits carried down and up, shape (2, n)."""
        self.count_bits()
        return self.plan.sent_bits

    def count_bits(self) -> None:
        """Work out the bits of transfers over own links that were cut short since the last call, all in one call."""
        if not self._cuts:
            return
        cuts, self._cuts = self._cuts, []
        for phase in {phase for phase, *_ in cuts}:
            member, start_s, elapsed_s = zip(*[rest for at, *rest in cuts if at == phase], strict=True)
            members = np.array(member, dtype=np.int64)
            carried = self.run.carried(self.plan, phase, members, np.array(start_s), np.array(elapsed_s))
            sent_bits = self.plan.sent_bits
            sent_bits[phase // 2, members] = np.minimum(carried, sent_bits[phase // 2, members])

    def settle(self, members: IntArray | None = None) -> None:
        """Let the effects take note of members that have ended, by default of all."""
        self.count_bits()
        if self._clients.settling:
            self.plan.end_s = self.ended_s
            for effect in self._clients.settling:
                effect.settle(self.plan, self.plan.everyone if members is None else members)

    def delivered(self, count: int) -> Event:
        if count not in self._milestones:
            if self._as_one and (count != self.size or not count):
                self._end_by_now()
                self._wait_for_each()
            self._milestones[count] = self.env.event()
            if self._delivered >= count:
                self._milestones[count].succeed()
        return self._milestones[count]

    def mark_late(self) -> None:
        """Mark the participations in flight as late, without ending them."""
        if self._in_flight:
            self.plan.outcome[~self.ended] = _LATE

    def cancel(self) -> bool:
        """Cancel the participations in flight, as late; return whether there was any.

        They end at this instant, before any other event of it.
        """
        if self._as_one:
            self._end_by_now()
        if not self._in_flight:
            return False
        self._as_one = False
        in_flight = [i for i, end_s in enumerate(self._ends_s) if math.isnan(end_s)]
        self.plan.outcome[in_flight] = _LATE
        call_next(self.env, partial(self._stop, in_flight))
        return True

    # Waits.

    def _begin(self, _event: Event) -> None:
        if self._one_wait:
            self._wait_for_each()
            return
        plan = self.plan
        self._ids, self._schedule = plan.client.tolist(), Schedule(self._clients, plan, self._stops)
        columns = plan.begun_s, plan.queue_s, plan.spent_s, plan.sent_bits
        self._begun_s, self._queue_s, self._spent_s, self._sent_bits = ([*map(numbers_of, each)] for each in columns)
        if self.run.shared[DOWNLINK] and self._clients.asked_together:
            self._enter_together()
        else:
            for i in range(self.size):
                if math.isnan(self._ends_s[i]):
                    self._go_on(i, DOWNLINK)

    def _plan_ends(self) -> None:
        """Find when each member ends, of whom all phases are known, and whether the last end is event enough."""
        plan, size = self.plan, self.size
        downlink_s, compute_s, uplink_s = plan.spent_s[0], plan.spent_s[1], plan.spent_s[2]
        self._ends_after_s = downlink_s + compute_s + uplink_s if self._clients.plain else plan.whole_s()
        for i, stop in self._stops.items():
            before_s = sum([plan.queue_s.item(phase, i) + plan.spent_s.item(phase, i) for phase in range(stop.phase)])
            by_clock = stop.since_start_s < math.inf
            self._ends_after_s[i] = max(0.0, stop.since_start_s) if by_clock else before_s + stop.after_s
        self._due_s, last_after_s = self.start_s + self._ends_after_s, largest(self._ends_after_s)
        self._last_s = self.start_s + last_after_s
        alone = plan.waits_for_all and plan.deadline_s == math.inf and not self._stops
        if self._on_end is None and (alone or (plan.ends_together and not self._ties())):
            self._as_one = True
            if not self._stops and size:
                call_after(self.env, last_after_s, self._end_by_now)

    def _ties(self) -> bool:
        """Return whether a member ends so soon after the deadline that it counts as the same instant."""
        deadline_s = self.plan.deadline_s
        if self._last_s <= deadline_s:
            return False
        after_s = self._due_s[self._due_s > deadline_s] - deadline_s
        return bool(after_s.min() <= _TIE_ULPS * math.ulp(deadline_s))

    def _wait_for_each(self) -> None:
        passed_s, stops, self._as_one = self.env.now - self.start_s, self._stops, False
        for i, after_s in enumerate(self._ends_after_s.tolist()):
            if math.isnan(self._ends_s[i]):
                if i in stops:
                    stopped = partial(self._stopped, i, stops[i])
                    self._awaited[i] = call_after(self.env, max(0.0, after_s - passed_s), stopped)
                elif after_s > passed_s:
                    self._awaited[i] = call_after(self.env, after_s - passed_s, self._waited, i)
                else:
                    self._end(i, self.env.now, delivered=True)

    def _end_by_now(self, _event: Event | None = None) -> None:
        """End the members whose time is over, each at its own instant, as far as no event has ended them."""
        if not self._as_one:
            return
        now_s, size, dropped = self.env.now, self.size, 0
        for i, stop in self._stops.items():
            if (end_s := self._due_s.item(i)) <= now_s:
                dropped += 1
                if math.isnan(self._ends_s[i]):
                    self._drop(i, stop.cause, stop, end_s)
        if now_s >= self._last_s:
            self._as_one, self._known_ends_s = False, self._due_s
            self._delivered, self._in_flight = size - dropped, 0
            if self._delivered == size and size in self._milestones:
                self._milestones[size].succeed()
            return
        self._ends_s = [end_s if end_s <= now_s else math.nan for end_s in self._due_s.tolist()]
        self._in_flight = sum(map(math.isnan, self._ends_s))
        self._known_ends_s, self._delivered = None, size - self._in_flight - dropped

    def _go_on(self, i: int, phase: int) -> None:
        """Begin a phase of member i, which is due now, and those after it whose times are known."""
        if phase == _END:
            self._end(i, self.env.now, delivered=True)
            return
        self._first[i], self._until[i], self._began_s[i] = phase, phase + 1, self.env.now
        if self.run.shared[phase]:
            self._enter(i, phase)
            return
        schedule = self._schedule
        if phase >= schedule.planned[i]:
            schedule.plan_late(i, phase, self.env.now, self._ends_s)
        elif phase >= self._clients.known:
            self._begun_s[phase][i] = self.env.now
        until = schedule.planned[i]
        if self.plan.on_upload is not None:
            if phase == UPLINK:
                self._upload(i, self.plan.on_upload)
                return
            until = min(until, UPLINK)
        self._until[i] = until
        wait_s = schedule.takes_s[phase][i]
        for later in range(phase + 1, until):
            wait_s += schedule.takes_s[later][i]
        stop = schedule.stops.get(i)
        if stop is not None and stop.phase < until:
            self._awaited[i] = self._until_stop(i, phase, stop)
        # Phases of other members that start at this instant come before the next phase of this one.
        elif wait_s > 0 or (schedule.starts is not None and until < _END):
            self._awaited[i] = call_after(self.env, wait_s, self._waited, i)
        else:
            self._go_on(i, until)

    def _until_stop(self, i: int, phase: int, stop: Stop) -> Event:
        """Wait until member i, whose phase begins now, ends early."""
        left_s = self._schedule.until_stop_s(i, phase, stop, float(self.env.now))
        return call_after(self.env, left_s, partial(self._stopped, i, stop))

    def _upload(self, i: int, on_upload: Callable[[int], None]) -> None:
        """Wait until the message up of member i begins over its own link, then for its end."""
        queue_s, takes_s, stop = (
            float(self.plan.queue_s[UPLINK, i]),
            self._schedule.takes_s[UPLINK][i],
            self._schedule.stops.get(i),
        )

        def flows(event: Event | None) -> None:
            if event is None or self._awaited[i] is event:
                on_upload(i)
                if stop is not None:
                    left_s = stop.after_s - queue_s
                    self._awaited[i] = call_after(self.env, left_s, partial(self._stopped, i, stop))
                elif takes_s > 0:
                    self._awaited[i] = call_after(self.env, takes_s - queue_s, self._waited, i)
                else:
                    self._go_on(i, _END)

        if queue_s == 0:
            flows(None)
        elif stop is not None and stop.after_s < queue_s:
            self._awaited[i] = call_after(self.env, stop.after_s, partial(self._stopped, i, stop))
        else:
            self._awaited[i] = call_after(self.env, queue_s, flows)

    def _waited(self, event: Event) -> None:
        i: Any = event.value
        if self._awaited[i] is not event:
            return
        if self._until[i] == _END:
            self._end(i, self.env.now, delivered=True)
        else:
            self._go_on(i, self._until[i])

    def _stopped(self, i: int, stop: Stop, event: Event) -> None:
        if self._awaited[i] is event:
            self._drop(i, stop.cause, stop)

    # Phases over the shared medium.

    def _enter_together(self) -> None:
        """Begin the downlinks of all members over the shared medium, and ask effects about them in one call."""
        plan, members, now_s = self.plan, self.plan.everyone, float(self.env.now)
        plan.begun_s[DOWNLINK] = now_s
        self._clients.prepare(plan, DOWNLINK, members, slice(None))
        limits: defaultdict[int, list[tuple[Effect, Limit]]] = defaultdict(list)
        for effect in self._clients.asked[DOWNLINK].limiting:
            if (limit := effect.limit(plan, DOWNLINK, members)) is not None:
                values = [np.broadcast_to(each, members.shape).tolist() for each in limit[:-1]]
                for i, (after_s, active_s, bits, since_s) in enumerate(zip(*values, strict=True)):
                    if min(after_s, active_s, bits, since_s) < NEVER or limit.left_s is not None:
                        limits[i].append((effect, Limit(after_s, active_s, bits, since_s, limit.left_s)))
        waits_s = zip(plan.queue_s[DOWNLINK].tolist(), plan.setup_s[DOWNLINK].tolist(), strict=True)
        self._until = [DOWNLINK + 1] * self.size
        for i, (queue_s, setup_s) in enumerate(waits_s):
            if math.isnan(self._ends_s[i]):
                if queue_s or i in limits:
                    self._go_on_air(i, DOWNLINK, queue_s, setup_s, limits[i])
                else:
                    self._send(i, DOWNLINK, setup_s)

    def _enter(self, i: int, phase: int) -> None:
        """Begin a phase over the shared medium, which is due now."""
        plan, clients = self.plan, self._clients
        self._begun_s[phase][i] = self._began_s[i]
        if clients.unasked[phase]:
            self._send(i, phase, 0.0)
            return
        queue_s, setup_s = clients.prepare_one(plan, phase, i)
        limits = []
        for effect in clients.asked[phase].limiting:
            if (limit := effect.limit(plan, phase, i)) is not None:
                limits.append((effect, limit))
        if queue_s or limits:
            self._go_on_air(i, phase, queue_s, setup_s, limits)
        else:
            self._send(i, phase, setup_s)

    def _go_on_air(
        self, i: int, phase: int, queue_s: float, setup_s: float, limits: Sequence[tuple[Effect, Limit]]
    ) -> None:
        """Begin a transfer over the shared medium after its waits, and end it where its limits say."""
        for effect, limit in limits:
            after_s = one(limit.after_s)
            if limit.since_start_s is not NEVER:
                after_s = min(after_s, one(limit.since_start_s) - (self._began_s[i] - self.start_s))
            if after_s < NEVER:
                # A transfer that ends at this instant has ended.
                call_after_others(self.env, max(0.0, after_s), partial(self._drop_in, i, phase, effect))
        if queue_s > 0:
            self._awaited[i] = call_after(self.env, queue_s, partial(self._queued, i, phase, setup_s, limits))
        else:
            self._send(i, phase, setup_s, limits)

    def _queued(self, i: int, phase: int, setup_s: float, limits: Sequence[tuple[Effect, Limit]], event: Event) -> None:
        if self._awaited[i] is event:
            self._send(i, phase, setup_s, limits)

    def _send(self, i: int, phase: int, setup_s: float, limits: Sequence[tuple[Effect, Limit]] = ()) -> None:
        """Start a transfer over the shared medium, of as many bits as its limits allow."""
        plan, short = self.plan, None
        if phase == UPLINK and plan.on_upload is not None:
            plan.on_upload(i)
        sizes: Any = plan.bits[phase // 2]
        bits: float = sizes.item(i) if type(sizes) is np.ndarray else sizes
        for effect, limit in limits:
            if (least := one(limit.bits)) < bits:
                bits, short = least, effect
        transfer = self._on_air[i] = self.run.transfer(phase, self._ids[i], bits, setup_s)
        if phase == DOWNLINK and self._schedule.starts is not None:
            self._schedule.announce(i, transfer)
        began = self.env.now, setup_s
        for effect, limit in limits:
            if limit.left_s is not None:
                left_s = partial(limit.left_s, i)
                self._look_after(left_s(0.0, 0.0, 0.0), i, transfer, effect, began, left_s)
            if (active_s := one(limit.active_s)) < NEVER:
                self._look_after(active_s, i, transfer, effect, began, _active(active_s))
        self._awaited[i] = done = transfer.done
        if done.callbacks is None:
            self._carried(i, phase, short, done)
        else:
            done.callbacks.append(partial(self._carried, i, phase, short))

    def _look_after(
        self, delay_s: float, i: int, transfer: Transfer, effect: Effect, began: tuple[float, float], left_s: Left
    ) -> None:
        if delay_s < NEVER:
            call_after(self.env, max(0.0, delay_s), partial(self._look, i, transfer, effect, began, left_s))

    def _look(
        self, i: int, transfer: Transfer, effect: Effect, began: tuple[float, float], left_s: Left, _event: Event
    ) -> None:
        """End a transfer that has reached a limit; one that has queued or shared the medium meanwhile may go on."""
        if self._on_air.get(i) is not transfer:
            return
        began_s, setup_s = began
        spent_s = max(0.0, self.env.now - began_s - transfer.queued_s())
        more_s = left_s(spent_s, _on_air_s(transfer, spent_s, setup_s), transfer.sent_bits())
        if more_s > _SLACK_ULPS * np.spacing(self.env.now):
            self._look_after(more_s, i, transfer, effect, began, left_s)
        else:
            self._drop(i, effect)

    def _carried(self, i: int, phase: int, short: Effect | None, event: Event) -> None:
        if self._awaited[i] is not event:
            return
        if short is not None:
            self._drop(i, short)
            return
        self._note_carried(i, phase, self._on_air.pop(i))
        for effect in self._clients.asked[phase].passing:
            ends = effect.passed(self.plan, phase, i)
            if ends is not None and any_of(ends):
                self.plan.outcome[i], self.plan.cause[i] = _DROPPED, effect
                self._end_in(i, phase, self.env.now)
                return
        self._go_on(i, phase + 1)

    def _leave_air(self, i: int, phase: int) -> None:
        """Free the medium before all is carried."""
        transfer = self._on_air.pop(i)
        transfer.cancel()
        self._note_carried(i, phase, transfer)

    def _note_carried(self, i: int, phase: int, transfer: Transfer) -> None:
        """Record how long a transfer has taken, and what was carried."""
        plan, queue_s = self.plan, self._queue_s[phase][i]
        if queued_s := transfer.queued_s():
            self._queue_s[phase][i] = queue_s = queue_s + queued_s
        spent_s = self.env.now - self._began_s[i] - queue_s
        self._spent_s[phase][i] = spent_s = spent_s if spent_s > 0.0 else 0.0
        if plan.counts_air:
            plan.on_air_s[phase // 2, i] = _on_air_s(transfer, spent_s, plan.setup_s.item(phase, i))
        self._sent_bits[phase // 2][i] = transfer.sent_bits()

    # Ends.

    def _end(self, i: int, end_s: float, *, delivered: bool) -> None:
        self._awaited[i] = self._known_ends_s = None
        self._ends_s[i] = end_s
        self._in_flight -= 1
        if delivered:
            self._delivered += 1
            if self._delivered in self._milestones:
                self._milestones[self._delivered].succeed()
        if self._on_end is not None:
            self._on_end(i, delivered)

    def _drop_in(self, i: int, phase: int, cause: Effect, _event: Event) -> None:
        if self._first[i] == phase and math.isnan(self._ends_s[i]):
            self._drop(i, cause)

    def _drop(self, i: int, cause: Effect, stop: Stop | None = None, end_s: float | None = None) -> None:
        self.plan.outcome[i], self.plan.cause[i] = _DROPPED, cause
        self._cut(i, stop, self.env.now if end_s is None else end_s)

    def _stop(self, members: list[int], _event: Event) -> None:
        for i in members:
            if math.isnan(self._ends_s[i]):
                self._cut(i, None, self.env.now)

    def _cut(self, i: int, stop: Stop | None, end_s: float) -> None:
        phase, plan = self._first[i], self.plan
        if i in self._on_air:
            self._leave_air(i, phase)
        else:
            elapsed_s = end_s - self._began_s[i]
            while phase < self._until[i] - 1:
                takes_s = plan.queue_s.item(phase, i) + plan.spent_s.item(phase, i)
                if elapsed_s < takes_s if stop is None else phase == stop.phase:
                    break
                elapsed_s = max(0.0, elapsed_s - takes_s)
                phase += 1
            self._shorten(i, phase, elapsed_s, stop, end_s)
        self._end_in(i, phase, end_s)

    def _end_in(self, i: int, phase: int, end_s: float) -> None:
        """End the participation of member i, which has not passed a phase."""
        plan, later = self.plan, phase + 1
        plan.spent_s[later:, i] = plan.queue_s[later:, i] = plan.sent_bits[phase // 2 + 1 :, i] = 0.0
        plan.begun_s[later:, i] = math.nan
        plan.cut_in[i] = phase
        self._end(i, end_s, delivered=False)

    def _shorten(self, i: int, phase: int, elapsed_s: float, stop: Stop | None, end_s: float) -> None:
        """Note that a phase of member i over its own link, or a wait before one, was cut short."""
        plan = self.plan
        queue_s, planned_s = float(plan.queue_s[phase, i]), plan.spent_s[phase, i]
        plan.queue_s[phase, i] = waited_s = min(elapsed_s, queue_s)
        elapsed_s -= waited_s
        plan.spent_s[phase, i] = min(elapsed_s, planned_s)
        if self.run.shared[phase]:
            plan.spent_s[phase, i] = plan.sent_bits[phase // 2, i] = 0.0
        elif phase != COMPUTE:
            # A stop is known beyond the resolution of the clock.
            active_s = elapsed_s if stop is None else max(0.0, stop.after_s - queue_s)
            if stop is not None and stop.most_bits < math.inf:
                plan.sent_bits[phase // 2, i] = min(plan.sent_bits[phase // 2, i], stop.most_bits)
            elif active_s < planned_s:
                self._cuts.append((phase, i, end_s - elapsed_s, active_s))


def _on_air_s(transfer: Transfer, spent_s: float, setup_s: float) -> float:
    """Return the seconds on the air of set-up and transfer together."""
    return min(spent_s, setup_s) + transfer.on_air_s(max(0.0, spent_s - setup_s))


def _active(active_s: float) -> Left:
    """Return what is left of a number of seconds of set-up and transfer."""
    return lambda spent_s, _on_air_s, _sent_bits: active_s - spent_s
