"""One client in one round: downlink, compute, uplink, each a timed wait that may end early.

The waits of a whole cohort are planned at once, as arrays, before its processes start. Consecutive phases of known
duration, without a hook at their start, are one wait; the phase in which it was interrupted follows by arithmetic.
A transfer over a shared medium, of unknown duration, is a wait of its own. A participation has one of three outcomes:
delivered, late (the server stopped waiting and cancelled it) or dropped (the client left, or its battery ran empty).
The server cannot tell late from dropped; only the history can.
"""

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process, Timeout

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import call_after
from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, PHASES, UPLINK, Outcome
from fedsim.network.contracts import Transfer
from fedsim.rounds.clients.interruptions import BatteryEmpty, Interruptions
from fedsim.rounds.clients.link_outages import PhaseStart

PhaseHook = Callable[[int], PhaseStart]
"""Called with a client's position in the cohort at the start of a phase."""
OnEnd = Callable[[int, bool], None]
"""Called with a client's position, and whether it has delivered, at the end of its participation."""


class DroppedOut(Exception):  # noqa: N818 - a dropout is no error
    """Ends the process of a client that drops out by itself; `cause` is that of an interrupt."""

    def __init__(self, cause: BatteryEmpty | None) -> None:
        super().__init__()
        self.cause = cause


@dataclass(frozen=True)
class ParticipationRecords:
    """What m clients of one cohort have spent and sent; the columns are those of `Participations`.

    Attributes
    ----------
    client : ids, shape (m,)
    start_s, now_s : start of the participations, and instant of the record
    bits : sizes of the message down and of the message up
    demand : energy that the clients drew from their batteries; None without energy
    """

    client: IntArray
    start_s: float
    now_s: float
    bits: tuple[float, float]
    ended_s: FloatArray
    spent_s: FloatArray
    queue_s: FloatArray
    sent_bits: FloatArray
    outcome: NDArray[np.int8]
    cut_in: NDArray[np.int8]
    planned_compute_s: FloatArray
    emptied: BoolArray
    energy_j: FloatArray
    left_j: FloatArray
    demand: EnergyDemand | None

    @property
    def arrived(self) -> BoolArray:
        """Whether each answer has arrived, in time or not, shape (m,)."""
        arrived: BoolArray = self.cut_in == NOT_CUT
        return arrived


