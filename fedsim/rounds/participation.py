"""One client in one round: downlink, compute, uplink, each a timed wait that can be cut short.

The waits of a whole cohort are computed at once, as arrays, before its processes start; a process is then three
timeouts. It ends in one of three ways: delivered, late (the server stopped waiting and cancelled it) or dropped
(the client left). The server cannot tell the last two apart; only the history can.
"""

from collections.abc import Callable, Generator
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event, Interrupt, Process

PHASES: Final = ("downlink", "compute", "uplink")
_UPLINK: Final = 2


class Outcome(IntEnum):
    """How a participation ended."""

    DELIVERED = 0
    LATE = 1
    DROPPED = 2


class OpenRound:
    """A round on its way: the cohort's processes and what has become of each so far.

    Parameters
    ----------
    env : Environment
    planned_s : array of shape (3, n)
        How long downlink, compute and uplink of each member take if nobody cuts them short.
    leaves_after_s : array of shape (n,)
        When, counted from the start of the round, each member drops out; inf for never.
    upload_starts : called with a member's position when its upload starts

    Attributes
    ----------
    everyone : event that is triggered when every member has delivered
    spent_s : array of shape (3, n), time spent in each phase so far
    outcome : array of shape (n,) of `Outcome`
    cut_in : array of shape (n,), the phase in which a member was cut short, -1 if it was not
    ended_s : array of shape (n,), when each participation ended
    """

    def __init__(
        self,
        env: Environment,
        planned_s: NDArray[np.float64],
        leaves_after_s: NDArray[np.float64],
        upload_starts: Callable[[int], None],
    ) -> None:
        size = planned_s.shape[1]
        self.env, self.start_s = env, env.now
        self.everyone: Event = env.event()
        self.spent_s = np.zeros((len(PHASES), size))
        self.outcome = np.full(size, Outcome.DELIVERED, dtype=np.int8)
        self.cut_in = np.full(size, -1, dtype=np.int8)
        self.ended_s = np.full(size, np.nan)
        self._upload_starts = upload_starts
        self._undelivered = size
        columns = planned_s.T.tolist()
        self._processes: list[Process] = [env.process(self._participate(i, phases)) for i, phases in enumerate(columns)]
        for i in np.flatnonzero(leaves_after_s < planned_s.sum(axis=0)):
            self._drop_later(int(i), float(leaves_after_s[i]))

    def cancel_pending(self) -> bool:
        """Interrupt whoever has not ended; return whether there was anybody."""
        pending = [i for i, process in enumerate(self._processes) if process.is_alive]
        for i in pending:
            self._cut(i, Outcome.LATE)
        return bool(pending)

    def _participate(self, i: int, planned_s: list[float]) -> Generator[Event, Any, None]:
        env = self.env
        began_s = env.now
        phase = 0
        try:
            for phase, duration_s in enumerate(planned_s):
                began_s = env.now
                if phase == _UPLINK:
                    self._upload_starts(i)
                if duration_s > 0:
                    yield env.timeout(duration_s)
                self.spent_s[phase, i] = duration_s
        except Interrupt:
            self.spent_s[phase, i] = env.now - began_s
            self.cut_in[i] = phase
        else:
            self._undelivered -= 1
            if not self._undelivered:
                self.everyone.succeed()
        self.ended_s[i] = env.now

    def _cut(self, i: int, outcome: Outcome) -> None:
        self.outcome[i] = outcome
        self._processes[i].interrupt()

    def _drop_later(self, i: int, delay_s: float) -> None:
        def leave(_event: Event) -> None:
            if self._processes[i].is_alive:
                self._cut(i, Outcome.DROPPED)

        event = self.env.timeout(delay_s)
        # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
        if event.callbacks is not None:
            event.callbacks.append(leave)
