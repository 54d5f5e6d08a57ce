"""One client in one round: downlink, compute, uplink, each a timed wait that can be cut short.

The waits of a whole cohort are planned at once, as arrays. A participation is a chain of events, and has one only
where something happens: at its end, and at the beginning of a phase whose length is not known before (a transfer over
a shared medium) or that somebody wants to hear of. What phase a member is in between two events is arithmetic, done
when it is cut short. So a participation over dedicated links is a single event, and can be interrupted all the same.

It ends in one of three ways: delivered, late (the server stopped waiting and cancelled it) or dropped (the client
left). The server cannot tell the last two apart; only the history can.
"""

import math
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.network.flow import Flow, queued_s

PHASES: Final = ("downlink", "compute", "uplink")
DOWNLINK: Final = 0
UPLINK: Final = 2
_END: Final = len(PHASES)

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
        self.spent_s = planned_s.copy()
        self.queue_s = np.zeros(size)
        self.sent_bits = np.full((2, size), bits)
        self.outcome = np.full(size, Outcome.DELIVERED, dtype=np.int8)
        self.cut_in = np.full(size, -1, dtype=np.int8)
        self._begin = dict(begin or {})
        self._pending = [True] * size
        self._undelivered = size
        self._ended_s = [math.nan] * size
        # The phase that a member was last seen to enter, and when.
        self._phase, self._since_s = [0] * size, [env.now] * size
        self._flow: dict[int, Flow] = {}
        self._stop = [min((p for p in self._begin if p >= phase), default=_END) for phase in range(_END + 1)]
        self._on_stop = {stop: partial(self._on_time, stop) for stop in self._stop}
        # legs[p]: from the beginning of phase p to the next stop, for every member.
        self._legs = [planned_s[phase:stop].sum(axis=0).tolist() for phase, stop in enumerate(self._stop)]
        self._start_all()
        for i in np.flatnonzero(leaves_after_s < planned_s.sum(axis=0)).tolist():
            _call(env.timeout(float(leaves_after_s[i]), i), self._leave)

    @property
    def ended_s(self) -> NDArray[np.float64]:
        """When each participation ended, shape (n,); NaN for those that have not."""
        return np.array(self._ended_s)

    def cancel_pending(self) -> None:
        """Cut short whoever has not ended; what they hold is free at once."""
        for i, pending in enumerate(self._pending):
            if pending:
                self._cut(i, Outcome.LATE)

    def _start_all(self) -> None:
        """Do what `_go` does from the first phase on, for everybody."""
        timeout, arrive = self.env.timeout, self._on_stop[self._stop[0]]
        for i, delay_s in enumerate(self._legs[0]):
            if 0 < delay_s < math.inf:
                _call(timeout(delay_s, i), arrive)
            elif delay_s == 0:
                self._reach(i, self._stop[0])

    def _go(self, i: int, phase: int, first_s: float = 0.0) -> None:
        """Wait, from the beginning of a phase, until the next stop, and for some seconds before."""
        delay_s = first_s + self._legs[phase][i]
        if delay_s == 0:
            self._reach(i, self._stop[phase])
        elif delay_s < math.inf:
            _call(self.env.timeout(delay_s, i), self._on_stop[self._stop[phase]])

    def _on_time(self, stop: int, event: Event) -> None:
        i = cast(int, event.value)
        if self._pending[i]:
            self._reach(i, stop)

    def _reach(self, i: int, stop: int) -> None:
        if stop == _END:
            self._pending[i] = False
            self._ended_s[i] = self.env.now
            self._undelivered -= 1
            if not self._undelivered:
                self.everyone.succeed()
            return
        self._phase[i], self._since_s[i] = stop, self.env.now
        taken = self._begin[stop](i)
        if isinstance(taken, float):
            self.spent_s[stop, i] = taken
            self._go(i, stop + 1, taken)
        else:
            self._flow[i] = taken
            _call(taken.done, partial(self._flow_done, i, stop))

    def _flow_done(self, i: int, phase: int, _event: Event) -> None:
        self._end_flow(i, phase, self._flow.pop(i))
        self._phase[i], self._since_s[i] = phase + 1, self.env.now
        self._go(i, phase + 1)

    def _end_flow(self, i: int, phase: int, flow: Flow) -> None:
        """Take down how long a flow queued and ran and what it carried."""
        queue_s = queued_s(flow)
        self.queue_s[i] += queue_s
        self.spent_s[phase, i] = max(0.0, self.env.now - self._since_s[i] - queue_s)
        self.sent_bits[phase // 2, i] = flow.sent_bits()

    def _leave(self, event: Event) -> None:
        i = cast(int, event.value)
        if self._pending[i]:
            self._cut(i, Outcome.DROPPED)

    def _cut(self, i: int, outcome: Outcome) -> None:
        phase, flow = self._phase[i], self._flow.pop(i, None)
        if flow is not None:
            flow.cancel()
            self._end_flow(i, phase, flow)
        else:
            phase = self._cut_wait(i, phase)
        self.spent_s[phase + 1 :, i] = 0.0
        self.sent_bits[phase // 2 + 1 :, i] = 0.0
        self.outcome[i], self.cut_in[i] = outcome, phase
        self._pending[i] = False
        self._ended_s[i] = self.env.now

    def _cut_wait(self, i: int, phase: int) -> int:
        """Find the phase that a member is in by its plan, and cut it short; return the phase."""
        elapsed_s = self.env.now - self._since_s[i]
        last = max(phase, self._stop[phase + 1] - 1)
        while phase < last and elapsed_s >= self.spent_s[phase, i]:
            elapsed_s -= float(self.spent_s[phase, i])
            phase += 1
        planned_s = float(self.spent_s[phase, i])
        self.spent_s[phase, i] = spent_s = min(elapsed_s, planned_s)
        if phase != 1:
            self.sent_bits[phase // 2, i] *= spent_s / planned_s if planned_s else 1.0
        return phase


def _call(event: Event, callback: Callable[[Event], None]) -> None:
    """Have an event that has not been processed yet call somebody."""
    # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
    if event.callbacks is not None:
        event.callbacks.append(callback)
