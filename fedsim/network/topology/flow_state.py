"""Flows as rows of arrays: their remaining bits, routes and fair rates, without a clock."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.topology.block_shares import (
    PAD,
    BlocksAhead,
    FlowsOverBlocks,
    Indices,
    air_parts,
    max_min_rates,
    time_parts,
)
from fedsim.network.topology.faded_links import FadedLinks, LinkFading

# The same instant reached by different sums may differ in the last digits.
_TIE_ULPS: Final = 8
_ELEMENTS: Final = 2**13
"""Rates computed at once, few enough for a core's cache."""
_AT_LEAST: Final = 2**8
"""Rates that cost about as little as one."""
_AT_ONCE: Final = 400
"""Ratios that are drawn in about the time of a fourth of them."""


@dataclass(frozen=True)
class Route:
    """The links of a flow, none of them twice.

    A flow takes `weights` of the capacity of each link per bit/s of its rate. `airtimes` are, by a link's place in
    `links`, the airtimes at its begin and its end, which are among the links; -1 for none. `ends` are the first and the
    last link of its path.
    """

    links: tuple[int, ...]
    weights: tuple[float, ...]
    delay_s: float
    airtimes: tuple[tuple[int, int], ...] = ()
    ends: tuple[int, int] = (-1, -1)


