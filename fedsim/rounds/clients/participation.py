"""One client in one round: downlink, compute, uplink, each a timed wait that can be cut short.

The waits of a whole cohort are planned at once, as arrays, before its processes start. Phases whose lengths are known
and at whose beginning nothing happens are one wait together; in which of them a process was interrupted is arithmetic.
A flow over a shared medium, whose length nobody knows before, is a wait of its own. A participation ends in one of
three ways: delivered, late (the server stopped waiting and cancelled it) or dropped (the client left, or its battery
ran empty). The server cannot tell the last two apart; only the history can.
"""

import math
from collections.abc import Callable, Generator, Mapping
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process, Timeout

from fedsim.devices import EnergyDemand
from fedsim.history.outcomes import COMPUTE, DOWNLINK, PHASES, UPLINK, Outcome
from fedsim.network.contracts import Transfer
from fedsim.rounds.clients.interruptions import BatteryEmpty, Interruptions

Begin = Callable[[int], Transfer | float]
"""Called with a member's position when it enters a phase; returns the transfer, or the seconds that the phase takes."""


class Gone(Exception):  # noqa: N818 - leaving is no error
    """Ends the process of a member that has dropped out by itself; `cause` is that of an interrupt."""

    def __init__(self, cause: "BatteryEmpty | None") -> None:
        super().__init__()
        self.cause = cause