class Participations:
    """The participations of a cohort of n clients: their processes, and the times, bits and outcomes so far.

    Parameters
    ----------
    env : Environment
    planned_s : array of shape (3, n)
        Seconds of downlink, compute and uplink of each client if nothing ends them early; inf where unknown.
    leaves_after_s : array of shape (n,)
        Seconds from the start until each client drops out; inf for never.
    hooks : mapping of phase to hook
        A phase without one takes what is planned.
    bits : sizes of the message down and of the message up
    planned_compute_s : array of shape (n,)
        Duration of each client's work if nothing ends it early; falls if the client shortens its work.
    interruptions : what else ends phases early, batteries among them; None for nothing
    still_available : called with a client's position at the end of its task; whether the client is still available
    demand : energy that the clients draw from their batteries; None without energy
    on_end : called at the end of each participation; None for nothing

    Attributes
    ----------
    spent_s : array of shape (3, n), seconds in each phase, without waiting in queues
    queue_s : array of shape (n,), seconds of waiting for a free medium
    sent_bits : array of shape (2, n), bits carried down and up; of a planned wait cut short, in proportion to time
    outcome : array of shape (n,) of `Outcome`
    cut_in : array of shape (n,), phase in which a participation was cut short, `NOT_CUT` for the others
    emptied : array of shape (n,), whether a client's battery ran empty
    energy_j, left_j : arrays of shape (n,), energy that each battery paid and its charge after that; 0 until
        `Dispatcher.finalize`, and without energy

    They hold for participations that have ended.
    """

    def __init__(
        self,
        env: Environment,
        planned_s: FloatArray,
        leaves_after_s: FloatArray,
        hooks: Mapping[int, PhaseHook],
        bits: tuple[float, float],
        planned_compute_s: FloatArray,
        interruptions: Interruptions | None,
        still_available: Callable[[int], bool] | None,
        demand: EnergyDemand | None,
        on_end: OnEnd | None,
    ) -> None:
        size = planned_s.shape[1]
        self.env, self.start_s, self.bits, self.demand, self._on_end = env, env.now, bits, demand, on_end
        # What an uninterrupted participation will have spent and sent; an interruption corrects it.
        self.spent_s = planned_s.copy()
        self.sent_bits = np.repeat(np.array(bits)[:, None], size, axis=1)
        self.queue_s = np.zeros(size)
        self.outcome = np.full(size, Outcome.DELIVERED, dtype=np.int8)
        self.cut_in = np.full(size, NOT_CUT, dtype=np.int8)
        self.emptied = np.zeros(size, dtype=np.bool_)
        self.energy_j, self.left_j = np.zeros((2, size))
        self.planned_compute_s = planned_compute_s
        self._interruptions, self._still_available = interruptions, still_available
        self._hazards: dict[int, Event] = {}
        self._waits = _waits(hooks)
        self._delivered, self._in_flight = 0, size
        self._milestones: dict[int, Event] = {}
        self._ended_s = [math.nan] * size
        waits_s = [planned_s[first:end].sum(axis=0) for first, end, _ in self._waits]
        self._processes: list[Process]
        if hooks or interruptions is not None or still_available is not None:
            rows = np.stack(waits_s, axis=1).tolist()
            self._processes = [Process(env, self._participate(i, row)) for i, row in enumerate(rows)]
        else:
            self._processes = [Process(env, self._wait(i, wait_s)) for i, wait_s in enumerate(waits_s[0].tolist())]
        for i in np.flatnonzero(leaves_after_s < planned_s.sum(axis=0)).tolist():
            call_after(env, float(leaves_after_s[i]), self._leave, i)

    @property
    def ended_s(self) -> FloatArray:
        """Instant at which each participation ended, shape (n,); NaN for those in flight."""
        return np.array(self._ended_s)

    @property
    def ended(self) -> BoolArray:
        """Whether each participation has ended, shape (n,)."""
        return ~np.isnan(self.ended_s)

    @property
    def arrived(self) -> BoolArray:
        """Whether each update has arrived, in time or not, shape (n,)."""
        uncut: BoolArray = self.cut_in == NOT_CUT
        return self.ended & uncut

    def done(self, members: IntArray) -> FloatArray:
        """Return the share of each phase's bits or work that was done, shape (3, m).

        Parameters
        ----------
        members : positions of participations that have ended, shape (m,)
        """
        planned_s, worked_s = self.planned_compute_s[members], self.spent_s[COMPUTE, members]
        cut_in = self.cut_in[members]
        done: FloatArray = ((cut_in == NOT_CUT) | (cut_in > np.arange(len(PHASES))[:, None])).astype(np.float64)
        cut = (cut_in == COMPUTE) & (planned_s > 0)
        done[COMPUTE, cut] = worked_s[cut] / planned_s[cut]
        for phase, sent_bits, bits in zip((DOWNLINK, UPLINK), self.sent_bits, self.bits, strict=True):
            if bits > 0:
                done[phase] = sent_bits[members] / bits
        return done

    def records(self, client: IntArray, members: IntArray) -> ParticipationRecords:
        """Return the records of participations that have ended.

        Parameters
        ----------
        client : ids of the whole cohort, shape (n,)
        members : positions of the participations, shape (m,)
        """
        demand = self.demand
        if demand is not None:
            demand = EnergyDemand(
                demand.client[members], demand.charge_j[members], demand.cost_j[:, members], demand.samples[members]
            )
        return ParticipationRecords(
            client=client[members],
            start_s=self.start_s,
            now_s=self.env.now,
            bits=self.bits,
            ended_s=self.ended_s[members],
            spent_s=self.spent_s[:, members],
            queue_s=self.queue_s[members],
            sent_bits=self.sent_bits[:, members],
            outcome=self.outcome[members],
            cut_in=self.cut_in[members],
            planned_compute_s=self.planned_compute_s[members],
            emptied=self.emptied[members],
            energy_j=self.energy_j[members],
            left_j=self.left_j[members],
            demand=demand,
        )

    def delivered(self, count: int) -> Event:
        """Return the event that is triggered when a number of clients have delivered."""
        if count not in self._milestones:
            self._milestones[count] = self.env.event()
            if self._delivered >= count:
                self._milestones[count].succeed()
        return self._milestones[count]

    def mark_late(self) -> None:
        """Mark the participations in flight as late, without ending them."""
        self.outcome[~self.ended] = Outcome.LATE

    def cancel(self) -> bool:
        """Cancel the participations in flight, as late; return whether there was any."""
        if not self._in_flight:
            return False
        in_flight = [i for i, process in enumerate(self._processes) if process.is_alive]
        for i in in_flight:
            self._interrupt(i, Outcome.LATE)
        return bool(in_flight)

    def _participate(self, i: int, waits_s: list[float]) -> Generator[Event, Any, None]:
        env, phase, began_s = self.env, DOWNLINK, self.env.now
        try:
            for (phase, end, hook), planned_s in zip(self._waits, waits_s, strict=True):
                began_s, transfer, wait_s = env.now, None, planned_s
                if hook is not None:
                    transfer, wait_s = hook(i)
                    if transfer is None:
                        self.spent_s[phase, i] = wait_s
                if transfer is not None:
                    yield from self._carry(i, phase, transfer)
                elif self._interruptions is not None:
                    yield from self._wait_watched(i, phase, end, wait_s, self._interruptions)
                elif wait_s > 0 or (hook is not None and end < len(PHASES)):
                    # Phases of other clients that start at this instant come before the next phase of this one.
                    yield env.timeout(wait_s)
            if self._still_available is not None and not self._still_available(i):
                self._drop(i)
        except (Interrupt, DroppedOut) as cut:
            self._correct(i, phase, env.now - began_s, cut.cause)
            self._end(i, delivered=False)
        else:
            self._end(i, delivered=True)

    def _wait(self, i: int, wait_s: float) -> Generator[Event, Any, None]:
        """Participate where all phases are one wait that only an interrupt ends early: the usual case."""
        try:
            if wait_s > 0:
                yield Timeout(self.env, wait_s)
        except Interrupt as cut:
            self._correct(i, DOWNLINK, self.env.now - self.start_s, cut.cause)
            self._end(i, delivered=False)
        else:
            self._end(i, delivered=True)

    def _end(self, i: int, *, delivered: bool) -> None:
        self._ended_s[i] = self.env.now
        self._in_flight -= 1
        if delivered:
            self._delivered += 1
            if self._delivered in self._milestones:
                self._milestones[self._delivered].succeed()
        if self._on_end is not None:
            self._on_end(i, delivered)

    def _carry(self, i: int, phase: int, transfer: Transfer) -> Generator[Event, Any, None]:
        """Wait for a transfer; however the wait ends, free the medium and record what was carried."""
        began_s, interruptions = self.env.now, self._interruptions
        if interruptions is not None and (lost_s := interruptions.lost_after_s(i, phase)) < math.inf:
            self._hazards[i] = call_after(self.env, lost_s, self._vanish, i)
        try:
            yield transfer.done
        finally:
            transfer.cancel()
            self._hazards.pop(i, None)
            queued_s = transfer.queued_s()
            self.queue_s[i] += queued_s
            self.spent_s[phase, i] = max(0.0, self.env.now - began_s - queued_s)
            self.sent_bits[phase // 2, i] = transfer.sent_bits()
        if interruptions is not None:
            interruptions.passed(i, phase, self.env.now - began_s)
            if interruptions.runs_empty(i, phase):
                self._drop(i, empty=True)

    def _wait_watched(
        self, i: int, phase: int, end: int, wait_s: float, interruptions: Interruptions
    ) -> Generator[Event, Any, None]:
        """Wait for what was planned, or until an interruption that comes before."""
        cut = interruptions.first_cut(i, phase, self.spent_s[phase:end, i].tolist())
        if cut is not None:
            yield self.env.timeout(cut[0])
            self._drop(i, empty=cut[1] is not None, cause=cut[1])
        yield self.env.timeout(wait_s)
        interruptions.passed(i, phase, wait_s)

    def _correct(self, i: int, phase: int, elapsed_s: float, empty: BatteryEmpty | None) -> None:
        """Correct the plan of a client that was interrupted in a wait; bits are in proportion to time."""
        last = next(end for first, end, _ in self._waits if first == phase) - 1
        while phase < last and (elapsed_s >= self.spent_s[phase, i] if empty is None else phase < empty[0]):
            elapsed_s = max(0.0, elapsed_s - self.spent_s[phase, i])
            phase += 1
        planned_s = self.spent_s[phase, i]
        share = elapsed_s / planned_s if elapsed_s < planned_s else 1.0
        self.spent_s[phase, i] = min(elapsed_s, planned_s)
        if phase != COMPUTE:
            self.sent_bits[phase // 2, i] *= share if empty is None else empty[1]
        self.spent_s[phase + 1 :, i] = 0.0
        self.sent_bits[phase // 2 + 1 :, i] = 0.0
        self.cut_in[i] = phase

    def _leave(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._processes[i].is_alive:
            self._interrupt(i, Outcome.DROPPED)

    def _vanish(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._hazards.get(i) is event:
            self._interrupt(i, Outcome.DROPPED)

    def _interrupt(self, i: int, outcome: Outcome) -> None:
        self.outcome[i] = outcome
        self._processes[i].interrupt()

    def _drop(self, i: int, *, empty: bool = False, cause: BatteryEmpty | None = None) -> NoReturn:
        self.outcome[i], self.emptied[i] = Outcome.DROPPED, empty
        raise DroppedOut(cause)


def _waits(hooks: Mapping[int, PhaseHook]) -> list[tuple[int, int, PhaseHook | None]]:
    """Return the waits of a participation: first phase, phase after the last, and the hook at the start if any."""
    starts = sorted({0, *hooks, *(phase + 1 for phase in hooks)} - {len(PHASES)})
    return [(first, end, hooks.get(first)) for first, end in zip(starts, [*starts[1:], len(PHASES)], strict=True)]