class FlowState:
    """The state of all flows, a row for each; rows are used again."""

    def __init__(self, capacity_bps: FloatArray, fading: LinkFading | None = None) -> None:
        self._capacity_bps: list[float] = capacity_bps.tolist()
        self._faded = None if fading is None else FadedLinks(fading)
        self._in_use = LinksInUse(self._faded)
        self._ahead: BlocksAhead | None = None
        self._free: list[int] = []
        self.remaining_bits = np.zeros(0)
        self.rate_bps = np.zeros(0)
        # Of each flow: seconds in which its client's own link has carried it, the part of now, and that link's number.
        self.counts_air = False
        self.air_s, self._air_part = np.zeros(0), np.zeros(0)
        self._own: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._finish_s = np.zeros(0)
        self._runs = np.zeros(0, dtype=bool)
        self._routes: NDArray[np.intp] = np.zeros((0, 1), dtype=np.intp)
        self._weights = np.zeros((0, 1))
        self._airtimes: NDArray[np.intp] = np.zeros((2, 0, 1), dtype=np.intp)

    @property
    def links(self) -> int:
        return len(self._capacity_bps)

    def take(self, bits: float) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.remaining_bits[row], self.air_s[row] = bits, 0.0
        self._stop(row)
        return row

    def give_back(self, row: int) -> None:
        self._stop(row)
        self._free.append(row)

    def place(self, row: int, route: Route | None, own: int = -1) -> None:
        """Let a flow take a route, of which a link is its client's own; -1 where no client's radio carries it."""
        if route is None:
            self._stop(row)
            return
        self._runs[row] = True
        depth = len(route.links)
        if depth > self._routes.shape[1]:
            more = ((0, 0), (0, depth - self._routes.shape[1]))
            self._routes = np.pad(self._routes, more, constant_values=PAD)
            self._weights = np.pad(self._weights, more)
            self._airtimes = np.pad(self._airtimes, ((0, 0), *more), constant_values=PAD)
        numbers = {link: self._in_use.hold(link, self._capacity_bps[link]) for link in route.links}
        self._own[row] = numbers.get(own, PAD)
        self._routes[row] = PAD
        self._routes[row, :depth] = list(numbers.values())
        self._weights[row, :depth] = route.weights
        if self._faded is not None:
            self._airtimes[:, row] = PAD
            for place, ends in enumerate(route.airtimes):
                self._airtimes[:, row, place] = [numbers.get(airtime, PAD) for airtime in ends]

    def lift(self, route: Route | None) -> None:
        for link in () if route is None else route.links:
            self._in_use.release(link)

    def holds(self, link: int) -> bool:
        return self._in_use.holds(link)

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        self._capacity_bps[link] = capacity_bps
        return self._in_use.set_capacity(link, capacity_bps)

    def fading_changed(self, link: int) -> bool:
        number = self._in_use.number(link)
        if number is None or self._faded is None:
            return False
        self._faded.changed(number)
        return True

    def carry(self, elapsed_s: float, now_s: float) -> None:
        if self._ahead is not None:
            self.remaining_bits[self._ahead.rows] = self._ahead.left_at(now_s)
            if self.counts_air:
                self.air_s[self._ahead.rows] = self._ahead.air_at(now_s)
            return
        if self.counts_air:
            self.air_s += self._air_part * elapsed_s
        self.remaining_bits -= self.rate_bps * elapsed_s
        np.maximum(self.remaining_bits, 0.0, out=self.remaining_bits)

    def rate_at(self, row: int, now_s: float) -> float:
        if self._ahead is not None:
            self.rate_bps[self._ahead.rows] = self._ahead.rates_at(now_s)
        return float(self.rate_bps[row])

    def share(self, now_s: float, quiet_s: float = 0.0) -> float:
        """Compute the max-min fair rates of all flows, and return the instant until which they hold."""
        runs = np.flatnonzero(self._runs)
        self.rate_bps[:] = 0.0
        if self.counts_air:
            self._air_part[:] = 0.0
        self._finish_s[:] = math.inf
        self._ahead = None
        if runs.size:
            faded = self._faded
            if faded is not None and faded.present and (left := faded.begin(block := _block(faded.fading, now_s))):
                self._ahead = self._look_ahead(faded, runs, now_s, block, quiet_s, left)
                self._finish_s[runs] = self._ahead.finish_s()
                self.rate_bps[runs] = self._ahead.rate_bps[0]
                return min(self.next_finish_s(), self._ahead.until_s)
            rates = max_min_rates(self._routes[runs], self._weights[runs], self._in_use.capacity_bps())
            left_bits = self.remaining_bits[runs]
            with np.errstate(divide="ignore", invalid="ignore"):
                self._finish_s[runs] = np.where(left_bits > 0, now_s + left_bits / rates, now_s)
            self.rate_bps[runs] = rates
            if self.counts_air:
                self._air_part[runs] = air_parts(rates, self._in_use.capacity_bps(), self._own[runs])
        return self.next_finish_s()

    @property
    def known_until_s(self) -> float:
        return math.inf if self._ahead is None else self._ahead.until_s

    def _look_ahead(
        self, faded: FadedLinks, runs: IntArray, now_s: float, block: int, quiet_s: float, most: int
    ) -> BlocksAhead:
        coherence_s, left_bits = faded.fading.coherence_s, self.remaining_bits[runs]
        numbers, routes, airtimes = _renumbered(self._routes[runs], self._airtimes[:, runs])
        weights, mean_bps = self._weights[runs], self._in_use.capacity_bps()[numbers]
        whole_bps = mean_bps.copy() if self.counts_air else mean_bps
        usual_bps = None
        if np.any(airtimes != PAD):
            usual_bps = max_min_rates(routes, weights, mean_bps)
            mean_bps *= time_parts(routes, airtimes, usual_bps, mean_bps)
            mean_bps[airtimes[airtimes != PAD]] = math.inf
        flows = FlowsOverBlocks.of(routes, weights, self._in_use.users()[numbers], mean_bps)
        if math.isinf(coherence_s):
            blocks = expected = 1
        else:
            if usual_bps is None:
                usual_bps = flows.rates_bps(mean_bps[None])[0]
            first_s = np.divide(left_bits, usual_bps, out=np.full(runs.size, math.inf), where=usual_bps > 0).min()
            expected = int(min(first_s / coherence_s, float(_ELEMENTS))) + 1
            quiet = int(min(quiet_s / coherence_s, float(_ELEMENTS)))
            ahead = min(expected + 2 * math.isqrt(expected), 1 + quiet + _AT_LEAST // runs.size)
            blocks = max(1, min(ahead, _ELEMENTS // runs.size, most))
        ratios = faded.ahead(block, blocks, min(expected, _AT_ONCE // runs.size), numbers)
        length_s = np.full(len(ratios), coherence_s)
        if coherence_s < math.inf:
            length_s[0] = max((block + 1) * coherence_s - now_s, 2 * math.ulp(now_s))
        rates_bps = flows.rates_bps(mean_bps * ratios)
        air = np.zeros((1, 1))
        if self.counts_air:
            # All links in use are in some route, so that a flow's own link is among the numbers; PAD stays.
            own = np.where(self._own[runs] == PAD, PAD, np.searchsorted(numbers, self._own[runs]))
            air = air_parts(rates_bps, whole_bps * ratios, own)
        return BlocksAhead.over(now_s, runs, left_bits, rates_bps, length_s, air, self.air_s[runs])

    def next_finish_s(self) -> float:
        return float(self._finish_s.min(initial=math.inf))

    def due(self, now_s: float) -> list[int]:
        due: list[int] = np.flatnonzero(self._finish_s <= now_s + _TIE_ULPS * math.ulp(now_s)).tolist()
        return due

    def _stop(self, row: int) -> None:
        self._runs[row] = False
        self.rate_bps[row] = self._air_part[row] = 0.0
        self._finish_s[row] = math.inf

    def _grow(self) -> None:
        old = len(self._runs)
        more = max(8, old)
        self._free = list(range(old + more - 1, old - 1, -1))
        self.remaining_bits = np.append(self.remaining_bits, np.zeros(more))
        self.rate_bps = np.append(self.rate_bps, np.zeros(more))
        self.air_s, self._air_part = (np.append(old_s, np.zeros(more)) for old_s in (self.air_s, self._air_part))
        self._own = np.append(self._own, np.full(more, PAD))
        self._finish_s = np.append(self._finish_s, np.full(more, math.inf))
        self._runs = np.append(self._runs, np.zeros(more, dtype=bool))
        self._routes = np.pad(self._routes, ((0, more), (0, 0)), constant_values=PAD)
        self._weights = np.pad(self._weights, ((0, more), (0, 0)))
        self._airtimes = np.pad(self._airtimes, ((0, 0), (0, more), (0, 0)), constant_values=PAD)


class LinksInUse:
    """The links that flows use, numbered without gaps, so that idle links cost nothing."""

    def __init__(self, faded: FadedLinks | None = None) -> None:
        self._number: dict[int, int] = {}
        self._faded = faded
        self._free: list[int] = []
        self._capacity_bps = np.zeros(16)
        self._users = np.zeros(16, dtype=np.int64)

    def holds(self, link: int) -> bool:
        return link in self._number

    def number(self, link: int) -> int | None:
        return self._number.get(link)

    def hold(self, link: int, capacity_bps: float) -> int:
        """Return the number of a link with one more user; a link without users is given a number."""
        number = self._number.get(link)
        if number is None:
            number = self._free.pop() if self._free else len(self._number)
            if number == self._capacity_bps.size:
                self._capacity_bps = np.append(self._capacity_bps, np.zeros(number))
                self._users = np.append(self._users, np.zeros(number, dtype=np.int64))
            self._number[link] = number
            self._capacity_bps[number] = capacity_bps
            if self._faded is not None:
                self._faded.add(number, link)
        self._users[number] += 1
        return number

    def release(self, link: int) -> None:
        """Remove one user of a link, and free its number after the last."""
        number = self._number[link]
        self._users[number] -= 1
        if not self._users[number]:
            self._free.append(self._number.pop(link))
            if self._faded is not None:
                self._faded.remove(number)

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        number = self._number.get(link)
        if number is not None:
            self._capacity_bps[number] = capacity_bps
        return number is not None

    def capacity_bps(self) -> FloatArray:
        return self._capacity_bps[: len(self._number) + len(self._free)]

    def users(self) -> IntArray:
        return self._users[: len(self._number) + len(self._free)]


def _block(fading: LinkFading, now_s: float) -> int:
    """Return the number of the present block; at its last instant that of the next one."""
    if math.isinf(fading.coherence_s):
        return 0
    block = int(min(now_s / fading.coherence_s, fading.last_block))
    return block + ((block + 1) * fading.coherence_s - now_s <= _TIE_ULPS * math.ulp(now_s))


def _renumbered(routes: Indices, airtimes: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the links of routes, and routes and airtimes by the places of links in the first; `PAD` stays."""
    used = np.zeros(int(routes.max()) + 2, dtype=np.bool_)
    used[routes.ravel()] = True
    used[PAD] = False
    numbers = np.flatnonzero(used)
    place = np.full(used.size, PAD)
    place[numbers] = np.arange(numbers.size)
    return numbers, place[routes], place[airtimes]