class Participations:
    """A cohort's participations on their way: what has become of each member so far.

    Parameters
    ----------
    env : Environment
    planned_s : array of shape (3, n)
        How long downlink, compute and uplink of each member take if nobody cuts them short; inf where nobody knows.
    leaves_after_s : array of shape (n,)
        When, counted from the start of the round, each member drops out; inf for never.
    begin : mapping of phase to what is called when a member enters it; phases without take what is planned
    bits : sizes of the message down and of the message up
    limits : what else ends phases before their time, batteries among them; None for nothing
    stays : called when a member's task is done, if given: whether the client is still there
    draw : what the members draw from their batteries; None where energy is not looked at
    on_end : called with a member's position, and whether it has delivered, when it has ended

    Attributes
    ----------
    planned_compute_s : array of shape (n,), how long the work of each member takes if nobody cuts it short
    spent_s : array of shape (3, n), time spent in each phase, waiting in queues excluded
    queue_s : array of shape (n,), time spent waiting for a medium to be free
    sent_bits : array of shape (2, n), bits carried down and up; of a planned wait cut short, in proportion to time
    outcome : array of shape (n,) of `Outcome`
    cut_in : array of shape (n,), the phase in which a member was cut short, -1 if it was not
    emptied : array of shape (n,), whether a member's battery ran empty
    energy_j, left_j : arrays of shape (n,), what each battery paid and what was left in it; 0 before that is settled,
        and where energy is not looked at

    All but the first hold for members that have ended.
    """

    def __init__(
        self,
        env: Environment,
        planned_s: NDArray[np.float64],
        leaves_after_s: NDArray[np.float64],
        begin: Mapping[int, Begin] | None = None,
        bits: tuple[float, float] = (0.0, 0.0),
        *,
        limits: Interruptions | None = None,
        stays: Callable[[int], bool] | None = None,
        draw: EnergyDemand | None = None,
        on_end: Callable[[int, bool], None] | None = None,
    ) -> None:
        size = planned_s.shape[1]
        self.env, self.start_s, self.bits, self.draw, self._on_end = env, env.now, bits, draw, on_end
        # What a member that nobody cuts short will have spent and sent; a cut takes back what did not happen.
        self.spent_s = planned_s.copy()
        self.sent_bits = np.repeat(np.array(bits)[:, None], size, axis=1)
        self.queue_s = np.zeros(size)
        self.outcome = np.full(size, Outcome.DELIVERED, dtype=np.int8)
        self.cut_in = np.full(size, -1, dtype=np.int8)
        self.emptied = np.zeros(size, dtype=np.bool_)
        self.energy_j, self.left_j = np.zeros((2, size))
        self.planned_compute_s = planned_s[COMPUTE]
        self._limits, self._stays = limits, stays
        self._watched: dict[int, Event] = {}
        self._stretches = _stretches({} if begin is None else begin)
        self._delivered, self._running = 0, size
        self._milestones: dict[int, Event] = {}
        self._ended_s = [math.nan] * size
        waits_s = [planned_s[first:end].sum(axis=0) for first, end, _ in self._stretches]
        self._processes: list[Process]
        if begin or limits is not None or stays is not None:
            rows = np.stack(waits_s, axis=1).tolist()
            self._processes = [Process(env, self._participate(i, row)) for i, row in enumerate(rows)]
        else:
            self._processes = [Process(env, self._wait(i, wait_s)) for i, wait_s in enumerate(waits_s[0].tolist())]
        for i in np.flatnonzero(leaves_after_s < planned_s.sum(axis=0)).tolist():
            self._call_after(float(leaves_after_s[i]), i, self._leave)

    @property
    def ended_s(self) -> NDArray[np.float64]:
        """When each participation ended, shape (n,); NaN for those that have not."""
        return np.array(self._ended_s)

    def done(self, members: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what share of each phase's bits or work some members have done that have ended, shape (3, m)."""
        planned_s, worked_s = self.planned_compute_s[members], self.spent_s[COMPUTE, members]
        cut_in = self.cut_in[members]
        done = ((cut_in < 0) | (cut_in > np.arange(len(PHASES))[:, None])).astype(np.float64)
        cut = (cut_in == COMPUTE) & (planned_s > 0)
        done[COMPUTE, cut] = worked_s[cut] / planned_s[cut]
        for phase, sent_bits, bits in zip((DOWNLINK, UPLINK), self.sent_bits, self.bits, strict=True):
            if bits > 0:
                done[phase] = sent_bits[members] / bits
        return done

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whose participation has ended, shape (n,)."""
        return ~np.isnan(self.ended_s)

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Whose update has arrived, in time or not, shape (n,)."""
        return self.ended & (self.cut_in < 0)

    def delivered(self, count: int) -> Event:
        """Return the event that is triggered when so many members have delivered."""
        if count not in self._milestones:
            self._milestones[count] = self.env.event()
            if self._delivered >= count:
                self._milestones[count].succeed()
        return self._milestones[count]

    def mark_late(self) -> None:
        """Take down that whoever has not ended is late, though it may go on."""
        self.outcome[~self.ended] = Outcome.LATE

    def cut_pending(self) -> bool:
        """Interrupt whoever has not ended, as late; return whether there was anybody."""
        if not self._running:
            return False
        pending = [i for i, process in enumerate(self._processes) if process.is_alive]
        for i in pending:
            self._cut(i, Outcome.LATE)
        return bool(pending)

    def _participate(self, i: int, waits_s: list[float]) -> Generator[Event, Any, None]:
        env, phase, began_s = self.env, 0, self.env.now
        try:
            for (phase, end, begin), wait_s in zip(self._stretches, waits_s, strict=True):
                began_s = env.now
                taken = wait_s if begin is None else self._enter(i, phase, begin)
                if not isinstance(taken, float):
                    yield from self._ride(i, phase, taken)
                elif self._limits is not None:
                    yield from self._endure(i, phase, end, taken)
                elif taken > 0 or (begin is not None and end < len(PHASES)):
                    # What begins for others at this instant comes before what follows for this one.
                    yield env.timeout(taken)
            if self._stays is not None and not self._stays(i):
                self._drop(i)
        except (Interrupt, Gone) as cut:
            self._take_back(i, phase, env.now - began_s, cut.cause)
            self._end(i, delivered=False)
        else:
            self._end(i, delivered=True)

    def _wait(self, i: int, wait_s: float) -> Generator[Event, Any, None]:
        """Take part where all phases are one wait and nothing but an interrupt cuts it short: the usual case."""
        try:
            if wait_s > 0:
                yield Timeout(self.env, wait_s)
        except Interrupt as cut:
            self._take_back(i, DOWNLINK, self.env.now - self.start_s, cut.cause)
            self._end(i, delivered=False)
        else:
            self._end(i, delivered=True)

    def _end(self, i: int, *, delivered: bool) -> None:
        self._ended_s[i] = self.env.now
        self._running -= 1
        if delivered:
            self._delivered += 1
            if self._delivered in self._milestones:
                self._milestones[self._delivered].succeed()
        if self._on_end is not None:
            self._on_end(i, delivered)

    def _enter(self, i: int, phase: int, begin: Begin) -> Transfer | float:
        taken = begin(i)
        if isinstance(taken, float):
            self.spent_s[phase, i] = taken
        return taken

    def _ride(self, i: int, phase: int, flow: Transfer) -> Generator[Event, Any, None]:
        """Wait for a flow; however the wait ends, free what it holds and take down what it carried."""
        began_s, limits = self.env.now, self._limits
        if limits is not None and (limit_s := limits.hazard_s(i, phase)) < math.inf:
            self._watched[i] = self._call_after(limit_s, i, self._vanish)
        try:
            yield flow.done
        finally:
            flow.cancel()
            self._watched.pop(i, None)
            self.queue_s[i] += flow.queued_s()
            self.spent_s[phase, i] = max(0.0, self.env.now - began_s - flow.queued_s())
            self.sent_bits[phase // 2, i] = flow.sent_bits()
        if limits is not None:
            limits.passed(i, phase, self.env.now - began_s)
            if limits.runs_empty(i, phase):
                self._drop(i, empty=True)

    def _endure(self, i: int, phase: int, end: int, length_s: float) -> Generator[Event, Any, None]:
        """Wait for what was planned, unless a limit comes before."""
        limits = cast(Interruptions, self._limits)
        cut = limits.cut_s(i, phase, self.spent_s[phase:end, i].tolist())
        if cut is not None:
            yield self.env.timeout(cut[0])
            self._drop(i, empty=cut[1] is not None, cause=cut[1])
        yield self.env.timeout(length_s)
        limits.passed(i, phase, length_s)

    def _take_back(self, i: int, phase: int, elapsed_s: float, empty: BatteryEmpty | None) -> None:
        """Correct what was planned for a member that is cut short in a stretch of phases; bits go with the time."""
        last = next(end for first, end, _ in self._stretches if first == phase) - 1
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

    def _call_after(self, delay_s: float, value: object, callback: Callable[[Event], None]) -> Event:
        event = self.env.timeout(delay_s, value)
        # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
        if event.callbacks is not None:
            event.callbacks.append(callback)
        return event

    def _leave(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._processes[i].is_alive:
            self._cut(i, Outcome.DROPPED)

    def _vanish(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._watched.get(i) is event:
            self._cut(i, Outcome.DROPPED)

    def _cut(self, i: int, outcome: Outcome) -> None:
        self.outcome[i] = outcome
        self._processes[i].interrupt()

    def _drop(self, i: int, *, empty: bool = False, cause: BatteryEmpty | None = None) -> NoReturn:
        self.outcome[i], self.emptied[i] = Outcome.DROPPED, empty
        raise Gone(cause)


def _stretches(begin: Mapping[int, Begin]) -> list[tuple[int, int, Begin | None]]:
    """Return the phases from one to before another that are one wait, and what happens at their beginning."""
    starts = sorted({0, *begin, *(phase + 1 for phase in begin)} - {len(PHASES)})
    return [(first, end, begin.get(first)) for first, end in zip(starts, [*starts[1:], len(PHASES)], strict=True)]
