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
        self._capacity_bps, self._users = capacity_bps.copy(), [0] * capacity_bps.size
        self._faded = None if fading is None else FadedLinks(fading, capacity_bps.size)
        # Rates ahead, and what was left to send and had been on the air when they were computed.
        self._ahead: BlocksAhead | None = None
        self._left_bits, self._before_s = np.zeros((2, 0))
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
        return self._capacity_bps.size

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
        self._own[row] = own if own in route.links else PAD
        self._routes[row] = PAD
        self._routes[row, :depth] = route.links
        self._weights[row, :depth] = route.weights
        for link in route.links:
            self._users[link] += 1
        if self._faded is not None:
            self._airtimes[:, row] = PAD
            for place, ends in enumerate(route.airtimes):
                self._airtimes[:, row, place] = ends

    def lift(self, route: Route | None) -> None:
        for link in () if route is None else route.links:
            self._users[link] -= 1
            if self._faded is not None and not self._users[link]:
                self._faded.remove(link)

    def holds(self, link: int) -> bool:
        return self._users[link] > 0

    def set_capacity(self, link: int, capacity_bps: float) -> bool:
        self._capacity_bps[link] = capacity_bps
        return self.holds(link)

    def fading_changed(self, link: int) -> bool:
        if self._faded is None or not self.holds(link):
            return False
        self._faded.changed(link)
        return True

    def carry(self, elapsed_s: float, now_s: float) -> None:
        if self._ahead is not None:
            sent, on_air_s = self._ahead.carried(now_s, self._before_s)
            self.remaining_bits[self._ahead.rows] = np.maximum(self._left_bits - sent, 0.0)
            self.air_s[self._ahead.rows] = on_air_s
            return
        if self.counts_air:
            self.air_s += self._air_part * elapsed_s
        self.remaining_bits -= self.rate_bps * elapsed_s
        np.maximum(self.remaining_bits, 0.0, out=self.remaining_bits)

    def rate_at(self, row: int, now_s: float) -> float:
        if self._ahead is not None:
            self.rate_bps[self._ahead.rows] = self._ahead.present_rate_bps(now_s)
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
            links, place = self._in_use(runs)
            left_bits = self.remaining_bits[runs]
            self._ahead = self._look_ahead(runs, links, place, now_s, quiet_s)
            if self._ahead is not None:
                self._left_bits, self._before_s = left_bits, self.air_s[runs]
                self._finish_s[runs] = now_s + self._ahead.after_s(left_bits)
                self.rate_bps[runs] = self._ahead.rate_bps[0]
                return min(self.next_finish_s(), self.known_until_s)
            rates = max_min_rates(place[self._routes[runs]], self._weights[runs], self._capacity_bps[links])
            with np.errstate(divide="ignore", invalid="ignore"):
                self._finish_s[runs] = np.where(left_bits > 0, now_s + left_bits / rates, now_s)
            self.rate_bps[runs] = rates
            if self.counts_air:
                self._air_part[runs] = air_parts(rates, self._capacity_bps[links], place[self._own[runs]])
        return self.next_finish_s()

    @property
    def known_until_s(self) -> float:
        return math.inf if self._ahead is None else self._ahead.since_s + self._ahead.length_s

    def _in_use(self, runs: IntArray) -> tuple[IntArray, Indices]:
        """Return the links on the routes of flows, and the place of each of them; that of `PAD` is `PAD`."""
        used = np.zeros(self.links + 1, dtype=np.bool_)
        used[self._routes[runs].ravel()] = True
        used[PAD] = False
        links = np.flatnonzero(used)
        place = np.full(used.size, PAD)
        place[links] = np.arange(links.size)
        return links, place

    def _look_ahead(
        self, runs: IntArray, links: IntArray, place: Indices, now_s: float, quiet_s: float
    ) -> BlocksAhead | None:
        """Return the rates in some blocks ahead, None where nothing fades."""
        faded = self._faded
        if faded is None or not (most := faded.begin(block := _block(faded.fading, now_s), links)):
            return None
        coherence_s, left_bits = faded.fading.coherence_s, self.remaining_bits[runs]
        routes, airtimes = place[self._routes[runs]], place[self._airtimes[:, runs]]
        weights, mean_bps = self._weights[runs], self._capacity_bps[links]
        whole_bps = mean_bps.copy() if self.counts_air else mean_bps
        usual_bps = None
        if np.any(airtimes != PAD):
            usual_bps = max_min_rates(routes, weights, mean_bps)
            mean_bps *= time_parts(routes, airtimes, usual_bps, mean_bps)
            mean_bps[airtimes[airtimes != PAD]] = math.inf
        flows = FlowsOverBlocks.of(routes, weights, mean_bps)
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
        ratios = faded.ahead(block, blocks, min(expected, _AT_ONCE // runs.size), links)
        length_s = np.full(len(ratios), coherence_s)
        if coherence_s < math.inf:
            length_s[0] = max((block + 1) * coherence_s - now_s, 2 * math.ulp(now_s))
        rates_bps = flows.rates_bps(mean_bps * ratios)
        air = np.zeros(rates_bps.shape)
        if self.counts_air:
            air = air_parts(rates_bps, whole_bps * ratios, place[self._own[runs]])
        return BlocksAhead.over(now_s, runs, rates_bps, air, length_s)

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


def _block(fading: LinkFading, now_s: float) -> int:
    """Return the number of the present block; at its last instant that of the next one."""
    if math.isinf(fading.coherence_s):
        return 0
    block = int(min(now_s / fading.coherence_s, fading.last_block))
    return block + ((block + 1) * fading.coherence_s - now_s <= _TIE_ULPS * math.ulp(now_s))
