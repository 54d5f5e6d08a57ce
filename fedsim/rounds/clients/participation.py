"""One client in one round: downlink, compute, uplink, each a timed wait that may end early.

The waits of a whole cohort are planned at once, as arrays, before the first of them begins. A client in flight has one
pending event, the end of its present wait, and no process of its own; if the server waits for all clients, and nothing
else depends on one of them, the last end is the only event. Consecutive phases of known duration, without a
hook at their start, are one wait; the phase in which it was interrupted follows by arithmetic.
A transfer over a shared medium, of unknown duration, is a wait of its own. A participation has one of three outcomes:
delivered, late (the server stopped waiting and cancelled it) or dropped (the client left, or its battery ran empty).
The server cannot tell late from dropped; only the history can.
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final, cast

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import call_after, call_next
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import COMPUTE, NOT_CUT, PHASES, Outcome
from fedsim.network.contracts import Links
from fedsim.network.transfers import Transfer
from fedsim.per_client import Values
from fedsim.rounds.clients.cut_transfers import CutTransfers
from fedsim.rounds.clients.draining import Drain
from fedsim.rounds.clients.interruptions import BatteryEmpty, Carried, Interruptions
from fedsim.rounds.clients.link_outages import PhaseHook, waits_of
from fedsim.rounds.clients.on_air import OnAir
from fedsim.rounds.clients.records import ParticipationRecords

# Plain integers: assigned to an array several times faster than members of an enumeration.
_DELIVERED: Final = int(Outcome.DELIVERED)
_LATE: Final = int(Outcome.LATE)
_DROPPED: Final = int(Outcome.DROPPED)
OnEnd = Callable[[int, bool], None]
"""Called with a client's position, and whether it has delivered, at the end of its participation."""


