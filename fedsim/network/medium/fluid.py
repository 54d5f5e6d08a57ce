"""Fluid transfers on the clock: rates are known between the starts and ends of transfers."""

import math
from collections.abc import Sequence

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray
from fedsim.clock import call_after
from fedsim.network.topology.faded_links import LinkFading
from fedsim.network.topology.flow_state import FlowState, Route as Route
from fedsim.network.transfers import Transfer


class FluidTransfer(Transfer):
    """One flow, whose client's radio sends over the first link of its route, or receives over the last."""

    def __init__(self, fluid: "Fluid", bits: float, ends: tuple[int, int], *, up: bool) -> None:
        self.done: Event = fluid.env.event()
        self.bits, self.ends, self.up, self._air_s = bits, ends, up, 0.0
        self.route: Route | None = None
        self.slot: int | None = None
        self._fluid = fluid
        self._sent_bits = 0.0
        self._cancelled = False

    def cancel(self) -> None:
        if self._cancelled or self.done.triggered:
            return
        self._cancelled = True
        if self.slot is not None:
            self._sent_bits, self._air_s = self.sent_bits(), self._fluid.air_s(self)
            self._fluid.remove(self)

    def sent_bits(self) -> float:
        """Bits in the propagation delay of the route count as sent."""
        return self._sent_bits if self.slot is None else self.bits - self._fluid.remaining_bits(self)

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the part of the time in which the client's own link has carried the flow, where it is counted."""
        if not self._fluid.counts_air:
            return elapsed_s
        return min(self._air_s if self.slot is None else self._fluid.air_s(self), elapsed_s)

    def uses(self, link: int) -> bool:
        return self.route is not None and link in self.route.links

    def rate_bps(self) -> float:
        """Return the present rate, 0 when all bits are sent."""
        return self._fluid.rate_of(self)

    def all_sent(self, air_s: float) -> None:
        """Let the last bit arrive after the propagation delay of the route."""
        self._sent_bits, self._air_s = self.bits, air_s
        delay_s = self.route.delay_s if self.route else 0.0
        call_after(self._fluid.env, delay_s, self._arrive)

    def _arrive(self, _event: Event) -> None:
        if not self._cancelled:
            self.done.succeed()


