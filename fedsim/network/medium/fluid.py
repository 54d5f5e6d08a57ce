"""Flows as fluids on the clock: rates change when somebody comes or goes, and time passes in between.

Between two changes every rate is constant, so that the next completion is known and one event waits for it. All
changes of one instant are worked out together, once.
"""

import math
from collections.abc import Sequence

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray
from fedsim.clock import call_after
from fedsim.network.contracts import Transfer
from fedsim.network.topology.flow_state import FlowState, Route

__all__ = ["Fluid", "FluidTransfer", "Route"]


class FluidTransfer(Transfer):
    """One transfer in a `Fluid`.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits : size of the transfer
    ends : source and target, in the numbers of whoever started it
    route : where it goes at present; None while there is no way
    """

    def __init__(self, fluid: "Fluid", bits: float, ends: tuple[int, int]) -> None:
        self.done: Event = fluid.env.event()
        self.bits, self.ends = bits, ends
        self.route: Route | None = None
        self.slot: int | None = None
        self._fluid = fluid
        self._sent_bits = 0.0
        self._cancelled = False

    def cancel(self) -> None:
        """Free the links; a second call does nothing. Afterwards `done` never triggers."""
        if self._cancelled or self.done.triggered:
            return
        self._cancelled = True
        if self.slot is not None:
            self._sent_bits = self.sent_bits()
            self._fluid.remove(self)

    def sent_bits(self) -> float:
        """Return how many bits have left so far; the last of them are still on their way for the route's delay."""
        return self._sent_bits if self.slot is None else self.bits - self._fluid.remaining_bits(self)

    def uses(self, link: int) -> bool:
        """Return whether a link is on its way."""
        return self.route is not None and link in self.route.links

    def rate_bps(self) -> float:
        """Return the present rate, 0 when all has been sent."""
        return 0.0 if self.slot is None else self._fluid.rate_of(self)

    def all_sent(self) -> None:
        """Let the last bit travel."""
        self._sent_bits = self.bits
        delay_s = self.route.delay_s if self.route else 0.0
        call_after(self._fluid.env, delay_s, self._arrive)

    def _arrive(self, _event: Event) -> None:
        if not self._cancelled:
            self.done.succeed()


class Fluid:
    """All flows over a set of links, sharing each max-min fairly.

    Parameters
    ----------
    env : Environment
    capacity_bps : array of shape (m,)
        Capacity of each link at the start.

    Attributes
    ----------
    flows : those that have bits left to send, in the order in which they began
    recomputed : how often rates have been worked out
    """

    def __init__(self, env: Environment, capacity_bps: FloatArray) -> None:
        self.env = env
        self.recomputed = 0
        self.flows: dict[int, FluidTransfer] = {}
        self._table = FlowState(capacity_bps)
        self._awaited: dict[int, list[Event]] = {}
        self._last_s = env.now
        self._changed = False
        self._wakes_s = math.inf
        self._wake: Event | None = None

    def begin(self, bits: float, route: Route | None, ends: tuple[int, int] = (-1, -1)) -> FluidTransfer:
        """Start a flow now; without a route it waits until it is moved to one. The ends are only kept with it."""
        if not 0 <= bits < math.inf:
            raise ValueError(f"bits: {bits} is not allowed; a transfer has a finite size of at least 0 bits")
        flow = FluidTransfer(self, bits, ends)
        flow.slot = self._table.take(bits)
        self.flows[flow.slot] = flow
        self._place(flow, flow.slot, route)
        return flow

    def move(self, flow: FluidTransfer, route: Route | None) -> None:
        """Let what is left of a flow go another way from now on, or nowhere."""
        if route == flow.route:
            return
        self._finish_due()
        if flow.slot is not None:
            self._pass_time()
            self._table.lift(flow.route)
            self._place(flow, flow.slot, route)
            self._change()

    def remove(self, flow: FluidTransfer) -> None:
        """Take a flow off its links."""
        if flow.slot is not None:
            self._pass_time()
            self._let_go(flow, flow.slot)

    def set_capacity(self, link: int, capacity_bps: float) -> None:
        """Change the capacity of a link now."""
        if self._table.set_capacity(link, capacity_bps):
            self._change()

    def in_use(self, links: Sequence[int]) -> Event:
        """Return an event that triggers as soon as something is to flow on one of the links, now if it is already."""
        event = self.env.event()
        if any(self._table.holds(link) for link in links):
            event.succeed()
        else:
            for link in links:
                waiting = [other for other in self._awaited.get(link, ()) if not other.triggered]
                self._awaited[link] = [*waiting, event]
        return event

    def remaining_bits(self, flow: FluidTransfer) -> float:
        """Return how many bits of a flow have not left yet."""
        self._pass_time()
        return float(self._table.remaining_bits[flow.slot])

    def rate_of(self, flow: FluidTransfer) -> float:
        """Return a flow's present rate, every change of this instant taken into account."""
        if self._changed:
            self._share()
        return float(self._table.rate_bps[flow.slot])

    def load_bps(self) -> FloatArray:
        """Return what flows at present through each link, shape (m,)."""
        load = np.zeros(self._table.links)
        for flow in self.flows.values():
            if flow.route is not None:
                np.add.at(load, list(flow.route.links), np.array(flow.route.weights) * self.rate_of(flow))
        return load

    def _place(self, flow: FluidTransfer, slot: int, route: Route | None) -> None:
        flow.route = route
        self._table.place(slot, route)
        if route is None:
            return
        for link in route.links if self._awaited else ():
            for event in self._awaited.pop(link, ()):
                if not event.triggered:
                    event.succeed()
        self._change()

    def _let_go(self, flow: FluidTransfer, slot: int) -> None:
        self._table.give_back(slot)
        del self.flows[slot]
        flow.slot = None
        if flow.route is not None:
            self._table.lift(flow.route)
            self._change()

    def _pass_time(self) -> None:
        """Carry bits for the time since the last change; rates were constant."""
        now_s = self.env.now
        if now_s > self._last_s:
            self._table.carry(now_s - self._last_s)
            self._last_s = now_s

    def _change(self) -> None:
        """Have the rates worked out once all that happens in this instant has happened."""
        if not self._changed:
            self._changed = True
            call_after(self.env, 0.0, self._settle)

    def _settle(self, _event: Event) -> None:
        if self._changed:
            self._share()

    def _share(self) -> None:
        self._finish_due()
        self._pass_time()
        self._changed = False
        self.recomputed += 1
        self._wake_at(self._table.share(self.env.now))

    def _wake_at(self, time_s: float) -> None:
        # One that comes too early only looks and sets the next; so a later completion needs no new event.
        if time_s < self._wakes_s:
            self._wakes_s = time_s
            self._wake = call_after(self.env, max(0.0, time_s - self.env.now), self._complete)

    def _complete(self, event: Event) -> None:
        if event is not self._wake:
            return
        self._wakes_s = math.inf
        self._finish_due()
        if not self._changed:
            self._wake_at(self._table.next_finish_s())

    def _finish_due(self) -> None:
        """Take off the flows whose last bit has left by now."""
        due = self._table.due(self.env.now)
        if due:
            self._pass_time()
        for slot in due:
            flow = self.flows[slot]
            self._let_go(flow, slot)
            flow.all_sent()
