"""Transfers and fair rates worked out step by step in plain Python, to compare channels and media with."""

import math


def transfer_over_blocks_s(rate_bps, coherence_s, start_s, bits):
    """Return the seconds that bits take from an instant on, where a function tells the rate of each block."""
    block, now_s = math.floor(start_s / coherence_s), start_s
    while True:
        rate, end_s = rate_bps(block), (block + 1) * coherence_s
        if rate and bits <= rate * (end_s - now_s):
            return now_s + bits / rate - start_s
        bits -= rate * (end_s - now_s)
        now_s, block = end_s, block + 1


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
