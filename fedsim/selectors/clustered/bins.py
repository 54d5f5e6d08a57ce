"""The m distributions of clustered sampling, in whole numbers.

Fraboni, Vidal, Kameni and Lorenzi, "Clustered Sampling: Low-Variance and Improved Representativity for Clients
Selection in Federated Learning", ICML 2021. With N samples in all, client i has mass ``m n_i`` and each of m bins has
the capacity N. A full bin is a distribution, from which one client is drawn. As the bins together contain ``m n_i`` of
client i, its expected share of the m draws is ``n_i / N`` (Proposition 1: the scheme is unbiased).
"""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Bins:
    """Contents of m bins of equal capacity, as segments of a line."""

    owner: IntArray
    ends: IntArray
    capacity: int

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Return one client from each bin, with probabilities in proportion to mass in the bin; shape (m,)."""
        bins = int(self.ends[-1]) // self.capacity
        points = np.arange(bins) * self.capacity + rng.integers(self.capacity, size=bins)
        return np.asarray(self.owner[np.searchsorted(self.ends, points, side="right")])

    def distributions(self, clients: int) -> FloatArray:
        """Return the probability of each client in each bin, shape (m, clients)."""
        bins = int(self.ends[-1]) // self.capacity
        mass = np.diff(self.ends, prepend=0)
        table = np.zeros((bins, clients))
        np.add.at(table, ((self.ends - 1) // self.capacity, self.owner), mass)
        return table / self.capacity


def pour(owner: IntArray, mass: IntArray, room: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Fill bins with clients, in their orders; the rest of a client that does not fit goes into the next bin."""
    poured, filled = np.cumsum(mass), np.cumsum(room)
    # A stable sort merges two ascending runs in linear time.
    ends = np.sort(np.concatenate([poured, filled]), kind="stable")
    ends = ends[np.diff(ends, prepend=0) > 0]
    amount = np.diff(ends, prepend=0)
    return np.searchsorted(filled, ends, side="left"), owner[np.searchsorted(poured, ends, side="left")], amount


def bins_by_size(sizes: IntArray, bins: int) -> Bins:
    """Return the bins of Algorithm 1: clients by descending size fill one bin after the other."""
    order = np.argsort(-sizes, kind="stable")
    capacity = int(sizes.sum())
    _, owner, mass = pour(order, bins * sizes[order], np.full(bins, capacity))
    return Bins(owner, np.cumsum(mass), capacity)


def bins_by_cluster(sizes: IntArray, cluster: IntArray, bins: int, rng: np.random.Generator) -> Bins:
    """Return the bins of Algorithm 2: the m heaviest clusters have a bin each, the others fill the free capacity."""
    capacity, mass = int(sizes.sum()), bins * sizes
    heavy = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    np.add.at(heavy, cluster, mass)
    rising = np.argsort(heavy, kind="stable")
    kept = rising[-bins:]
    bin_of = np.full(heavy.size, -1)
    bin_of[kept] = np.arange(bins - kept.size, bins)
    own = np.flatnonzero(bin_of[cluster] >= 0)
    inside = np.minimum(mass[own], capacity)
    room = np.full(bins, capacity)
    np.subtract.at(room, bin_of[cluster[own]], inside)
    others = rng.permutation(np.flatnonzero(bin_of[cluster] < 0))
    place = np.empty(heavy.size, dtype=np.int64)
    place[rising] = np.arange(heavy.size)
    others = others[np.argsort(place[cluster[others]], kind="stable")]
    leftover = np.concatenate([mass[own] - inside, mass[others]])
    where, owner, amount = pour(np.concatenate([own, others]), leftover, room)
    where, owner = np.concatenate([bin_of[cluster[own]], where]), np.concatenate([own, owner])
    amount = np.concatenate([inside, amount])
    order = np.argsort(where, kind="stable")
    order = order[amount[order] > 0]
    return Bins(owner[order], np.cumsum(amount[order]), capacity)
