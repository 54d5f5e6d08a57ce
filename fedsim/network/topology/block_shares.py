"""Rates of flows over links that fade, block by block: the time of stations, and max-min fair shares of the wires.

An allocation is max-min fair if no flow can get more without taking from one that has no more than it. There is exactly
one: all rates rise together, a flow stops rising when a link on its route is full, and so each flow has a bottleneck.
That is a full link on which no flow has a higher rate (Bertsekas and Gallager, "Data Networks", 2nd edition, section
6.5.2).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray


def passed_blocks(ends_s: FloatArray, passed_s: float) -> tuple[int, float]:
    """Return the number of whole blocks in some seconds, all but the last at most, and the seconds of the next one."""
    block = min(int(np.searchsorted(ends_s, passed_s, side="right")), ends_s.size - 1)
    return block, passed_s - (float(ends_s[block - 1]) if block else 0.0)


def sent_after_s(ends_s: FloatArray, sent_bits: FloatArray, rate_bps: FloatArray, bits: FloatArray) -> FloatArray:
    """Return the seconds until each sender has sent its bits, shape (m,); `inf` if that is after the last block."""
    after_s = np.full(bits.size, math.inf)
    ending = np.flatnonzero(sent_bits[-1] >= bits)
    if ending.size:
        sent, wanted = sent_bits[:, ending], bits[ending]
        block = np.argmax(sent >= wanted, axis=0)
        before = np.where(block > 0, sent[block - 1, np.arange(ending.size)], 0.0)
        begins_s = np.where(block > 0, ends_s[block - 1], 0.0)
        rate = rate_bps[block, ending]
        took_s = np.divide(wanted - before, rate, out=np.zeros(ending.size), where=rate > 0)
        after_s[ending] = np.minimum(begins_s + took_s, ends_s[block])
    return after_s


PAD = -1


def max_min_rates(routes: NDArray[np.intp], weights: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return the max-min fair rate of each flow, shape (n,).

    The textbook's filling fixes one level of the water after the other. Here each step fixes every link that is a
    bottleneck already: the level at which a link fills can only rise while others are fixed, so a link whose flows
    all fill at its own level first fills at exactly that level. A star with a thousand different access links takes
    a handful of steps.
    """
    links = capacity.size
    rates = np.zeros(len(routes))
    # One more link, never full, takes the places where a route has ended. The long axis comes last: NumPy reduces
    # over a short last axis many times more slowly.
    left = np.append(capacity, np.inf)
    on = np.ascontiguousarray(np.where(routes == PAD, links, routes).T)
    share = np.ascontiguousarray(np.where(routes == PAD, 0.0, weights).T)
    rising = np.arange(len(routes))
    while rising.size:
        load = np.bincount(on.ravel(), share.ravel(), minlength=links + 1)
        level = np.full(links + 1, np.inf)
        np.divide(left, load, out=level, where=load > 0)
        fills_at = level[on]
        stops_at = fills_at.min(axis=0)
        held_back = np.zeros(links + 1, dtype=bool)
        held_back[on[fills_at > stops_at]] = True
        settled = ~held_back[on].all(axis=0)
        rates[rising[settled]] = stops_at[settled]
        if settled.all():
            break
        taken = share[:, settled] * stops_at[settled]
        left[:links] -= np.bincount(on[:, settled].ravel(), taken.ravel(), minlength=links + 1)[:links]
        np.maximum(left, 0.0, out=left)
        rising, on, share = rising[~settled], on[:, ~settled], share[:, ~settled]
    return rates


Indices = NDArray[np.intp]


def time_parts(routes: Indices, airtimes: Indices, rate_bps: FloatArray, capacity_bps: FloatArray) -> FloatArray:
    """Return which part of its stations' time each link has, shape (m,); 1 for links that share no time.

    A transfer at its mean rate r over a link of mean capacity C takes ``r / C`` of a station's time. Time that is left
    is divided in the same proportion, so that the parts of a station are 1 in all.
    """
    parts = np.ones(capacity_bps.size)
    for airtime in airtimes:
        flow, place = np.nonzero(airtime != PAD)
        link, air = routes[flow, place], airtime[flow, place]
        used = np.divide(rate_bps[flow], capacity_bps[link], out=np.zeros(flow.size), where=capacity_bps[link] > 0)
        in_all = np.bincount(air, used, minlength=capacity_bps.size)
        own = np.divide(used, in_all[air], out=np.zeros(flow.size), where=in_all[air] > 0)
        of_links = np.bincount(link, own, minlength=capacity_bps.size)
        parts[link] = np.minimum(parts[link], of_links[link])
    return parts


