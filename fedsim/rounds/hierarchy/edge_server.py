"""An edge server on the clock: it fetches the cloud's model, runs rounds with its clients and delivers its model."""

from dataclasses import dataclass, field

import numpy as np
from simpy import Environment, Event

from fedsim.clock import TIE_ULPS, Waiting
from fedsim.learning import Model
from fedsim.rounds.hierarchy.backhaul import Carry
from fedsim.rounds.server.synchronous import SynchronousServer


@dataclass(eq=False)
class EdgeCycle:
    """One cycle of an edge server, from the cloud and back: to the cloud what a participation is to a server.

    Seconds and bits of the two transfers are those of the transfer down and of the transfer up. The model is None if
    the rounds made no new one.
    """

    edge: int
    fetched: Model
    aggregations: int
    start_s: float
    end_s: float = np.inf
    transfer_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    sent_bits: list[float] = field(default_factory=lambda: [0.0, 0.0])
    rounds: int = 0
    model: Model | None = None
    received: Event | None = None


class EdgeServer:
    def __init__(
        self, env: Environment, number: int, server: SynchronousServer, rounds: int, skips: bool, carry: Carry | None
    ) -> None:
        self.env, self.number, self.server = env, number, server
        self.model = server.model
        self.resumes_s = 0.0
        self._rounds, self._skips, self._carry = rounds, skips, carry
        self._rounds_begun = 0
        self._next_start = (0, 0.0)

    def next_start_s(self) -> float:
        """Return when the next round can start: now, or when the first client is available; inf for never.

        A round has one draw of availability, however often its start is asked for.
        """
        number, now_s = self._rounds_begun + 1, self.env.now
        asked, start_s = self._next_start
        if asked == number:
            if now_s <= start_s + TIE_ULPS * np.spacing(now_s):
                return start_s
            if self.server.any_available(now_s, number):
                return now_s
        self._next_start = number, self.server.next_start_s(number)
        return self._next_start[1]

    def scheduled_s(self) -> float | None:
        """Return when the next round starts; None if it does not: no client is available, or none ever will be."""
        start_s = self.next_start_s()
        if self._skips and self.env.now < start_s < np.inf:
            # A skipped round has used its draw of availability.
            self._rounds_begun += 1
            return None
        return None if start_s == np.inf else start_s

    def wait(self, start_s: float) -> Waiting:
        self.resumes_s = start_s
        while self.env.now < start_s:
            yield self.env.timeout(max(start_s - self.env.now, float(np.spacing(self.env.now))))

    def run(self, cycle: EdgeCycle) -> Waiting:
        """Fetch the cloud's model, run rounds, and deliver the model that they have made, if they have made one."""
        server = self.server
        yield from self._transfer(cycle, up=False)
        start = server.context.learner.with_state_of(cycle.fetched, server.model)
        server.model = start
        while cycle.rounds < self._rounds and (start_s := self.scheduled_s()) is not None:
            yield from self.wait(start_s)
            self._rounds_begun += 1
            cycle.rounds += 1
            yield from server.run_round(self._rounds_begun, start_s)
        model = server.model
        if model is not start:
            yield from self._transfer(cycle, up=True)
            cycle.model = model
        cycle.end_s = self.env.now

    def _transfer(self, cycle: EdgeCycle, *, up: bool) -> Waiting:
        """Send a model over the backhaul; however the transfer ends, record its seconds and bits."""
        if self._carry is None:
            return
        start_s, transfer = self.env.now, self._carry(self.number, up)
        try:
            yield transfer.done
        finally:
            transfer.cancel()
            cycle.transfer_s[up], cycle.sent_bits[up] = self.env.now - start_s, transfer.sent_bits()
