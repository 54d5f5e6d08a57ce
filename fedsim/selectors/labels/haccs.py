"""HACCS: clusters of clients with like labels, and the fastest client of each.

Rules and numbers were taken from the published code (NS-PhD-Research/HACCS, schedulers by P(y)) and from descriptions
of the paper, not checked against its text.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import AtLeast0, Share
from fedsim.selectors.sampling import TIME_COLUMNS, CohortSelector, grown, whole

Distance = Literal["hellinger", "euclidean"]
_ROUNDING: Final = 1e-12


def points(shares: FloatArray, distance: Distance) -> FloatArray:
    """Return points whose Euclidean distances are those of shares of labels, shape (n, labels).

    The Hellinger distance of p and q is ``|sqrt(p) - sqrt(q)| / sqrt(2)``, in [0, 1].
    """
    return np.sqrt(shares / 2.0) if distance == "hellinger" else shares


def clusters_of(shares: FloatArray, distance: Distance, radius: float) -> IntArray:
    """Return the cluster of each client, shape (n,): two clients at most ``radius`` apart are in one cluster.

    These are the clusters of DBSCAN with at least two clients, and each client that DBSCAN calls noise is a cluster of
    its own (Ester, Kriegel, Sander and Xu, "A density-based algorithm for discovering clusters", KDD 1996): with two
    as its least number of points, each client with a neighbour is a core point.
    """
    n = len(shares)
    near = KDTree(points(shares, distance)).query_pairs(radius + _ROUNDING, output_type="ndarray")
    graph = coo_array((np.ones(len(near), dtype=np.int8), (near[:, 0], near[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


@dataclass(eq=False, repr=False)
class Haccs(CohortSelector):
    """Draw clusters of clients with like labels by latency and loss, and take the fastest client of each: HACCS.

    Clients declare the shares of their labels once. Clients whose shares are near each other form clusters. Cluster c
    has the weight ``rho (1 - l_c / max l) + (1 - rho) a_c / sum of a``, with l the mean latency of its candidates and a
    the mean of their losses. Places are drawn among the clusters, with replacement, in proportion to weights; each goes
    to the fastest candidate of its cluster that has none.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    rho : float in [0, 1]
        Share of the latency in the weight of a cluster (0.5 in the code).
    radius : float >= 0
        Two clients at most that far apart are in one cluster (0.25 in the code).
    distance : ``"hellinger"`` or ``"euclidean"``
        Of shares of labels; the code for P(y) takes the Euclidean one.
    losses : ``"mean"`` or ``"squares"``
        What is averaged over a cluster: losses, or their squares as in the code.
    draw : ``"random"`` or ``"quasi-random"``
        Quasi-random, as in the code: of m places, a cluster gets the whole part of m times its probability first.

    Notes
    -----
    The code clusters by OPTICS with a cut at the radius and two clients as the least cluster, which gives those of
    `clusters_of`. Without labels, as in a run about timing only, all clients are one cluster. Clusters form anew when a
    client is met for the first time, and take time and memory by the number of pairs of near clients: they are for some
    ten thousand clients.

    The latency is the declared time of a participation; without declared times that of the last one, and the mean of
    the known ones before it. The code evaluates the model on all clients in each round, at no cost; here the loss of a
    client is that of its last update. A cluster without any known loss has the largest one of the others while a
    candidate of it was never tried, and their mean after that.

    A client that has not delivered comes behind the others of its cluster until it delivers again, the one that failed
    most often in a row last. The code, whose devices announce that they drop out, asks the fastest one for ever.
    """

    paper = (
        "Wolfrath, Sreekumar, Kumar, Wang and Chandra, HACCS: Heterogeneity-Aware Clustered Client Selection for "
        "Accelerated Federated Learning, IPDPS 2022"
    )
    needs = ("loss",)
    communication = "a number up per update, and the shares of its labels up per client once"
    uses_features = True
    uses_labels = True

    rho: Share = 0.5
    radius: AtLeast0[float] = 0.25
    distance: Distance = "hellinger"
    losses: Literal["mean", "squares"] = "mean"
    draw: Literal["random", "quasi-random"] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._failed: IntArray = np.zeros(0, dtype=np.int64)
        self._cluster: IntArray = np.zeros(0, dtype=np.int64)
        self._shares: FloatArray = np.zeros((0, 0))

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._failed = grown(self._failed, view.clients)
        size = self.cohort_size(view)
        names, cluster = np.unique(self._clusters(view), return_inverse=True)
        latency_s = _latency_s(view)
        weight = self.weights(view, cluster, latency_s)
        order = np.lexsort((rng.random(cluster.size), latency_s, self._failed[view.client], cluster))
        left = np.bincount(cluster, minlength=names.size)
        taken = np.zeros(names.size, dtype=np.int64)
        if self.draw == "quasi-random" and names.size:
            taken = np.minimum(whole(size * weight / weight.sum()).astype(np.int64), left)
        for _ in range(size - int(taken.sum())):
            chance = np.where(taken < left, weight, 0.0)
            if not chance.any():
                chance = (taken < left).astype(float)
            ends = np.cumsum(chance)
            taken[np.searchsorted(ends, rng.random() * ends[-1], side="right")] += 1
        rank = np.arange(cluster.size) - (np.cumsum(left) - left)[cluster[order]]
        return Cohort(np.sort(view.client[order[rank < taken[cluster[order]]]]))

    def observe(self, reports: Reports) -> None:
        self._failed = grown(self._failed, int(reports.client.max(initial=-1)) + 1)
        np.add.at(self._failed, reports.client[~reports.delivered], 1)
        self._failed[reports.client[reports.delivered]] = 0

    def weights(self, view: RoundView, cluster: IntArray, latency_s: FloatArray) -> FloatArray:
        """Return the weight of each of the c clusters that have candidates, shape (c,), not all 0."""
        members = np.maximum(np.bincount(cluster), 1)
        mean_s = np.bincount(cluster, latency_s) / members
        slowest_s = float(mean_s.max(initial=0.0))
        fast = 1.0 - mean_s / slowest_s if slowest_s > 0 else np.zeros(members.size)
        loss = self._loss(view, cluster, members.size)
        weight = self.rho * fast + (1.0 - self.rho) * loss / loss.sum()
        return weight if weight.any() else np.ones(members.size)

    def _loss(self, view: RoundView, cluster: IntArray, clusters: int) -> FloatArray:
        """Return the loss of each cluster, shape (clusters,), at least 0 and not all 0."""
        known = np.isfinite(view.last_loss)
        value = np.maximum(view.last_loss[known], 0.0)
        if self.losses == "squares":
            value = value**2
        count = np.bincount(cluster[known], minlength=clusters)
        total = np.bincount(cluster[known], value, minlength=clusters)
        if not total.any():
            return np.ones(clusters)
        mean = total / np.maximum(count, 1)
        untried = np.bincount(cluster[view.participations == 0], minlength=clusters) > 0
        of_others = mean[count > 0]
        return np.where(count > 0, mean, np.where(untried, of_others.max(), of_others.mean()))

    def _clusters(self, view: RoundView) -> IntArray:
        """Return the cluster of each candidate, shape (n,), from the shares of all clients met so far."""
        shares = view.label_histogram
        if shares is None:
            return np.zeros(view.client.size, dtype=np.int64)
        missing = view.clients - len(self._shares)
        if missing > 0:
            new = np.full((missing, shares.shape[1]), np.nan)
            self._shares = np.concatenate([self._shares, new]) if self._shares.size else new
        if np.isnan(self._shares[view.client, 0]).any():
            self._shares[view.client] = shares
            met = np.flatnonzero(~np.isnan(self._shares[:, 0]))
            self._cluster = np.full(len(self._shares), -1)
            self._cluster[met] = clusters_of(self._shares[met], self.distance, self.radius)
        return self._cluster[view.client]


def _latency_s(view: RoundView) -> FloatArray:
    """Return the latency of each candidate in seconds, shape (n,)."""
    if view.features.shape[1] >= TIME_COLUMNS:
        latency_s = view.features[:, :TIME_COLUMNS].sum(axis=1)
        longest_s = float(latency_s[np.isfinite(latency_s)].max(initial=0.0))
        return np.where(np.isfinite(latency_s), latency_s, 1.0 + 10.0 * longest_s)
    known = np.isfinite(view.last_duration_s)
    return np.where(known, view.last_duration_s, view.last_duration_s[known].mean() if known.any() else 0.0)
