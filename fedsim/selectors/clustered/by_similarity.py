"""Clustered sampling by similarity: one client from each of m groups of similar updates (Algorithm 2)."""

from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.clustered.bins import bins_by_cluster
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.noise import Noise
from fedsim.selectors.sampling import CohortSelector, data_sizes, tally
from fedsim.selectors.update_distances import METRICS, Metric, UpdateDistances
from fedsim.selectors.validation import check_choice


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

    paper = (
        "Fraboni, Vidal, Kameni and Lorenzi, Clustered Sampling: Low-Variance and Improved Representativity for "
        "Clients Selection in Federated Learning, ICML 2021, Algorithm 2"
    )
    needs = ("update", "noise_energy")

    def __init__(
        self,
        cohort: int,
        similarity: Metric = "angle",
        matrix: Literal["paper", "reference-code"] = "paper",
        noise: Noise = "as-sent",
    ) -> None:
        super().__init__(cohort)
        check_choice("similarity", similarity, *METRICS)
        check_choice("matrix", matrix, "paper", "reference-code")
        self.similarity, self.matrix = similarity, matrix
        self.noise = noise
        self._distances = UpdateDistances(similarity, noise)

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
