"""Which of a server's clients are idle, in flight or given up."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import BoolArray, IntArray
from fedsim.rounds.clients.cohort import CohortRun

_NONE: Final[IntArray] = np.zeros(0, dtype=np.int64)


class Roster:
    """The state of a server's clients, as far as the server knows.

    A client that was lost stays in flight until the server gives it up. A busy client is no candidate: it is in flight
    beyond the round in which it was sent. Where clients end with their round at the latest, no client ever is.
    """

    def __init__(self, env: Environment, clients: int, member: IntArray | None) -> None:
        self.env = env
        self.whole_crowd = member is None
        self.member = np.arange(clients, dtype=np.int64) if member is None else member
        self.in_flight = self.released = self.lost_in_a_row = 0
        self.given_up: list[CohortRun] = []
        self._cohort = np.full(clients, -1)
        self._busy = np.zeros(clients, dtype=bool)
        self._busy_count = 0
        self._waited_for: dict[int, CohortRun] = {}
        # Clients that have become busy or idle since the last call of `take_turned`.
        self._turned: list[int] = []
        self._changed: Event = env.event()
        self._idled: Event | None = None

    @property
    def idle(self) -> BoolArray:
        return ~(self._busy if self.whole_crowd else self._busy[self.member])

    @property
    def any_busy(self) -> bool:
        """Whether any of the server's clients is in flight beyond the round in which it was sent."""
        return self._busy_count > 0

    def busy(self, position: IntArray) -> BoolArray:
        """Return which clients are busy, by their positions among the server's clients."""
        return np.asarray(self._busy[position if self.whole_crowd else self.member[position]])

    def take_turned(self) -> IntArray:
        """Return the positions of the clients that have become busy or idle since the last call."""
        if not self._turned:
            return _NONE
        turned, self._turned = np.array(sorted(set(self._turned)), dtype=np.int64), []
        return turned if self.whole_crowd else np.searchsorted(self.member, turned)

    def sent(self, run: CohortRun) -> None:
        """Record a cohort in flight, whose clients stay busy beyond the round."""
        client = run.cohort.client
        turned = client[~self._busy[client]]
        self._busy[turned] = True
        self._busy_count += turned.size
        self._turned.extend(turned.tolist())
        self.in_flight += (self._cohort[client] < 0).tobytes().count(True)
        self._cohort[client] = run.order

    def delivered(self, client: int, run: CohortRun) -> None:
        """Record the delivery of a client that was sent with a cohort."""
        self.lost_in_a_row = 0
        self._release(client, run)

    def give_up(self, run: CohortRun) -> None:
        """Record that the server no longer waits for the client of a cohort of one."""
        client = int(run.cohort.client[0])
        self.given_up.append(run)
        self._release(client, run)
        self.mark_idle(client)

    def cancelled(self, runs: Iterable[CohortRun]) -> None:
        """Record that the server has cancelled cohorts; their clients are idle once they have stopped."""
        for run in runs:
            for client in run.cohort.client.tolist():
                self._release(client, run)

    def wait_for(self, run: CohortRun) -> None:
        """Remember a cohort of one client, which was sent, until the client has delivered or is given up."""
        self._waited_for[run.order] = run

    def longest_waited_for(self) -> CohortRun | None:
        """Return that of the remembered cohorts which was sent first; None if no client of one is in flight."""
        return next(iter(self._waited_for.values()), None)

    def mark_idle(self, client: int) -> None:
        if self._busy[client]:
            self._busy[client] = False
            self._busy_count -= 1
            self._turned.append(client)
        if self._idled is not None:
            self._idled.succeed()
            self._idled = None

    def clear(self) -> None:
        sent = self._cohort >= 0
        for client in np.flatnonzero(sent & self._busy).tolist():
            self.mark_idle(client)
        self._cohort[:] = -1
        self._waited_for.clear()
        self.in_flight = 0
        self.given_up.clear()

    def take_given_up(self) -> list[CohortRun]:
        """Return the cohorts that were given up since the last call."""
        taken, self.given_up = self.given_up, []
        return taken

    def next_idle(self) -> Event:
        self._idled = self.env.event()
        return self._idled

    def next_change(self) -> Event:
        """Return the event that `notify` triggers next."""
        if self._changed.triggered:
            self._changed = self.env.event()
        return self._changed

    def notify(self) -> None:
        """Trigger the event of an update, of a client given up, or of a client that has become available."""
        if not self._changed.triggered:
            self._changed.succeed()

    def _release(self, client: int, run: CohortRun) -> None:
        if self._cohort[client] == run.order:
            self._cohort[client] = -1
            self._waited_for.pop(run.order, None)
            self.in_flight -= 1
            self.released += 1