class Participations:
    """The participations of a cohort of n clients: their waits, and the times, bits and outcomes so far.

    The columns hold for participations that have ended: seconds in each phase without queues, shape (3, n), bits down
    and up, shape (2, n), and the charge left in each battery.
    """

    def __init__(
        self,
        env: Environment,
        planned_s: FloatArray,
        leaves_after_s: FloatArray | None,
        hooks: Mapping[int, PhaseHook],
        bits: tuple[Values, Values],
        planned_compute_s: FloatArray,
        interruptions: Interruptions | None,
        still_available: Callable[[int], bool] | None,
        demand: EnergyDemand | None,
        carried: Carried,
        on_end: OnEnd | None,
        *,
        drain: Drain | None = None,
        draw: int = 0,
        links: Links | None = None,
        all_awaited: bool = False,
    ) -> None:
        size = planned_s.shape[1]
        self.env, self.start_s, self.bits, self.demand, self._on_end = env, env.now, bits, demand, on_end
        self._cuts, self.draw = CutTransfers(carried), draw
        self.links = links
        # What an uninterrupted participation will have spent and sent; an interruption corrects it.
        self.spent_s = planned_s.copy()
        amounts = np.zeros((5, size))
        self._sent_bits = amounts[:2]
        self._sent_bits[0], self._sent_bits[1] = bits
        self.queue_s, self.energy_j, self.left_j = amounts[2], amounts[3], amounts[4]
        self.outcome = np.empty(size, dtype=np.int8)
        self.cut_in = np.empty(size, dtype=np.int8)
        self.outcome.fill(_DELIVERED)
        self.cut_in.fill(NOT_CUT)
        self.emptied = np.zeros(size, dtype=np.bool_)
        self.planned_compute_s = planned_compute_s
        self._interruptions, self._still_available = interruptions, still_available
        self._drain = drain
        self._delivered, self._in_flight = 0, size
        self._milestones: dict[int, Event] = {}
        self._ends_s = [math.nan] * size
        self._known_ends_s: FloatArray | None = None
        # Of each client: place of its present wait in `_waits`, the start of that wait, and the event of its end.
        self._waits = waits_of(hooks)
        self._place, self._began_s = [-1] * size, [self.start_s] * size
        self._awaited: list[Event | None] = [None] * size
        task_s: FloatArray = planned_s[0] + planned_s[1] + planned_s[2]
        self._waits_s: list[list[float]] = (
            [planned_s[first:end].sum(axis=0).tolist() for first, end, _ in self._waits] if hooks else [task_s.tolist()]
        )
        undisturbed = not hooks and interruptions is None and leaves_after_s is None and still_available is None
        # The event of the last end, as long as nothing depends on the others.
        self._shared: Event | None = None
        if all_awaited and undisturbed and on_end is None:
            self._shared = call_after(env, max(self._waits_s[0], default=0.0), self._end_by_now)
            self._place, self._awaited = [0] * size, [self._shared] * size
        else:
            call_next(env, self._begin)
        if leaves_after_s is not None:
            for i in np.flatnonzero(leaves_after_s < task_s).tolist():
                call_after(env, float(leaves_after_s[i]), self._leave, i)

    @cached_property
    def _on_air(self) -> OnAir:
        return OnAir(self.env, self._interruptions, self._drain)

    @property
    def size(self) -> int:
        return len(self._place)

    @property
    def all_delivered(self) -> bool:
        if self._shared is not None:
            self._end_by_now()
        return self._delivered == len(self._place)

    @property
    def ended_s(self) -> FloatArray:
        """Instant at which each participation ended; NaN for those in flight."""
        self._end_by_now()
        if self._known_ends_s is None:
            self._known_ends_s = np.array(self._ends_s)
        return self._known_ends_s

    @property
    def ended(self) -> BoolArray:
        return ~np.isnan(self.ended_s)

    @property
    def arrived(self) -> BoolArray:
        """Whether each update has arrived, in time or not."""
        uncut: BoolArray = self.cut_in == NOT_CUT
        return uncut if not self._in_flight else self.ended & uncut

    @property
    def sent_bits(self) -> FloatArray:
        """Bits carried down and up, shape (2, n)."""
        self.count_bits()
        return self._sent_bits

    def count_bits(self) -> None:
        """Work out the bits of the dedicated transfers that were cut short since the last call."""
        if self._cuts.new:
            self._cuts.count(self._sent_bits)

    def records(self, client: IntArray, part: IntArray | None = None) -> ParticipationRecords:
        """Return the records of participations that have ended, at some positions or of the whole cohort."""
        known = client, self.draw, self.links, self.start_s, self.env.now, self.bits
        spent = self.ended_s, self.spent_s, self.queue_s, self.sent_bits, self.outcome, self.cut_in
        paid = self.planned_compute_s, self.emptied, self.energy_j, self.left_j, self.demand
        records = ParticipationRecords(*known, *spent, *paid)
        return records if part is None else records.of(part)

    def delivered(self, count: int) -> Event:
        """Return the event that is triggered when a number of clients have delivered."""
        if count not in self._milestones:
            self._end_by_now()
            if self._shared is not None and count != self.size:
                self._begin_each()
            self._milestones[count] = self.env.event()
            if self._delivered >= count:
                self._milestones[count].succeed()
        return self._milestones[count]

    def mark_late(self) -> None:
        """Mark the participations in flight as late, without ending them."""
        if self._in_flight:
            self.outcome[~self.ended] = _LATE

    def cancel(self) -> bool:
        """Cancel the participations in flight, as late; return whether there was any.

        They end at this instant, before any other event of it.
        """
        self._end_by_now()
        if not self._in_flight:
            return False
        self._shared = None
        in_flight = [i for i, event in enumerate(self._awaited) if event is not None]
        self.outcome[in_flight] = _LATE
        call_next(self.env, partial(self._stop, in_flight))
        return True

    def _begin(self, _event: Event) -> None:
        if len(self._waits) > 1 or self._interruptions is not None:
            for i in range(self.size):
                self._go_on(i)
            return
        # The usual case, one wait without a hook, as `_go_on` would begin it.
        self._place = [0] * self.size
        self._begin_each()

    def _begin_each(self) -> None:
        """Wait for the end of each client's only wait, where none or the shared event is awaited."""
        passed_s = self.env.now - self.start_s
        for i, wait_s in enumerate(self._waits_s[0]):
            if self._awaited[i] is self._shared:
                if wait_s > passed_s:
                    self._awaited[i] = call_after(self.env, wait_s - passed_s, self._waited, i)
                else:
                    self._go_on(i)
        self._shared = None

    def _end_by_now(self, _event: Event | None = None) -> None:
        """End the participations that share an event and whose wait is over, each at its own instant."""
        shared, start_s, waits_s, now_s = self._shared, self.start_s, self._waits_s[0], self.env.now
        if shared is None or now_s < start_s + min(waits_s, default=0.0):
            return
        size = len(waits_s)
        if now_s < start_s + max(waits_s, default=0.0):
            ends_s = [start_s + wait_s for wait_s in waits_s]
            self._awaited = awaited = [None if end_s <= now_s else shared for end_s in ends_s]
            self._delivered = delivered = awaited.count(None)
            self._known_ends_s, self._in_flight = None, size - delivered
            self._ends_s = [end_s if end_s <= now_s else math.nan for end_s in ends_s]
            return
        self._known_ends_s = start_s + np.array(waits_s)
        self._awaited, self._shared = [None] * size, None
        self._delivered, self._in_flight = size, 0
        if size in self._milestones:
            self._milestones[size].succeed()

    def _go_on(self, i: int) -> None:
        """Begin the next wait of client i that takes time; after the last one, end its participation."""
        waits, meters = self._waits, self._on_air.meters
        while (place := self._place[i] + 1) < len(waits):
            self._place[i], self._began_s[i] = place, self.env.now
            (phase, end, hook), wait_s, transfer = waits[place], self._waits_s[place][i], None
            alone = meters and end == phase + 1
            if hook is not None:
                if alone:
                    self._on_air.meter(i, phase, math.inf)
                transfer, wait_s = hook(i)
                if transfer is not None:
                    self._carry(i, phase, transfer)
                    return
                self.spent_s[phase, i] = wait_s
            if alone:
                self._on_air.meter(i, phase, wait_s)
            if self._interruptions is not None:
                self._watch(i, phase, end, wait_s, self._interruptions)
                return
            # Phases of other clients that start at this instant come before the next phase of this one.
            if wait_s > 0 or (hook is not None and end < len(PHASES)):
                self._awaited[i] = call_after(self.env, wait_s, self._waited, i)
                return
        if self._still_available is not None and not self._still_available(i):
            self._drop(i)
        else:
            self._end(i, self.env.now, delivered=True)

    def _waited(self, event: Event) -> None:
        i: Any = event.value
        if self._awaited[i] is event:
            self._go_on(i)

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

    def _carry(self, i: int, phase: int, transfer: Transfer) -> None:
        self._on_air.open(i, phase, transfer, self._drop)
        self._awaited[i] = transfer.done
        if transfer.done.callbacks is None:
            self._carried(i, phase, transfer.done)
        else:
            transfer.done.callbacks.append(partial(self._carried, i, phase))

    def _carried(self, i: int, phase: int, event: Event) -> None:
        if self._awaited[i] is not event:
            return
        self._close_transfer(i, phase)
        if (interruptions := self._interruptions) is not None:
            interruptions.passed(i, phase, self.env.now - self._began_s[i])
            if interruptions.runs_empty(i, phase):
                self._drop(i, empty=True)
                return
        self._go_on(i)

    def _close_transfer(self, i: int, phase: int) -> None:
        """Free the medium, however the wait for a transfer has ended, and record what was carried."""
        transfer = self._on_air.close(i)
        queued_s = transfer.queued_s()
        if queued_s:
            self.queue_s[i] += queued_s
        self.spent_s[phase, i] = max(0.0, self.env.now - self._began_s[i] - queued_s)
        self._sent_bits[phase // 2, i] = transfer.sent_bits()

    def _watch(self, i: int, phase: int, end: int, wait_s: float, interruptions: Interruptions) -> None:
        """Wait for what was planned, or until an interruption that comes before."""
        cut = interruptions.first_cut(i, phase, self.spent_s[phase:end, i].tolist())
        if cut is not None:
            self._awaited[i] = call_after(self.env, cut[0], partial(self._broken, i, cut[1]))
        else:
            self._awaited[i] = call_after(self.env, wait_s, partial(self._passed, i, phase, wait_s))

    def _broken(self, i: int, empty: BatteryEmpty | None, event: Event) -> None:
        if self._awaited[i] is event:
            self._drop(i, empty=empty is not None, cause=empty)

    def _passed(self, i: int, phase: int, wait_s: float, event: Event) -> None:
        if self._awaited[i] is event:
            cast(Interruptions, self._interruptions).passed(i, phase, wait_s)
            self._go_on(i)

    def _correct(self, i: int, phase: int, elapsed_s: float, empty: BatteryEmpty | None) -> None:
        """Correct the plan of a client that was interrupted in a wait."""
        last = next(end for first, end, _ in self._waits if first == phase) - 1
        while phase < last and (elapsed_s >= self.spent_s[phase, i] if empty is None else phase < empty.phase):
            elapsed_s = max(0.0, elapsed_s - self.spent_s[phase, i])
            phase += 1
        planned_s = self.spent_s[phase, i]
        self.spent_s[phase, i] = min(elapsed_s, planned_s)
        if phase != COMPUTE:
            if empty is not None:
                self._sent_bits[phase // 2, i] *= empty.of_bits
            elif elapsed_s < planned_s:
                self._cuts.add(phase, i, self.env.now - elapsed_s, elapsed_s)
        self.spent_s[phase + 1 :, i] = self._sent_bits[phase // 2 + 1 :, i] = 0.0
        self.cut_in[i] = phase

    def _leave(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._awaited[i] is not None:
            self._drop(i)

    def _drop(self, i: int, *, empty: bool = False, cause: BatteryEmpty | None = None) -> None:
        self.outcome[i], self.emptied[i] = _DROPPED, empty
        self._cut(i, cause)

    def _stop(self, members: list[int], _event: Event) -> None:
        for i in members:
            if self._awaited[i] is not None:
                self._cut(i, None)

    def _cut(self, i: int, empty: BatteryEmpty | None) -> None:
        """End the participation of client i in its present wait."""
        (phase, end, _), elapsed_s = self._waits[self._place[i]], self.env.now - self._began_s[i]
        if i in self._on_air:
            self._close_transfer(i, phase)
        elif self._interruptions is not None and empty is None and not self.emptied[i]:
            empty = self._interruptions.empty_by(i, phase, self.spent_s[phase:end, i].tolist(), elapsed_s)
        self._correct(i, phase, elapsed_s, empty)
        self._end(i, self.env.now, delivered=False)
