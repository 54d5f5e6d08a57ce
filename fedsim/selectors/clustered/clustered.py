"""Clustered sampling: a client from each of m groups of equal data, by size (Algorithm 1) or similarity (Algorithm 2).

With N samples in all, client i has mass ``m n_i`` and each of m bins has the capacity N. A full bin is a distribution,
from which one client is drawn. As the bins together contain ``m n_i`` of client i, its expected share of the m draws is
``n_i / N`` (Proposition 1: the scheme is unbiased).
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.noise import Noise
from fedsim.selectors.sampling import CohortSelector, data_sizes, tally
from fedsim.selectors.update_distances import Metric, UpdateDistances

_PAPER: Final = (
    "Fraboni, Vidal, Kameni and Lorenzi, Clustered Sampling: Low-Variance and Improved Representativity for "
    "Clients Selection in Federated Learning, ICML 2021"
)


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


class ClusteredBySize(CohortSelector):
    """Draw one client from each of m distributions that are filled with clients by descending number of samples.

    The scheme is unbiased like MD sampling, with less variance of the number of draws of a client: it can be drawn from
    at most ``floor(m p_i) + 2`` of the m distributions. A client that is drawn c times trains once with weight c/m.

    Parameters
    ----------
    cohort : int >= 1
        Number of draws per round (m); at most as many as there are candidates.

    Notes
    -----
    Masses are whole numbers (m n_i, in bins of n), so that the distributions add up exactly; the published code scales
    p_i by 10^10 and truncates. They consist of the candidates of the round. Without data all candidates have equal
    masses.
    """

    paper = f"{_PAPER}, Algorithm 1"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        draws = self.cohort_size(view)
        return tally(view.client[self.bins(view, draws).draw(rng)] if draws else view.client[:0])

    def bins(self, view: RoundView, draws: int) -> Bins:
        return bins_by_size(data_sizes(view), draws)


@dataclass(eq=False, repr=False)
class ClusteredBySimilarity(CohortSelector):
    """Cluster clients by their last updates with Ward's rule, and draw one from each of m groups of equal data.

    The hierarchical tree is cut so that no cluster has more than 1/m of the data; the m heaviest clusters become the m
    distributions, and the clients of the others fill them up. The scheme is unbiased like MD sampling; clients of
    similar updates are seldom drawn together. A client that is drawn c times trains once with weight c/m.

    Parameters
    ----------
    cohort : int >= 1
        Number of draws per round (m); at most as many as there are candidates.
    similarity : ``"angle"``, ``"euclidean"``, ``"squared-euclidean"`` or ``"manhattan"``
        Distance of two updates: arccos of their cosine as in the paper's figures, or the published code's other two
        (squared L2, L1), or the plain L2.
    matrix : ``"paper"`` or ``"reference-code"``
        Ward's rule on the distances themselves; or as in the published code, which passes the square matrix to SciPy,
        whose rows are then coordinates of n points that are clustered by their Euclidean distances.
    noise : ``"as-sent"`` or ``"corrected"``
        Whether the noise of privacy that is expected in distances is taken from them, see `UpdateDistances`.

    Notes
    -----
    The update of a client is zero before its first delivery, as in the paper; its angle to all others is then 0. Only
    the round's candidates are clustered. Time and memory grow with the square of their number, and with the
    published code's reading of the matrix time grows with its cube.
    """

    paper = f"{_PAPER}, Algorithm 2"
    needs = ("update", "noise_energy")

    similarity: Metric = "angle"
    matrix: Literal["paper", "reference-code"] = "paper"
    noise: Noise = "as-sent"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._distances = UpdateDistances(self.similarity, self.noise)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        draws, sizes = self.cohort_size(view), data_sizes(view)
        if not draws:
            return tally(view.client[:0])
        distance = self._distances.between(view.client, view.client)
        cluster = cut(ward(distance, self.matrix), sizes, draws)
        return tally(view.client[bins_by_cluster(sizes, cluster, draws, rng).draw(rng)])

    def observe(self, reports: Reports) -> None:
        self._distances.learn(reports)


def ward(distance: FloatArray, matrix: Literal["paper", "reference-code"]) -> IntArray:
    """Return the merges of Ward's hierarchical clustering."""
    if len(distance) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    apart = squareform(distance, checks=False) if matrix == "paper" else pdist(distance)
    return np.asarray(linkage(apart, method="ward")[:, :2], dtype=np.int64)


def cut(merges: IntArray, sizes: IntArray, bins: int) -> IntArray:
    """Return the cluster of each client, of a tree cut where a cluster would have more than 1/m of the data."""
    n, total = sizes.size, int(sizes.sum())
    mass = [*sizes.tolist(), *([0] * len(merges))]
    parent = list(range(n + len(merges)))
    for step, (left, right) in enumerate(merges.tolist(), start=n):
        mass[step] = mass[left] + mass[right]
        if bins * mass[step] <= total:
            parent[left] = parent[right] = step
    for node in reversed(range(len(parent))):
        parent[node] = parent[parent[node]]
    return np.asarray(np.unique(parent[:n], return_inverse=True)[1], dtype=np.int64)
