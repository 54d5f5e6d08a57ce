"""Transfers and fair rates worked out step by step in plain Python, to compare channels and media with."""

import math
from itertools import count
from operator import itemgetter

import numpy as np


def transfer_over_blocks_s(rate_bps, coherence_s, start_s, bits):
    """Return the seconds that bits take from an instant on, where a function tells the rate of each block."""
    block, now_s = math.floor(start_s / coherence_s), start_s
    while True:
        rate, end_s = rate_bps(block), (block + 1) * coherence_s
        if rate and bits <= rate * (end_s - now_s):
            return now_s + bits / rate - start_s
        bits -= rate * (end_s - now_s)
        now_s, block = end_s, block + 1


def pieces_from(start_s, edges_s, rates_bps, after):
    """Yield the length and the rate of each piece of a trace from an instant on, and what comes after the last one."""
    period_s = edges_s[-1]
    for lap in count(int(start_s // period_s)) if after == "repeat" else (0,):
        for begin_s, end_s, rate_bps in zip(edges_s, edges_s[1:], rates_bps, strict=False):
            yield max(0.0, lap * period_s + end_s - max(start_s, lap * period_s + begin_s)), rate_bps
    yield math.inf, rates_bps[-1] if after == "hold" else 0.0


def seconds_of(bits, pieces):
    took_s = 0.0
    for length_s, rate_bps in pieces:
        if rate_bps and bits <= rate_bps * length_s:
            return took_s + bits / rate_bps
        took_s += length_s
        bits -= rate_bps * length_s if rate_bps else 0.0
    return math.inf


def bits_within(seconds, pieces):
    bits = 0.0
    while seconds > 0:
        length_s, rate_bps = next(pieces)
        bits, seconds = bits + rate_bps * min(length_s, seconds), seconds - length_s
    return bits


def filled(routes, capacity):
    """Return max-min fair rates of routes, {link: weight}, one level of the textbook's water after the other."""
    rates = [None] * len(routes)
    left = dict(capacity)
    while None in rates:
        load = {}
        for route, rate in zip(routes, rates, strict=True):
            for link, weight in route.items() if rate is None else ():
                load[link] = load.get(link, 0.0) + weight
        full = min(load, key=lambda link: left[link] / load[link])
        level = left[full] / load[full]
        for i, route in enumerate(routes):
            if rates[i] is None and full in route:
                rates[i] = level
                for link, weight in route.items():
                    left[link] = max(0.0, left[link] - weight * level)
    return rates


def scheduled_by_rate_over_average(rates, window, slots=1):
    """Return mean rates and shares of time after a fifth of the blocks: slots go to the largest rate over its average.

    Rates have the shape (blocks, clients), and averages go back a window of slots, of which a block has some.
    """
    average, served, times, settled = *([value] * len(rates[0]) for value in (1e-3, 0.0, 0)), len(rates) // 5
    for block, rate in enumerate(rates.tolist()):
        for _ in range(slots):
            best = max(range(len(rate)), key=lambda client: rate[client] / average[client])
            average = [value * (1 - 1 / window) for value in average]
            average[best] += rate[best] / window
            if block >= settled:
                served[best] += rate[best]
                times[best] += 1
    return np.array(served) / sum(times), np.array(times) / sum(times)


def flows_by_events(capacity, events):
    """Return when flows arrive over links that they share max-min fairly, and the bits left of each at each event.

    Events are ``(instant, "begin", flow, bits, way)``, ``(instant, "move", flow, way)``, ``(instant, "cancel", flow)``
    and ``(instant, "capacity", link, value)``; a way is ({link: weight}, delay), or None.
    """
    left, ways, ends, seen, now_s = {}, {}, {}, [], 0.0
    capacity, coming = dict(capacity), sorted(events, key=itemgetter(0))
    while True:
        sending = [flow for flow, way in ways.items() if way and flow not in ends]
        rates = dict(zip(sending, filled([ways[flow][0] for flow in sending], capacity), strict=True))
        last_bits = {flow: now_s + left[flow] / (rate or 1.0) for flow, rate in rates.items() if rate or not left[flow]}
        next_s = min([*last_bits.values(), *(event[0] for event in coming[:1])], default=None)
        if next_s is None:
            return ends, seen
        left.update({flow: left[flow] - rate * (next_s - now_s) for flow, rate in rates.items()})
        now_s = next_s
        for flow, last_s in last_bits.items():
            if last_s <= now_s * (1 + 1e-12):
                left[flow], ends[flow] = 0.0, now_s + ways[flow][1]
        while coming and coming[0][0] <= now_s:
            _, what, name, *known = coming.pop(0)
            if what == "begin":
                left[name], ways[name] = known
            elif what == "capacity":
                capacity[name] = known[0]
            elif ends.get(name, math.inf) > now_s:
                ways[name] = known[0] if what == "move" and name not in ends else ways[name]
                if what == "cancel":
                    ends.pop(name, None)
                    ways[name] = None
            seen.append(dict(left))
