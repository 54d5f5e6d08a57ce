"""Clusters of clients with like shares of labels."""

from typing import Final, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from fedsim.arrays import FloatArray, IntArray

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
