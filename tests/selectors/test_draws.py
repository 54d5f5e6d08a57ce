"""How methods draw: laws of the draws, and what ties and zeros come to."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.sampling import data_shares, draw_again, draw_distinct, lowest, tally
from tests.support.views import check_shares, rng, view_of


@pytest.mark.statistical
def test_distinct_draws_follow_the_weights_of_those_that_are_left():
    """Weights 1, 2, 3: the pair {0, 1} has probability 1/6 * 2/5 + 2/6 * 1/4 = 3/20, and so on."""
    expected = {(0, 1): 3 / 20, (0, 2): 1 / 6 * 3 / 5 + 3 / 6 * 1 / 3, (1, 2): 2 / 6 * 3 / 4 + 3 / 6 * 2 / 3}
    assert sum(expected.values()) == pytest.approx(1)
    draws, generator, counts = 20_000, rng(), dict.fromkeys(expected, 0)
    for _ in range(draws):
        counts[tuple(np.sort(draw_distinct(np.array([1, 2, 3]), 2, generator)).tolist())] += 1
    for pair, p in expected.items():
        assert abs(counts[pair] / draws - p) < 5 * math.sqrt(p * (1 - p) / draws)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 2**31), st.data())
def test_distinct_draws_are_distinct_and_weights_of_zero_come_last(weights, seed, data):
    size = data.draw(st.integers(0, len(weights)))
    drawn = draw_distinct(np.array(weights), size, rng(seed)).tolist()
    heavy = {i for i, weight in enumerate(weights) if weight}
    assert len(set(drawn)) == len(drawn) == size
    assert set(drawn) <= heavy if size <= len(heavy) else heavy <= set(drawn)


def test_weights_differ_by_as_much_as_numbers_can():
    for seed in range(20):
        assert {1, 3} < set(draw_distinct(np.array([0.0, 1e-300, 0.0, 1e300]), 3, rng(seed)).tolist())


@pytest.mark.statistical
def test_repeated_draws_follow_whole_numbers_and_never_hit_a_zero():
    draws = rng()
    chance = [0, 0.5, 0, 0.3, 0.2, 0]
    check_shares(lambda: draw_again(np.array([0, 5, 0, 3, 2, 0]), 1, draws), chance)


def test_a_tally_counts_and_weighs_draws():
    cohort = tally(np.array([7, 3, 7, 9, 7]))
    assert cohort.client.tolist() == [3, 7, 9]
    assert cohort.draws.tolist() == [1, 3, 1]
    assert cohort.weights.tolist() == [0.2, 0.6, 0.2]


@pytest.mark.statistical
def test_the_lowest_are_taken_and_ties_are_broken_evenly():
    """Of 5, 1, 5, 5, 9 the lowest three are the 1 and two of the three fives, each pair one time in three."""
    draws, generator = 6_000, rng()
    counts = dict.fromkeys(itertools.combinations((0, 2, 3), 2), 0)
    for _ in range(draws):
        taken = set(lowest(np.array([5.0, 1.0, 5.0, 5.0, 9.0]), 3, generator).tolist())
        assert 1 in taken
        counts[tuple(sorted(taken - {1}))] += 1
    assert all(abs(count / draws - 1 / 3) < 5 * math.sqrt(2 / 9 / draws) for count in counts.values())


def test_without_data_everybody_has_the_same_share():
    assert data_shares(view_of(4, samples=[0, 0, 0, 0])).tolist() == [0.25] * 4
    assert data_shares(view_of(2, samples=[3, 1])).tolist() == [0.75, 0.25]
    assert data_shares(view_of([])).size == 0
