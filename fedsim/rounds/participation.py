"""One client in one round: downlink, compute, uplink, each a timed wait that can be cut short.

The waits of a whole cohort are planned at once, as arrays, before its processes start. Phases whose lengths are known
and at whose beginning nothing happens are one wait together; in which of them a process was interrupted is arithmetic.
A flow over a shared medium, whose length nobody knows before, is a wait of its own. A participation ends in one of
three ways: delivered, late (the server stopped waiting and cancelled it) or dropped
(the client left). The server cannot tell the last two apart; only the history can.
"""

import math
from collections.abc import Callable, Generator, Mapping
from enum import IntEnum
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process

from fedsim.network.flow import Flow, queued_s

PHASES: Final = ("downlink", "compute", "uplink")
DOWNLINK: Final = 0
COMPUTE: Final = 1
UPLINK: Final = 2

Begin = Callable[[int], Flow | float]
"""Called with a member's position when it enters a phase; returns the transfer, or the seconds that the phase takes."""


class Outcome(IntEnum):
    """How a participation ended."""

    DELIVERED = 0
    LATE = 1
    DROPPED = 2


class OpenRound:
    """A round on its way: what has become of each member of the cohort so far.

    Parameters
    ----------
    env : Environment
    planned_s : array of shape (3, n)
        How long downlink, compute and uplink of each member take if nobody cuts them short; inf where the phase is
        a flow.
    leaves_after_s : array of shape (n,)
        When, counted from the start of the round, each member drops out; inf for never.
    begin : mapping of phase to what is called when a member enters it; phases without take what is planned
    bits : size of the message in either direction

    Attributes
    ----------
    everyone : event that is triggered when every member has delivered
    spent_s : array of shape (3, n), time spent in each phase, waiting in queues excluded
    queue_s : array of shape (n,), time spent waiting for a medium to be free
    sent_bits : array of shape (2, n), bits carried down and up; of a planned wait cut short, in proportion to time
    outcome : array of shape (n,) of `Outcome`
    cut_in : array of shape (n,), the phase in which a member was cut short, -1 if it was not

    All but `everyone` hold for members that have ended.
    """

    def __init__(
        self,
        env: Environment,
        planned_s: NDArray[np.float64],
        leaves_after_s: NDArray[np.float64],
        begin: Mapping[int, Begin] | None = None,
        bits: float = 0.0,
    ) -> None:
        size = planned_s.shape[1]
        self.env, self.start_s = env, env.now
        self.everyone: Event = env.event()
        # What a member that nobody cuts short will have spent and sent; a cut takes back what did not happen.
        self.spent_s = planned_s.copy()
        self.sent_bits = np.full((2, size), bits)
        self.queue_s = np.zeros(size)
        self.outcome = np.full(size, Outcome.DELIVERED, dtype=np.int8)
        self.cut_in = np.full(size, -1, dtype=np.int8)
        self._stretches = _stretches({} if begin is None else begin)
        self._undelivered = size
        self._ended_s = [math.nan] * size
        process, participate = env.process, self._participate
        waits_s = np.stack([planned_s[first:end].sum(axis=0) for first, end, _ in self._stretches], axis=1).tolist()
        self._processes: list[Process] = [process(participate(i, row)) for i, row in enumerate(waits_s)]
        for i in np.flatnonzero(leaves_after_s < planned_s.sum(axis=0)).tolist():
            event = env.timeout(float(leaves_after_s[i]), i)
            # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
            if event.callbacks is not None:
                event.callbacks.append(self._leave)

    @property
    def ended_s(self) -> NDArray[np.float64]:
        """When each participation ended, shape (n,); NaN for those that have not."""
        return np.array(self._ended_s)

    def cancel_pending(self) -> bool:
        """Interrupt whoever has not ended; return whether there was anybody."""
        pending = [i for i, process in enumerate(self._processes) if process.is_alive]
        for i in pending:
            self._cut(i, Outcome.LATE)
        return bool(pending)

    def _participate(self, i: int, waits_s: list[float]) -> Generator[Event, Any, None]:
        env, phase, began_s = self.env, 0, self.env.now
        try:
            for (phase, _, begin), wait_s in zip(self._stretches, waits_s, strict=True):
                began_s = env.now
                taken = wait_s if begin is None else self._enter(i, phase, begin)
                if not isinstance(taken, float):
                    yield from self._ride(i, phase, taken)
                elif taken > 0:
                    yield env.timeout(taken)
        except Interrupt:
            self._take_back(i, phase, env.now - began_s)
        else:
            self._undelivered -= 1
            if not self._undelivered:
                self.everyone.succeed()
        self._ended_s[i] = env.now

    def _enter(self, i: int, phase: int, begin: Begin) -> Flow | float:
        taken = begin(i)
        if isinstance(taken, float):
            self.spent_s[phase, i] = taken
        return taken

    def _ride(self, i: int, phase: int, flow: Flow) -> Generator[Event, Any, None]:
        """Wait for a flow; however the wait ends, free what it holds and take down what it carried."""
        began_s = self.env.now
        try:
            yield flow.done
        finally:
            flow.cancel()
            self.queue_s[i] += queued_s(flow)
            self.spent_s[phase, i] = max(0.0, self.env.now - began_s - queued_s(flow))
            self.sent_bits[phase // 2, i] = flow.sent_bits()

    def _take_back(self, i: int, phase: int, elapsed_s: float) -> None:
        """Correct what was planned for a member that is cut short in a stretch of phases; bits go with the time."""
        last = next(end for first, end, _ in self._stretches if first == phase) - 1
        while phase < last and elapsed_s >= self.spent_s[phase, i]:
            elapsed_s -= self.spent_s[phase, i]
            phase += 1
        planned_s = self.spent_s[phase, i]
        if elapsed_s < planned_s:
            self.spent_s[phase, i] = elapsed_s
            if phase != COMPUTE:
                self.sent_bits[phase // 2, i] *= elapsed_s / planned_s
        self.spent_s[phase + 1 :, i] = 0.0
        self.sent_bits[phase // 2 + 1 :, i] = 0.0
        self.cut_in[i] = phase

    def _leave(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._processes[i].is_alive:
            self._cut(i, Outcome.DROPPED)

    def _cut(self, i: int, outcome: Outcome) -> None:
        self.outcome[i] = outcome
        self._processes[i].interrupt()


def _stretches(begin: Mapping[int, Begin]) -> list[tuple[int, int, Begin | None]]:
    """Return the phases from one to before another that are one wait, and what happens at their beginning."""
    starts = sorted({0, *begin, *(phase + 1 for phase in begin)} - {len(PHASES)})
    return [(first, end, begin.get(first)) for first, end in zip(starts, [*starts[1:], len(PHASES)], strict=True)]
