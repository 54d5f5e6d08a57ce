"""Active Federated Learning's Algorithm 1, by hand."""

import numpy as np
import pytest

from fedsim.selectors.adaptive.active import ActiveLearning
from tests.support.views import check_shares, rng, view_of

# Valuations 2, 3, 6 and 2.
KNOWN = {"samples": [4, 1, 9, 16], "last_loss": [1.0, 3.0, 2.0, 0.5], "participations": [1, 1, 1, 1]}


def test_valuations_by_hand():
    selector = ActiveLearning(1)
    assert selector.valuations(view_of(4, **KNOWN)).tolist() == [2.0, 3.0, 6.0, 2.0]
    half = {**KNOWN, "last_loss": [1.0, 3.0, np.nan, np.nan], "participations": [1, 1, 0, 2]}
    # Never selected: the highest; never delivered: the least.
    assert selector.valuations(view_of(4, **half)).tolist() == [2.0, 3.0, 3.0, 2.0]
    assert selector.valuations(view_of(3)).tolist() == [0.0] * 3


def test_weights_by_hand():
    selector = ActiveLearning(1, alpha2=np.log(2.0))
    weight = np.exp(selector.log_weights(np.array([2.0, 3.0, 6.0, 1.0]), 2, rng()))
    np.testing.assert_allclose(weight, [0.0, 8.0, 64.0, 0.0])


def test_the_least_valued_are_drawn_only_uniformly():
    view = view_of(4, **KNOWN)
    for seed in range(20):
        for options in ({"alpha1": 0.5}, {"alpha1": 0.25, "alpha2": 1e3}):
            selector = ActiveLearning(2, alpha3=0.0, **options)
            assert selector.select(view, rng(seed)).client.tolist() == [1, 2]
    # With alpha1 = 1 all are left out, and places are filled at random.
    assert len({tuple(ActiveLearning(1, 1.0, 0.01, 0.0).select(view, rng(i)).client) for i in range(40)}) == 4


@pytest.mark.statistical
def test_frequencies_are_those_of_algorithm_1():
    """One of two places by value among two clients of weights 1 and 2, one place uniformly among the other three."""
    selector, draws = ActiveLearning(2, alpha1=0.5, alpha2=np.log(2.0) / 3, alpha3=0.5), rng(7)
    # Client 1 by value 1/3, else uniformly 1/3 of the other cases; clients 0 and 3 by the uniform place alone.
    chance = np.array([1 / 3, 1 / 3 + 2 / 3 / 3, 2 / 3 + 1 / 3 / 3, 1 / 3])
    assert chance.sum() == pytest.approx(2)
    check_shares(lambda: selector.select(view_of(4, **KNOWN), draws).client, chance)


def test_shares_that_are_not_whole_are_right_on_average():
    selector, draws = ActiveLearning(1, alpha1=0.5, alpha3=0.25), np.random.default_rng(1)
    low = sum(selector.select(view_of(4, **KNOWN), draws).client[0] in (0, 3) for _ in range(2000))
    # A quarter of the places is drawn uniformly, half of these among the two that are left out.
    assert low / 2000 == pytest.approx(0.125, abs=4 * np.sqrt(0.125 * 0.875 / 2000))
