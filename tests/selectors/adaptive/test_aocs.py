"""AOCS: Algorithm 2 by hand, its limit, and unbiased aggregates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.selectors.adaptive.all_compute import ApproximateSampling, approximate_probabilities
from fedsim.selectors.importance import optimal_probabilities
from tests.support.views import reports_of, view_of


@pytest.mark.parametrize(
    ("norms", "iterations", "chance"),
    [
        # m = 2: 2 * 6 / 10 is above 1. Three are left with 0.8 in sum: C = (2 - 4 + 3) / 0.8 = 1.25.
        ([6.0, 2.0, 1.0, 1.0], 0, [1.0, 0.4, 0.2, 0.2]),
        ([6.0, 2.0, 1.0, 1.0], 1, [1.0, 0.5, 0.25, 0.25]),
        ([6.0, 2.0, 1.0, 1.0], 4, [1.0, 0.5, 0.25, 0.25]),
        ([0.0] * 4, 4, [0.5] * 4),
    ],
)
def test_algorithm_2_by_hand(norms, iterations, chance):
    np.testing.assert_allclose(approximate_probabilities(np.array(norms), 2, iterations), chance)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.floats(0, 1))
def test_with_many_iterations_it_is_optimal_sampling(norm, part):
    norm = np.array(norm)
    m = max(1, round(part * norm.size))
    np.testing.assert_allclose(approximate_probabilities(norm, m, 50), optimal_probabilities(norm, m), atol=1e-9)


def test_the_aggregate_is_unbiased():
    """The mean of the weights of each client is its share of the data."""
    draws, norms = np.random.default_rng(3), np.array([6.0, 2.0, 1.0, 1.0])
    selector = ApproximateSampling(2, floor=0.0)
    selector.select(view_of(4, samples=[1, 2, 3, 4]), draws)
    selector.observe(reports_of(np.arange(4), update_norm=norms))
    weights = np.zeros((4000, 4))
    for row in weights:
        cohort = selector.select(view_of(4, samples=[1, 2, 3, 4]), draws)
        row[cohort.client] = cohort.weights
    error = weights.std(axis=0) / np.sqrt(len(weights))
    # Only draws with a client count, so that the sum is a little above 1; the weights account for it.
    np.testing.assert_allclose(weights.mean(axis=0), [0.1, 0.2, 0.3, 0.4], atol=4 * error.max())


def test_a_server_that_asks_for_a_number_gets_it():
    selector, draws = ApproximateSampling(2), np.random.default_rng(1)
    assert all(selector.select(view_of(6, wanted=3), draws).client.size == 3 for _ in range(20))