class Fluid:
    """All transfers over a set of links, which they share max-min fairly."""

    def __init__(self, env: Environment, capacity_bps: FloatArray, fading: LinkFading | None = None) -> None:
        self.env = env
        self.recomputed = 0
        self.transfers: dict[int, FluidTransfer] = {}
        self._table = FlowState(capacity_bps, fading)
        self._awaited: dict[int, list[Event]] = {}
        self._last_s = self._changed_s = env.now
        self._changed = False
        self._wakes_s = math.inf
        self._wake: Event | None = None

    def count_air(self) -> None:
        """Count the seconds on the air from now on."""
        self._table.counts_air = True

    @property
    def counts_air(self) -> bool:
        return self._table.counts_air

    def begin(
        self, bits: float, route: Route | None, ends: tuple[int, int] = (-1, -1), *, up: bool = True
    ) -> FluidTransfer:
        if not 0 <= bits < math.inf:
            raise ValueError(f"bits: {bits} is not allowed; a transfer has a finite size of at least 0 bits")
        transfer = FluidTransfer(self, bits, ends, up=up)
        transfer.slot = self._table.take(bits)
        self.transfers[transfer.slot] = transfer
        self._place(transfer, transfer.slot, route)
        return transfer

    def move(self, transfer: FluidTransfer, route: Route | None) -> None:
        """Let the remaining bits of a transfer take another route, or none."""
        if route == transfer.route:
            return
        self._finish_due()
        if transfer.slot is not None:
            self._pass_time()
            # Placed before it is lifted: a link of both routes stays in use, and its fading goes on.
            left = transfer.route
            self._place(transfer, transfer.slot, route)
            self._table.lift(left)
            self._change()

    def remove(self, transfer: FluidTransfer) -> None:
        if transfer.slot is not None:
            self._pass_time()
            self._let_go(transfer, transfer.slot)

    def set_capacity(self, link: int, capacity_bps: float) -> None:
        if self._table.set_capacity(link, capacity_bps):
            self._change()

    def fading_changed(self, link: int) -> None:
        if self._table.fading_changed(link):
            self._change()

    def in_use(self, links: Sequence[int]) -> Event:
        """Return an event that triggers as soon as a transfer uses one of the links, now if one does already."""
        event = self.env.event()
        if any(self._table.holds(link) for link in links):
            event.succeed()
        else:
            for link in links:
                waiting = [other for other in self._awaited.get(link, ()) if not other.triggered]
                self._awaited[link] = [*waiting, event]
        return event

    def remaining_bits(self, transfer: FluidTransfer) -> float:
        self._pass_time()
        return float(self._table.remaining_bits[transfer.slot])

    def air_s(self, transfer: FluidTransfer) -> float:
        self._pass_time()
        return float(self._table.air_s[transfer.slot])

    def rate_of(self, transfer: FluidTransfer) -> float:
        """Return the present rate of a transfer after all changes of this instant; 0 when all bits are sent."""
        if self._changed:
            self._share()
        return 0.0 if transfer.slot is None else self._table.rate_at(transfer.slot, self.env.now)

    def load_bps(self) -> FloatArray:
        load = np.zeros(self._table.links)
        for transfer in self.transfers.values():
            if transfer.route is not None:
                np.add.at(load, list(transfer.route.links), np.array(transfer.route.weights) * self.rate_of(transfer))
        return load

    def _place(self, transfer: FluidTransfer, slot: int, route: Route | None) -> None:
        transfer.route = route
        self._table.place(slot, route, -1 if route is None else route.ends[0 if transfer.up else 1])
        if route is None:
            return
        for link in route.links if self._awaited else ():
            for event in self._awaited.pop(link, ()):
                if not event.triggered:
                    event.succeed()
        self._change()

    def _let_go(self, transfer: FluidTransfer, slot: int) -> None:
        self._table.give_back(slot)
        del self.transfers[slot]
        transfer.slot = None
        if transfer.route is not None:
            self._table.lift(transfer.route)
            self._change()

    def _pass_time(self) -> None:
        """Send bits for the time since the last change, at constant rates."""
        now_s = self.env.now
        if now_s > self._last_s:
            self._table.carry(now_s - self._last_s, now_s)
            self._last_s = now_s

    def _change(self) -> None:
        if not self._changed:
            self._changed, self._changed_s = True, self.env.now
            call_after(self.env, 0.0, self._compute_rates)

    def _compute_rates(self, _event: Event) -> None:
        if self._changed:
            self._share()

    def _share(self) -> None:
        self._finish_due()
        self._pass_time()
        self._changed = False
        self.recomputed += 1
        now_s = self.env.now
        # About as long as it has lasted since the last change, or until the next event of all.
        quiet_s = max(self.env.peek() - now_s, 2 * (now_s - self._changed_s))
        self._wake_at(self._table.share(now_s, quiet_s))

    def _wake_at(self, time_s: float) -> None:
        # An event that is too early sets the next one, so that a later end needs no new event.
        if time_s < self._wakes_s:
            self._wakes_s = time_s
            self._wake = call_after(self.env, max(0.0, time_s - self.env.now), self._complete)

    def _complete(self, event: Event) -> None:
        if event is not self._wake:
            return
        self._wakes_s = math.inf
        self._finish_due()
        if not self._changed:
            if self._table.known_until_s <= self.env.now + 2 * math.ulp(self.env.now):
                self._share()
            else:
                self._wake_at(min(self._table.next_finish_s(), self._table.known_until_s))

    def _finish_due(self) -> None:
        due = self._table.due(self.env.now)
        if due:
            self._pass_time()
        for slot in due:
            transfer = self.transfers[slot]
            air_s = float(self._table.air_s[slot])
            self._let_go(transfer, slot)
            transfer.all_sent(air_s)
