"""HACCS: weights of clusters and draws worked by hand, and the law of its cohorts."""

import itertools

import numpy as np
import pytest
from scipy import stats

from fedsim.selectors.labels.haccs import Haccs, clusters_of
from tests.support.views import reports_of, rng, view_of


def searched(shares, radius, hellinger):
    """Return the clusters by walking from client to client, with each distance as it is written in the paper."""
    open_, found = set(range(len(shares))), set()

    def apart(p, q):
        if hellinger:
            return np.sqrt(0.5 * sum((np.sqrt(a) - np.sqrt(b)) ** 2 for a, b in zip(p, q, strict=True)))
        return np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))

    while open_:
        cluster, rim = set(), [open_.pop()]
        while rim:
            one = rim.pop()
            cluster.add(one)
            near = {other for other in open_ if apart(shares[one], shares[other]) <= radius}
            open_ -= near
            rim += near
        found.add(frozenset(cluster))
    return found


@pytest.mark.parametrize("distance", ["hellinger", "euclidean"])
@pytest.mark.parametrize("radius", [0.0, 0.15, 0.3, 2.0])
def test_clusters_are_those_of_a_plain_search(distance, radius):
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.full(4, 0.4), 30)
    shares[5] = shares[9]
    names = clusters_of(shares, distance, radius)
    found = {frozenset(np.flatnonzero(names == name).tolist()) for name in np.unique(names)}
    assert found == searched(shares, radius, distance == "hellinger")


def test_the_ends_of_an_edge_are_one_radius_apart():
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert set(clusters_of(shares, "euclidean", 0.5**0.5).tolist()) == {0}, "at most the radius"


# Clusters {0, 1}, {2} and {3} of seconds 1 and 3, 4, 1; losses 1 and 3, 1, and none of a client never tried.
WORLD = {
    "label_histogram": [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "features": [[0.5, 0.25, 0.25], [1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]],
    "last_loss": [1.0, 3.0, 1.0, np.nan],
    "participations": [1, 1, 1, 0],
}
CLUSTER = np.array([0, 0, 1, 2])
LATENCY_S = np.array([1.0, 3.0, 4.0, 1.0])


@pytest.mark.parametrize(
    ("options", "participations", "expected"),
    [
        # Latencies 2, 4 and 1 of at most 4: 1/2, 0 and 3/4. Losses 2, 1 and, untried, the largest 2: of 5 each.
        ({}, 0, [0.25 + 0.2, 0.1, 0.375 + 0.2]),
        ({"rho": 1.0}, 0, [0.5, 0.0, 0.75]),
        ({"rho": 0.0}, 0, [0.4, 0.2, 0.4]),
        # Squares 5 and 1, and the largest again.
        ({"rho": 0.0, "losses": "squares"}, 0, [5 / 11, 1 / 11, 5 / 11]),
        # Tried and not delivered: the mean of 2 and 1.
        ({"rho": 0.0}, 1, [2 / 4.5, 1 / 4.5, 1.5 / 4.5]),
    ],
)
def test_weights_by_hand(options, participations, expected):
    view = view_of(4, **{**WORLD, "participations": [1, 1, 1, participations]})
    assert Haccs(2, **options).weights(view, CLUSTER, LATENCY_S).tolist() == pytest.approx(expected)


def exact_law(weight, queues, size):
    """Return the probability of each cohort: places are drawn one by one among clusters that have clients left."""
    found = {}

    def walk(taken, chance):
        if sum(taken) == size:
            cohort = tuple(sorted(one for queue, n in zip(queues, taken, strict=True) for one in queue[:n]))
            found[cohort] = found.get(cohort, 0.0) + chance
            return
        free = [c for c in range(len(queues)) if taken[c] < len(queues[c])]
        for c in free:
            after = tuple(n + (place == c) for place, n in enumerate(taken))
            walk(after, chance * weight[c] / sum(weight[d] for d in free))

    walk((0,) * len(queues), 1.0)
    return found


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_law_of_cohorts(size):
    """By enumeration of all ways to draw; a chi-square test at 1e-6."""
    view, draws = view_of(4, **WORLD), 3000
    law = exact_law([0.45, 0.1, 0.575], [[0, 1], [2], [3]], size)
    assert sum(law.values()) == pytest.approx(1.0)
    counts = dict.fromkeys(law, 0)
    for seed in range(draws):
        counts[tuple(Haccs(size).select(view, rng(seed)).client.tolist())] += 1
    expected = [draws * chance for chance in law.values()]
    assert stats.chisquare(list(counts.values()), expected).pvalue > 1e-6


def test_quasi_random_places_are_certain_up_to_the_whole_part():
    """Of 2 places the clusters have 0.8, 0.18 and 1.02: one is sure for client 3, the other is drawn."""
    view = view_of(4, **WORLD)
    cohorts = {tuple(Haccs(2, draw="quasi-random").select(view, rng(seed)).client.tolist()) for seed in range(40)}
    assert cohorts == {(0, 3), (2, 3)}
    alike = view_of(40, label_histogram=np.tile(np.eye(20), (2, 1)))
    chosen = Haccs(20, rho=0.0, draw="quasi-random").select(alike, rng()).client
    assert sorted(chosen % 20) == list(range(20)), "20 times a twentieth is 1"


def test_a_client_that_failed_comes_behind_the_others_of_its_cluster():
    selector = Haccs(1)
    only = view_of([0, 1], clients=3, label_histogram=WORLD["label_histogram"][:2], features=WORLD["features"][:3])
    assert selector.select(only, rng()).client.tolist() == [0], "the faster of one cluster"
    selector.observe(reports_of([0], delivered=False))
    assert selector.select(only, rng()).client.tolist() == [1]
    selector.observe(reports_of([1, 1], delivered=False))
    assert selector.select(only, rng()).client.tolist() == [0], "the other failed twice"
    selector.observe(reports_of([1], delivered=True))
    assert selector.select(only, rng()).client.tolist() == [1]


def test_clusters_form_anew_when_a_client_joins_two():
    """Clients 0 and 2 are 0.5 apart; client 1 stands between them."""
    shares = np.array([[1.0, 0.0], [0.85, 0.15], [0.6, 0.4]])
    selector = Haccs(1, radius=0.32)
    selector.select(view_of([0, 2], clients=3, label_histogram=shares[[0, 2]]), rng())
    assert len(set(selector._cluster[[0, 2]].tolist())) == 2
    selector.select(view_of([1], clients=3, label_histogram=shares[[1]]), rng())
    assert len(set(selector._cluster.tolist())) == 1


def test_without_labels_the_fastest_clients_of_the_whole_crowd_are_taken():
    view = view_of(4, features=WORLD["features"])
    assert Haccs(2).select(view, rng()).client.tolist() == [0, 3]


def test_every_cluster_is_used_up_before_the_draw_ends():
    for size, draw in itertools.product(range(1, 5), ("random", "quasi-random")):
        chosen = Haccs(size, rho=1.0, draw=draw).select(view_of(4, **WORLD), rng(size)).client
        assert chosen.size == size, "also where all clusters that are left have the weight 0"
