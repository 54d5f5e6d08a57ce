"""Transfers that wait for their transport, and the server's own link, which those of a direction share.

Each flow over the server's link has a ceiling, the rate of its client's own link. The rates are max-min fair: all rise
together, a flow stops at its ceiling, and the others divide what is left.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after
from fedsim.network.medium.delayed import DelayedReception, DelayedTransfer
from fedsim.network.medium.fluid import Fluid, FluidTransfer, Route
from fedsim.network.transfers import RoutedMedium, SharedMedium, SpectrumBook, Transfer

_SERVER = 0


@dataclass(frozen=True)
class ServerCapacity:
    """The capacity of the server's link in one direction; `left_bps` takes the number of an interval."""

    left_bps: Callable[[int], float]
    mean_bps: float
    interval_s: float | None


class Plan(NamedTuple):
    """A message of some size: its bits with headers, and the wait of each client before its transfer, shape (K,)."""

    bits: float
    before_s: FloatArray


@dataclass(frozen=True)
class Alone:
    """One direction of the links below a transport."""

    duration_s: Callable[[IntArray, int, FloatArray, float], FloatArray]
    plan: Callable[[float], Plan]


class TransportMedium(SharedMedium):
    def __init__(
        self,
        env: Environment,
        inner: SharedMedium | None,
        ways: tuple[Alone, Alone],
        capacities: tuple[ServerCapacity | None, ServerCapacity | None],
        clients: int,
        *,
        announces: bool,
    ) -> None:
        self.env, self.inner, self._ways, self._announces = env, inner, ways, announces
        self.server = [None if one is None else ServerSide(env, one, clients) for one in capacities]

    def downlink(self, client: int, bits: float) -> Transfer:
        return self._start(0, client, bits)

    def uplink(self, client: int, bits: float) -> Transfer:
        return self._start(1, client, bits)

    def books(self) -> Mapping[str, SpectrumBook]:
        return {} if self.inner is None else self.inner.books()

    def count_air(self) -> None:
        for server in self.server:
            if server is not None:
                server.fluid.count_air()
        if self.inner is not None:
            self.inner.count_air()

    def routed(self) -> RoutedMedium | None:
        """Return the shared links as a routed medium; between servers there is no transport."""
        return None if self.inner is None else self.inner.routed()

    def _start(self, way: int, client: int, bits: float) -> Transfer:
        plan, server = self._ways[way].plan(bits), self.server[way]
        delay_s, share = float(plan.before_s[client]), bits / plan.bits if plan.bits else 1.0
        begin: Callable[[], Transfer]
        if server is not None:
            delay_s, begin = server.planned(self._ways[way], client, plan.bits, delay_s)
        elif self.inner is not None:
            begin = partial(self.inner.uplink if way else self.inner.downlink, client, plan.bits)
        else:
            raise ValueError("this direction is dedicated; ask the links how long a transfer takes")
        announces = self._announces and not way
        transfer = (DelayedReception if announces else DelayedTransfer)(self.env, begin, share)
        if delay_s == 0:
            transfer.begin()
        elif delay_s < math.inf:
            call_after(self.env, delay_s, lambda _event: transfer.begin())
        return transfer


class ServerSide:
    def __init__(self, env: Environment, capacity: ServerCapacity, clients: int) -> None:
        self.env, self._capacity = env, capacity
        self.fluid = Fluid(env, np.append(capacity.left_bps(0), np.zeros(clients)))
        self._draws: dict[int, int] = {}
        self._follows = False

    def planned(self, way: Alone, client: int, bits: float, wait_s: float) -> tuple[float, Callable[[], Transfer]]:
        """Return when a flow joins the server's link, in seconds from now, and what lets it join."""
        draw = self._draws[client] = self._draws.get(client, 0) + 1
        only, start_s = np.array([client]), np.array([self.env.now + wait_s])
        whole_s, empty_s = (float(way.duration_s(only, draw, start_s, size)[0]) for size in (bits, 0.0))
        if whole_s == math.inf:
            return math.inf, partial(self._begin, client, bits, 0.0)
        sending_s = whole_s - empty_s
        ceiling_bps = bits / sending_s if sending_s > 0 else math.inf
        return wait_s + empty_s, partial(self._begin, client, bits, ceiling_bps)

    def _begin(self, client: int, bits: float, ceiling_bps: float) -> FluidTransfer:
        self._look()
        if ceiling_bps == math.inf:
            return self.fluid.begin(bits, Route((_SERVER,), (1.0,), 0.0))
        own = 1 + client
        self.fluid.set_capacity(own, ceiling_bps)
        return self.fluid.begin(bits, Route((_SERVER, own), (1.0, 1.0), 0.0, ends=(own, own)))

    def _look(self) -> None:
        """Take the capacity of the present interval, and those of the next ones as long as there are flows."""
        interval_s = self._capacity.interval_s
        if interval_s is None or self._follows:
            return
        self._follows = True
        number = math.floor(self.env.now / interval_s)
        self.fluid.set_capacity(_SERVER, self._capacity.left_bps(number))
        call_after(self.env, max(0.0, (number + 1) * interval_s - self.env.now), self._next, number + 1)

    def _next(self, event: Event) -> None:
        number, interval_s = cast(int, event.value), cast(float, self._capacity.interval_s)
        self._follows = bool(self.fluid.transfers)
        if self._follows:
            self.fluid.set_capacity(_SERVER, self._capacity.left_bps(number))
            call_after(self.env, max(0.0, (number + 1) * interval_s - self.env.now), self._next, number + 1)
