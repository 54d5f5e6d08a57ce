"""Flows as fluids on the clock: rates change when somebody comes or goes, and time passes in between.

Between two changes every rate is constant, so that the next completion is known and one event waits for it. All
changes of one instant are worked out together, once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.network.base import FloatArray
from fedsim.network.in_use import LinksInUse
from fedsim.network.maxmin import PAD, max_min_rates

# The same instant reached by different sums may differ in the last digits.
_TIE_ULPS = 8


@dataclass(frozen=True)
class Route:
    """The links that a flow uses.

    Attributes
    ----------
    links : their numbers, none twice
    weights : how much of each link a flow takes per bit/s of its rate
    delay_s : how long the last bit travels, once
    """

    links: tuple[int, ...]
    weights: tuple[float, ...]
    delay_s: float


class FluidFlow:
    """One transfer in a `Fluid`; fulfils `fedsim.network.flow.Flow`.

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

    def rate_bps(self) -> float:
        """Return the present rate, 0 when all has been sent."""
        return 0.0 if self.slot is None else self._fluid.rate_of(self)

    def all_sent(self) -> None:
        """Let the last bit travel."""
        self._sent_bits = self.bits
        delay_s = self.route.delay_s if self.route else 0.0
        arrival = self._fluid.env.timeout(delay_s)
        if arrival.callbacks is not None:
            arrival.callbacks.append(self._arrive)

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
        self._capacity_bps = capacity_bps.tolist()
        self.flows: dict[int, FluidFlow] = {}
        self._free: list[int] = []
        self._remaining_bits = np.zeros(0)
        self._rate_bps = np.zeros(0)
        self._finish_s = np.zeros(0)
        self._runs = np.zeros(0, dtype=bool)
        self._routes: NDArray[np.intp] = np.zeros((0, 1), dtype=np.intp)
        self._weights = np.zeros((0, 1))
        self._in_use = LinksInUse()
        self._awaited: dict[int, list[Event]] = {}
        self._last_s = env.now
        self._changed = False
        self._wakes_s = math.inf
        self._wake: Event | None = None

    def begin(self, bits: float, route: Route | None, ends: tuple[int, int] = (-1, -1)) -> FluidFlow:
        """Start a flow now; without a route it waits until it is moved to one. The ends are only kept with it."""
        if not 0 <= bits < math.inf:
            raise ValueError(f"bits: {bits} is not allowed; a transfer has a finite size of at least 0 bits")
        flow = FluidFlow(self, bits, ends)
        if not self._free:
            self._grow()
        flow.slot = self._free.pop()
        self.flows[flow.slot] = flow
        self._remaining_bits[flow.slot] = bits
        self._rate_bps[flow.slot], self._finish_s[flow.slot] = 0.0, math.inf
        self._place(flow, route)
        return flow

    def move(self, flow: FluidFlow, route: Route | None) -> None:
        """Let what is left of a flow go another way from now on, or nowhere."""
        if route == flow.route:
            return
        self._finish_due()
        if flow.slot is not None:
            self._pass_time()
            self._lift(flow)
            self._place(flow, route)

    def remove(self, flow: FluidFlow) -> None:
        """Take a flow off its links."""
        if flow.slot is not None:
            self._pass_time()
            self._lift(flow)
            self._forget(flow)

    def set_capacity(self, link: int, capacity_bps: float) -> None:
        """Change the capacity of a link now."""
        self._capacity_bps[link] = capacity_bps
        if self._in_use.set_capacity(link, capacity_bps):
            self._change()

    def in_use(self, links: Sequence[int]) -> Event:
        """Return an event that triggers as soon as something is to flow on one of the links, now if it is already."""
        event = self.env.event()
        if any(self._in_use.holds(link) for link in links):
            event.succeed()
        else:
            for link in links:
                waiting = [other for other in self._awaited.get(link, ()) if not other.triggered]
                self._awaited[link] = [*waiting, event]
        return event

    def remaining_bits(self, flow: FluidFlow) -> float:
        """Return how many bits of a flow have not left yet."""
        self._pass_time()
        return float(self._remaining_bits[flow.slot])

    def rate_of(self, flow: FluidFlow) -> float:
        """Return a flow's present rate, every change of this instant taken into account."""
        if self._changed:
            self._share()
        return float(self._rate_bps[flow.slot])

    def load_bps(self) -> FloatArray:
        """Return what flows at present through each link, shape (m,)."""
        load = np.zeros(len(self._capacity_bps))
        for flow in self.flows.values():
            if flow.route is not None:
                np.add.at(load, list(flow.route.links), np.array(flow.route.weights) * self.rate_of(flow))
        return load

    def _place(self, flow: FluidFlow, route: Route | None) -> None:
        flow.route = route
        self._runs[flow.slot] = route is not None
        if route is None:
            self._rate_bps[flow.slot], self._finish_s[flow.slot] = 0.0, math.inf
            return
        depth = len(route.links)
        if depth > self._routes.shape[1]:
            more = ((0, 0), (0, depth - self._routes.shape[1]))
            self._routes = np.pad(self._routes, more, constant_values=PAD)
            self._weights = np.pad(self._weights, more)
        self._routes[flow.slot] = PAD
        self._routes[flow.slot, :depth] = [self._in_use.hold(link, self._capacity_bps[link]) for link in route.links]
        self._weights[flow.slot, :depth] = route.weights
        for link in route.links if self._awaited else ():
            for event in self._awaited.pop(link, ()):
                if not event.triggered:
                    event.succeed()
        self._change()

    def _lift(self, flow: FluidFlow) -> None:
        if flow.route is not None:
            for link in flow.route.links:
                self._in_use.release(link)
            self._change()

    def _forget(self, flow: FluidFlow) -> None:
        slot = flow.slot
        if slot is not None:
            self._runs[slot] = False
            self._rate_bps[slot], self._finish_s[slot] = 0.0, math.inf
            del self.flows[slot]
            self._free.append(slot)
            flow.slot = None

    def _grow(self) -> None:
        old = len(self._runs)
        more = max(8, old)
        self._free = list(range(old + more - 1, old - 1, -1))
        self._remaining_bits = np.append(self._remaining_bits, np.zeros(more))
        self._rate_bps = np.append(self._rate_bps, np.zeros(more))
        self._finish_s = np.append(self._finish_s, np.full(more, math.inf))
        self._runs = np.append(self._runs, np.zeros(more, dtype=bool))
        self._routes = np.pad(self._routes, ((0, more), (0, 0)), constant_values=PAD)
        self._weights = np.pad(self._weights, ((0, more), (0, 0)))

    def _pass_time(self) -> None:
        """Carry bits for the time since the last change; rates were constant."""
        now_s = self.env.now
        if now_s > self._last_s:
            self._remaining_bits -= self._rate_bps * (now_s - self._last_s)
            np.maximum(self._remaining_bits, 0.0, out=self._remaining_bits)
            self._last_s = now_s

    def _change(self) -> None:
        """Have the rates worked out once all that happens in this instant has happened."""
        if not self._changed:
            self._changed = True
            self._call_after(0.0, self._settle)

    def _settle(self, _event: Event) -> None:
        if self._changed:
            self._share()

    def _share(self) -> None:
        self._finish_due()
        self._pass_time()
        self._changed = False
        self.recomputed += 1
        runs = np.flatnonzero(self._runs)
        self._rate_bps[:] = 0.0
        self._finish_s[:] = math.inf
        if runs.size:
            rates = max_min_rates(self._routes[runs], self._weights[runs], self._in_use.capacity_bps())
            left = self._remaining_bits[runs]
            with np.errstate(divide="ignore", invalid="ignore"):
                finish_s = np.where(left > 0, self.env.now + left / rates, self.env.now)
            self._rate_bps[runs] = rates
            self._finish_s[runs] = finish_s
            self._wake_at(float(finish_s.min()))

    def _wake_at(self, time_s: float) -> None:
        # One that comes too early only looks and sets the next; so a later completion needs no new event.
        if time_s < self._wakes_s:
            self._wakes_s = time_s
            self._wake = self._call_after(max(0.0, time_s - self.env.now), self._complete)

    def _complete(self, event: Event) -> None:
        if event is not self._wake:
            return
        self._wakes_s = math.inf
        self._finish_due()
        if not self._changed and self.flows:
            self._wake_at(float(self._finish_s.min()))

    def _finish_due(self) -> None:
        """Take off the flows whose last bit has left by now."""
        now_s = self.env.now
        due = np.flatnonzero(self._finish_s <= now_s + _TIE_ULPS * math.ulp(now_s))
        if due.size:
            self._pass_time()
        for slot in due.tolist():
            flow = self.flows[slot]
            self._lift(flow)
            self._forget(flow)
            flow.all_sent()

    def _call_after(self, delay_s: float, callback: Callable[[Event], None]) -> Event:
        event = self.env.timeout(delay_s)
        # SimPy empties an event's callbacks once it is processed; a fresh one always has the list.
        if event.callbacks is not None:
            event.callbacks.append(callback)
        return event
