"""Flows as rows of arrays: their remaining bits, routes and fair rates, without a clock.

`fedsim.network.medium.fluid` reports the time that has passed, and every change.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray
from fedsim.network.topology.max_min import PAD, max_min_rates


class LinksInUse:
    """The links that flows use, numbered without gaps, so that idle links cost nothing."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._holders: dict[int, int] = {}
        self._free: list[int] = []
        self._capacity_bps = np.zeros(16)

    def holds(self, link: int) -> bool:
        """Return whether any flow uses a link."""
        return link in self._number

    def hold(self, link: int, capacity_bps: float) -> int:
        """Return the number of a link with one more user; a link without users is given a number."""
        number = self._number.get(link)
        if number is None:
            number = self._free.pop() if self._free else len(self._number)
            if number == self._capacity_bps.size:
                self._capacity_bps = np.append(self._capacity_bps, np.zeros(number))
            self._number[link], self._holders[link] = number, 0
            self._capacity_bps[number] = capacity_bps
        self._holders[link] += 1
        return number

    def release(self, link: int) -> None:
        """Remove one user of a link, and free its number after the last."""
        self._holders[link] -= 1
        if not self._holders[link]:
            del self._holders[link]
            self._free.append(self._number.pop(link))

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        """Change the capacity of a link; return whether any flow uses it."""
        number = self._number.get(link)
        if number is not None:
            self._capacity_bps[number] = capacity_bps
        return number is not None

    def capacity_bps(self) -> FloatArray:
        """Return the capacities by number in bit/s; values at unused numbers have no meaning."""
        return self._capacity_bps[: len(self._number) + len(self._free)]


# The same instant reached by different sums may differ in the last digits.
_TIE_ULPS: Final = 8


@dataclass(frozen=True)
class Route:
    """The route of a flow: the links that it uses.

    Attributes
    ----------
    links : their numbers, none twice
    weights : capacity of each link that a flow takes per bit/s of its rate
    delay_s : propagation delay of the whole route
    """

    links: tuple[int, ...]
    weights: tuple[float, ...]
    delay_s: float


class FlowState:
    """The state of all flows, a row for each; rows are used again.

    Parameters
    ----------
    capacity_bps : array of shape (m,)
        Capacity of each link at the start.

    Attributes
    ----------
    remaining_bits, rate_bps : by row; bits as of the last call of `carry`
    """

    def __init__(self, capacity_bps: FloatArray) -> None:
        self._capacity_bps: list[float] = capacity_bps.tolist()
        self._in_use = LinksInUse()
        self._free: list[int] = []
        self.remaining_bits = np.zeros(0)
        self.rate_bps = np.zeros(0)
        self._finish_s = np.zeros(0)
        self._runs = np.zeros(0, dtype=bool)
        self._routes: NDArray[np.intp] = np.zeros((0, 1), dtype=np.intp)
        self._weights = np.zeros((0, 1))

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self._capacity_bps)

    def take(self, bits: float) -> int:
        """Return the row of a new flow, which has no route yet."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.remaining_bits[row] = bits
        self._stop(row)
        return row

    def give_back(self, row: int) -> None:
        """Free the row of a flow that has no route any more."""
        self._stop(row)
        self._free.append(row)

    def place(self, row: int, route: Route | None) -> None:
        """Give a flow that has no route one, or none.

        Parameters
        ----------
        row : of the flow
        route : None for a flow that waits
        """
        if route is None:
            self._stop(row)
            return
        self._runs[row] = True
        depth = len(route.links)
        if depth > self._routes.shape[1]:
            more = ((0, 0), (0, depth - self._routes.shape[1]))
            self._routes = np.pad(self._routes, more, constant_values=PAD)
            self._weights = np.pad(self._weights, more)
        self._routes[row] = PAD
        self._routes[row, :depth] = [self._in_use.hold(link, self._capacity_bps[link]) for link in route.links]
        self._weights[row, :depth] = route.weights

    def lift(self, route: Route | None) -> None:
        """Remove a flow from the links of its route."""
        for link in () if route is None else route.links:
            self._in_use.release(link)

    def holds(self, link: int) -> bool:
        """Return whether any flow uses a link."""
        return self._in_use.holds(link)

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        """Change the capacity of a link; return whether any flow uses it."""
        self._capacity_bps[link] = capacity_bps
        return self._in_use.set_capacity(link, capacity_bps)

    def carry(self, elapsed_s: float) -> None:
        """Send for some seconds at the present rates."""
        self.remaining_bits -= self.rate_bps * elapsed_s
        np.maximum(self.remaining_bits, 0.0, out=self.remaining_bits)

    def share(self, now_s: float) -> float:
        """Compute the max-min fair rates of all flows, and return the instant of the first end."""
        runs = np.flatnonzero(self._runs)
        self.rate_bps[:] = 0.0
        self._finish_s[:] = math.inf
        if runs.size:
            rates = max_min_rates(self._routes[runs], self._weights[runs], self._in_use.capacity_bps())
            left = self.remaining_bits[runs]
            with np.errstate(divide="ignore", invalid="ignore"):
                self._finish_s[runs] = np.where(left > 0, now_s + left / rates, now_s)
            self.rate_bps[runs] = rates
        return self.next_finish_s()

    def next_finish_s(self) -> float:
        """Return the instant at which the first flow has sent its last bit, at the present rates."""
        return float(self._finish_s.min(initial=math.inf))

    def due(self, now_s: float) -> list[int]:
        """Return the rows whose last bit has left by now."""
        due: list[int] = np.flatnonzero(self._finish_s <= now_s + _TIE_ULPS * math.ulp(now_s)).tolist()
        return due

    def _stop(self, row: int) -> None:
        self._runs[row] = False
        self.rate_bps[row], self._finish_s[row] = 0.0, math.inf

    def _grow(self) -> None:
        old = len(self._runs)
        more = max(8, old)
        self._free = list(range(old + more - 1, old - 1, -1))
        self.remaining_bits = np.append(self.remaining_bits, np.zeros(more))
        self.rate_bps = np.append(self.rate_bps, np.zeros(more))
        self._finish_s = np.append(self._finish_s, np.full(more, math.inf))
        self._runs = np.append(self._runs, np.zeros(more, dtype=bool))
        self._routes = np.pad(self._routes, ((0, more), (0, 0)), constant_values=PAD)
        self._weights = np.pad(self._weights, ((0, more), (0, 0)))
