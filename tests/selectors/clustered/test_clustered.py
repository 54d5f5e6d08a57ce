"""Clustered sampling by size and by similarity, and the distances of updates behind it."""

import math
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.distance import cdist

from fedsim.selectors.clustered.clustered import (
    ClusteredBySimilarity,
    ClusteredBySize,
    bins_by_cluster,
    bins_by_size,
    cut,
    ward,
)
from fedsim.selectors.update_distances import Metric, UpdateDistances
from tests.support.views import reports_of, rng, view_of

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=25).filter(any)


def masses(bins, clients):
    """Return how much of each client lies in each bin, in whole numbers."""
    table = np.zeros((int(bins.ends[-1]) // bins.capacity, clients), dtype=int)
    np.add.at(table, ((bins.ends - 1) // bins.capacity, bins.owner), np.diff(bins.ends, prepend=0))
    return table


def shares(bins, clients):
    return masses(bins, clients) / bins.capacity


@given(SIZES, st.integers(1, 12))
def test_by_size_the_mean_over_bins_is_p_exactly(sizes, m):
    """Fraboni et al., Proposition 1; and a client lies in at most floor(m p) + 2 bins."""
    table = masses(bins_by_size(np.array(sizes), m), len(sizes))
    assert table.sum(axis=0).tolist() == [m * n for n in sizes]
    assert table.sum(axis=1).tolist() == [sum(sizes)] * m
    for client, n in enumerate(sizes):
        assert np.count_nonzero(table[:, client]) <= math.floor(Fraction(m * n, sum(sizes))) + 2


@given(SIZES, st.integers(1, 12), st.data())
def test_by_similarity_the_mean_over_bins_is_p_exactly(sizes, m, data):
    distance = np.array(
        data.draw(st.lists(st.floats(0, 3), min_size=len(sizes) ** 2, max_size=len(sizes) ** 2))
    ).reshape(len(sizes), len(sizes))
    distance = np.triu(distance, 1) + np.triu(distance, 1).T
    matrix = data.draw(st.sampled_from(["paper", "reference-code"]))
    cluster = cut(ward(distance, matrix), np.array(sizes), m)
    for one in set(cluster.tolist()):
        inside = [n for n, mine in zip(sizes, cluster.tolist(), strict=True) if mine == one]
        assert len(inside) == 1 or m * sum(inside) <= sum(sizes)
    table = masses(bins_by_cluster(np.array(sizes), cluster, m, rng(data.draw(st.integers(0, 99)))), len(sizes))
    assert table.sum(axis=0).tolist() == [m * n for n in sizes]
    assert table.sum(axis=1).tolist() == [sum(sizes)] * m


def test_bins_by_size_worked_by_hand():
    """m = 2, N = 10, masses 4, 8, 2, 6: the first bin takes all of 1 and two of 3, the second what is left."""
    bins = bins_by_size(np.array([2, 4, 1, 3]), 2)
    assert shares(bins, 4).tolist() == [[0.0, 0.8, 0.0, 0.2], [0.4, 0.0, 0.2, 0.4]]
    assert shares(bins_by_size(np.array([8, 1, 1]), 2), 3).tolist() == [[1, 0, 0], [0.6, 0.2, 0.2]]
    # By similarity it fills its own bin, the other two are one cluster in the other, and the rest of it joins them.
    bins = bins_by_cluster(np.array([8, 1, 1]), np.array([0, 1, 1]), 2, rng())
    assert shares(bins, 3).tolist() == [[0.6, 0.2, 0.2], [1, 0, 0]]


def test_lighter_clusters_are_poured_by_rising_mass_and_their_clients_in_random_order():
    """m = 2, N = 18: {4, 5} of mass 6 goes first into the lightest bin; then there is room for 2 of {2, 3}."""
    sizes, cluster, seen = np.array([6, 5, 2, 2, 2, 1]), np.array([0, 1, 2, 2, 3, 3]), set()
    for seed in range(20):
        mass = masses(bins_by_cluster(sizes, cluster, 2, rng(seed)), 6)
        assert mass[0, [1, 4, 5]].tolist() == [10, 4, 2]
        seen.add(tuple(mass[0, 2:4].tolist()))
    assert seen == {(2, 0), (0, 2)}


def test_the_rule_of_ward_by_hand():
    """0 and 1 are one apart; from 2 they are sqrt((2 * 2^2 + 2 * 2^2 - 1) / 3) = 2.24 away, and 3 is 2.1 away."""
    distance = np.array([[0, 1, 2, 9], [1, 0, 2, 9], [2, 2, 0, 2.1], [9, 9, 2.1, 0]])
    assert [sorted(merge) for merge in ward(distance, "paper")[:2].tolist()] == [[0, 1], [2, 3]]
    # As distances 0 and 1 are nearest; as rows 2 and 3 are: sqrt(2 * 1.1^2) apart, 0 and 1 sqrt(2 + 2 * 4^2).
    distance = np.array([[0, 1, 5, 5], [1, 0, 9, 9], [5, 9, 0, 1.1], [5, 9, 1.1, 0]])
    assert sorted(ward(distance, "paper")[0].tolist()) == [0, 1]
    assert sorted(ward(distance, "reference-code")[0].tolist()) == [2, 3]


def test_the_tree_is_cut_where_a_cluster_would_be_more_than_a_bin():
    """Merges {0, 1}, then 2, then 3; of 8 samples a half may be together."""
    merges = np.array([[0, 1], [2, 4], [3, 5]])
    for sizes, m, together in (
        ([1, 1, 2, 4], 2, [[0, 1, 2], [3]]),
        ([1, 1, 3, 3], 2, [[0, 1], [2], [3]]),
        ([1, 1, 1, 1], 1, [[0, 1, 2, 3]]),
    ):
        cluster = cut(merges, np.array(sizes), m)
        assert sorted(np.flatnonzero(cluster == one).tolist() for one in set(cluster.tolist())) == together


def test_clients_with_like_updates_are_never_drawn_together():
    selector = ClusteredBySimilarity(2)
    selector.observe(reports_of(range(4), update=np.array([[1, 0.1], [0.1, 1], [2, 0.1], [0.2, 3]], np.float32)))
    pairs = {tuple(selector.select(view_of(4), rng(seed)).client.tolist()) for seed in range(60)}
    assert pairs == {(0, 1), (0, 3), (1, 2), (2, 3)}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("selector", [ClusteredBySize(3), ClusteredBySimilarity(3)], ids=["size", "similarity"])
def test_draws_are_unbiased(selector):
    samples, rounds, generator = np.array([1, 2, 3, 4, 10]), 20_000, rng(2)
    weights = np.zeros((rounds, 5))
    for i in range(rounds):
        cohort = selector.select(view_of(5, samples=samples), generator)
        assert cohort.draws.sum() == 3
        weights[i, cohort.client] = cohort.weights
    # A mean of three independent draws varies no more than a single one.
    p = samples / 20
    assert np.all(np.abs(weights.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / 3 / rounds))


REFERENCE = {
    "euclidean": lambda u: cdist(u, u),
    "squared-euclidean": lambda u: cdist(u, u, "sqeuclidean"),
    "manhattan": lambda u: cdist(u, u, "cityblock"),
    "angle": lambda u: np.array([[angle(a, b) for b in u] for a in u]),
}


def angle(a, b):
    if not a.any() or not b.any() or np.array_equal(a, b):
        return 0.0
    return math.acos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))


@pytest.mark.parametrize("metric", get_args(Metric))
@given(data=st.data())
def test_distances_follow_the_last_updates(metric, data):
    """Rounds of updates one after the other give what one computation from all last updates gives."""
    clients, generator = 9, rng(data.draw(st.integers(0, 2**31)))
    last, distances = np.zeros((clients, 5)), UpdateDistances(metric)
    for _ in range(data.draw(st.integers(0, 4))):
        client = generator.integers(0, clients, data.draw(st.integers(0, clients)))  # some are reported twice
        update = generator.standard_normal((client.size, 5)).astype(np.float32)
        delivered = generator.random(client.size) < 0.7
        last[client[delivered]] = update[delivered]
        distances.learn(reports_of(client, delivered=delivered, update=update))
    one, other = generator.permutation(clients)[:6], generator.permutation(clients)
    expected = REFERENCE[metric](last)[np.ix_(one, other)]
    assert distances.between(one, other) == pytest.approx(expected, abs=1e-6)


def test_updates_that_are_no_numbers_are_left_out():
    distances = UpdateDistances("euclidean")
    distances.learn(reports_of([0, 1, 2], update=np.array([[3, 4], [np.nan, 0], [0, 0]], np.float32)))
    distances.learn(reports_of([3], update=np.zeros((1, 0), np.float32)))
    distances.learn(reports_of([3], update=np.array([np.nan])))
    assert distances.heard.tolist() == [0, 2]
    assert distances.between(np.array([0, 3]), np.array([1, 0])).tolist() == [[5, 0], [0, 5]]


def test_manhattan_lengths_are_added_up_in_double_precision():
    """2^24 + 1 is no float32; the update of client 1 is unknown, so zero."""
    distances = UpdateDistances("manhattan")
    distances.learn(reports_of([0], update=np.array([[2.0**24, 1, -1, 1]], np.float32)))
    assert distances.between(np.array([0]), np.array([1])).tolist() == [[2.0**24 + 3]]
