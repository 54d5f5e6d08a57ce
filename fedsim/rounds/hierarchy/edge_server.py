"""An edge server on the clock: it fetches the cloud's model, runs rounds with its clients and brings back its own."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.clock import TIE_ULPS
from fedsim.learning import Model
from fedsim.rounds.hierarchy.backhaul import Carry
from fedsim.rounds.server.coordinator import Coordinator


@dataclass(eq=False)
class EdgeCycle:
    """One way of an edge server from the cloud and back: to the cloud what a participation is to a server.

    Attributes
    ----------
    edge : number of the edge server
    began : the cloud's model that it fetches
    merges : how often the cloud had merged by then
    start_s, end_s : when it began to fetch, and when it was back; inf before
    seconds, bits : what it spent and sent on the way down and on the way up; in part where it was cut off
    rounds : edge rounds that it has run
    model : what it has brought; None if its rounds made nothing new, or before it is back
    taken : event that triggers when the cloud has taken note of it; None where the cloud waits for all
    """

    edge: int
    began: Model
    merges: int
    start_s: float
    end_s: float = np.inf
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])
    bits: list[float] = field(default_factory=lambda: [0.0, 0.0])
    rounds: int = 0
    model: Model | None = None
    taken: Event | None = None


class EdgeServer:
    """One edge server.

    Parameters
    ----------
    env : Environment
    number : from 0
    coordinator : runs its rounds
    rounds : edge rounds between two visits to the cloud
    skips : whether it turns back early when nobody is there, instead of waiting for somebody
    carry : sends models to the cloud and back; None if nothing lies between

    Attributes
    ----------
    model : what it brought to the cloud last; the initial model before
    resumes_s : until when it waits for clients on its way, if it does
    """

    def __init__(
        self, env: Environment, number: int, coordinator: Coordinator, rounds: int, skips: bool, carry: Carry | None
    ) -> None:
        self.env, self.number, self.coordinator = env, number, coordinator
        self.model = coordinator.model
        self.resumes_s = 0.0
        self._rounds, self._skips, self._carry = rounds, skips, carry
        self._edge_rounds = 0
        self._opening = (0, 0.0)

    def opens_s(self) -> float:
        """Return when its next round can start: now, or as soon as anybody is there; inf for never.

        Where presence is tossed for each round, a round has one toss however often it is asked about.
        """
        number, now_s = self._edge_rounds + 1, self.env.now
        asked, opens_s = self._opening
        if asked == number:
            if now_s <= opens_s + TIE_ULPS * np.spacing(now_s):
                return opens_s
            if self.coordinator.any_available(now_s, number):
                return now_s
        self._opening = number, self.coordinator.next_start_s(number)
        return self._opening[1]

    def opening(self) -> float | None:
        """Return when its next round shall start; None if it shall not, because nobody is there."""
        opens_s = self.opens_s()
        if self._skips and self.env.now < opens_s < np.inf:
            # The round that is missed has had its toss.
            self._edge_rounds += 1
            return None
        return None if opens_s == np.inf else opens_s

    def wait(self, opens_s: float) -> Generator[Event, Any, None]:
        """Wait until an instant."""
        self.resumes_s = opens_s
        while self.env.now < opens_s:
            yield self.env.timeout(max(opens_s - self.env.now, float(np.spacing(self.env.now))))

    def run(self, visit: EdgeCycle) -> Generator[Event, Any, None]:
        """Fetch the cloud's model, run rounds, and bring what came of it to the cloud, if anything did."""
        coordinator = self.coordinator
        yield from self._travel(visit, up=False)
        coordinator.model = visit.began
        while visit.rounds < self._rounds and (opens_s := self.opening()) is not None:
            yield from self.wait(opens_s)
            self._edge_rounds += 1
            visit.rounds += 1
            yield from coordinator.run_round(self._edge_rounds, opens_s)
        found = coordinator.model
        if found is not visit.began:
            yield from self._travel(visit, up=True)
            visit.model = found
        visit.end_s = self.env.now

    def _travel(self, visit: EdgeCycle, *, up: bool) -> Generator[Event, Any, None]:
        """Send a model over the backhaul; however that ends, take down how long it took and how much was sent."""
        if self._carry is None:
            return
        began_s, flow = self.env.now, self._carry(self.number, up)
        try:
            yield flow.done
        finally:
            flow.cancel()
            visit.seconds[up], visit.bits[up] = self.env.now - began_s, flow.sent_bits()
