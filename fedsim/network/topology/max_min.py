"""Max-min fair rates of flows over shared links, by water-filling.

An allocation is max-min fair if no flow can get more without taking from one that has no more than it. There is exactly
one: all rates rise together, a flow stops rising when a link on its route is full, and so each flow has a bottleneck.
That is a full link on which no flow has a higher rate (Bertsekas and Gallager, "Data Networks", 2nd edition, section
6.5.2).
"""

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray

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