def air_parts(rate_bps: FloatArray, capacity_bps: FloatArray, own: Indices) -> FloatArray:
    """Return which part of the time each flow's own link is in use for it, of the shape of the rates."""
    own_bps = capacity_bps[..., own]
    part = np.zeros(rate_bps.shape)
    np.divide(rate_bps, own_bps, out=part, where=(own_bps > 0) & (rate_bps < math.inf))
    part[..., own == PAD] = 1.0
    return np.minimum(part, 1.0, out=part)


@dataclass(frozen=True)
class FlowsOverBlocks:
    """Flows whose links have another capacity in each block."""

    routes: Indices
    weights: FloatArray
    alone: tuple[tuple[IntArray | slice, IntArray, FloatArray], ...]
    shared: tuple[IntArray, IntArray, FloatArray]

    @classmethod
    def of(cls, routes: Indices, weights: FloatArray, capacity_bps: FloatArray) -> Self:
        """Return flows over links, of which those of endless capacity play no part."""
        users = np.bincount(routes[routes != PAD], minlength=capacity_bps.size)
        limits = (routes != PAD) & np.isfinite(capacity_bps)[routes]
        own = limits & (users[routes] == 1)
        alone: list[tuple[IntArray | slice, IntArray, FloatArray]] = []
        for place in np.flatnonzero(own.any(axis=0)).tolist():
            chosen = np.flatnonzero(own[:, place])
            these = slice(None) if chosen.size == len(routes) else chosen
            alone.append((these, routes[these, place], weights[these, place]))
        flow, at = np.nonzero(limits & ~own)
        return cls(routes, weights, tuple(alone), (flow, routes[flow, at], weights[flow, at]))

    def ceilings_bps(self, capacity_bps: FloatArray) -> FloatArray:
        rate_bps = np.full((len(capacity_bps), len(self.routes)), math.inf)
        for flow, link, weight in self.alone:
            rate_bps[:, flow] = np.minimum(rate_bps[:, flow], capacity_bps[:, link] / weight)
        return rate_bps

    def rates_bps(self, capacity_bps: FloatArray) -> FloatArray:
        rate_bps = self.ceilings_bps(capacity_bps)
        flow, link, weight = self.shared
        if not flow.size:
            return rate_bps
        blocks, links = capacity_bps.shape
        at = link + links * np.arange(blocks)[:, None]
        load = np.bincount(at.ravel(), (rate_bps[:, flow] * weight).ravel(), minlength=blocks * links)
        full = np.flatnonzero((load.reshape(blocks, links) > capacity_bps).any(axis=1))
        if full.size:
            # The blocks are networks of their own beside one another, filled together.
            apart = links * np.arange(full.size)[:, None, None]
            routes = np.where(self.routes == PAD, PAD, self.routes + apart).reshape(-1, self.routes.shape[1])
            weights = np.tile(self.weights, (full.size, 1))
            filled = max_min_rates(routes, weights, capacity_bps[full].ravel())
            rate_bps[full] = filled.reshape(full.size, -1)
        return rate_bps


@dataclass(frozen=True, slots=True)
class BlocksAhead:
    """Rates of senders for some blocks ahead, and the part of the time that each has, while they stay the same."""

    since_s: float
    rows: IntArray | slice
    rate_bps: FloatArray
    part: FloatArray
    ends_s: FloatArray
    sent_bits: FloatArray

    @classmethod
    def over(
        cls, since_s: float, rows: IntArray | slice, rate_bps: FloatArray, part: FloatArray, length_s: FloatArray
    ) -> Self:
        with np.errstate(invalid="ignore"):
            sent = np.where(rate_bps > 0, rate_bps * length_s[:, None], 0.0)
        return cls(since_s, rows, rate_bps, part, np.cumsum(length_s), np.cumsum(sent, axis=0))

    @property
    def length_s(self) -> float:
        return float(self.ends_s[-1])

    def passed(self, now_s: float) -> tuple[int, float]:
        """Return the number of whole blocks until an instant, and the seconds of the next one."""
        return passed_blocks(self.ends_s, now_s - self.since_s)

    def carried(self, now_s: float, before_s: FloatArray | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return the bits of each sender until now, and its seconds with those before, shapes (m,)."""
        block, rest_s = self.passed(now_s)
        bits = self.rate_bps[block] * rest_s
        if block:
            bits += self.sent_bits[block - 1]
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return bits, before_s + length_s @ self.part[:block] + self.part[block] * rest_s

    def present_rate_bps(self, now_s: float) -> FloatArray:
        present: FloatArray = self.rate_bps[self.passed(now_s)[0]]
        return present

    def after_s(self, left_bits: FloatArray) -> FloatArray:
        """Return the seconds until each sender has sent what is left, shape (m,); `inf` if after the last block."""
        return sent_after_s(self.ends_s, self.sent_bits, self.rate_bps, left_bits)
