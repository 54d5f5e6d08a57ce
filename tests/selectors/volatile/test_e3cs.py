"""E3CS: the allocation of probabilities and the growth of weights, by hand and as laws."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.volatile.e3cs import E3cs, prob_alloc, systematic
from tests.support.views import check_shares, reports_of, rng, view_of


@pytest.mark.parametrize(
    ("quota", "weight", "chance", "cut"),
    [
        (0.0, [1, 1, 1, 1], [0.5] * 4, 0),
        (0.0, [1, 2, 3, 4], [0.2, 0.4, 0.6, 0.8], 0),
        # 2 * 8 / 12 is above 1; the others share 1 in proportion to 1, 1, 2.
        (0.0, [8, 1, 1, 2], [1.0, 0.25, 0.25, 0.5], 1),
        # 0.2 + 1.2 * 9 / 12 is above 1; the others share 1 - 3 * 0.2 above the quota.
        (0.2, [9, 1, 1, 1], [1.0, 1 / 3, 1 / 3, 1 / 3], 1),
        (0.5, [9, 1, 1, 1], [0.5] * 4, 0),
    ],
)
def test_probabilities_by_hand(quota, weight, chance, cut):
    found = prob_alloc(2, quota, np.log(np.array(weight, dtype=float)))
    np.testing.assert_allclose(found.chance, chance)
    assert found.overflown.sum() == cut


def test_all_are_taken_if_there_are_no_more():
    found = prob_alloc(3, 0.5, np.array([0.0, 5.0, 1.0]))
    assert found.chance.tolist() == [1.0] * 3
    assert found.overflown.all()


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=12), st.floats(0, 1), st.floats(0, 1))
def test_probabilities_keep_the_quota_and_their_sum(log_weight, part, share):
    log_weight = np.array(log_weight)
    size = max(1, round(part * log_weight.size))
    quota = share * size / log_weight.size
    chance, overflown = prob_alloc(size, quota, log_weight)
    assert chance.sum() == pytest.approx(size, rel=1e-9)
    assert np.all((chance >= quota - 1e-12) & (chance <= 1))
    assert np.all(np.diff(chance[np.argsort(log_weight)]) >= -1e-9)
    np.testing.assert_allclose(chance[overflown], 1.0)


def test_weights_grow_with_deliveries_by_hand():
    """K = 4, k = 2, sigma = 0.25: all have 0.5, and a delivery adds (2 - 1) 0.5 / (4 * 0.5) = 0.25 to the logarithm."""
    selector = E3cs(2)
    chosen = selector.select(view_of(4), rng()).client
    selector.observe(reports_of(chosen, delivered=[True, False]))
    weights = np.zeros(4)
    weights[chosen[0]] = 0.25
    np.testing.assert_allclose(selector._log_weight, weights - 0.25)
    # Without a quota the step is twice as long, and cut clients do not grow.
    greedy = E3cs(2, quota=0.0, draw="exact")
    chosen = greedy.select(view_of(4), rng()).client
    greedy.observe(reports_of(chosen, delivered=[True, False]))
    assert np.ptp(greedy._log_weight) == pytest.approx(0.5)
    greedy._log_weight[:] = [9.0, 0.0, 0.0, 0.0]
    client = greedy.select(view_of(4), rng()).client
    assert client[0] == 0
    greedy.observe(reports_of([0]))
    assert greedy._log_weight.tolist() == [0.0, -9.0, -9.0, -9.0]


def test_the_quota_of_the_incremental_form():
    selector = E3cs(2, quota=0.0, quota_from=5)
    assert [selector.sigma(number) for number in (1, 4, 5, 9)] == [0.0, 0.0, 1.0, 1.0]


def test_exact_draws_have_the_probabilities():
    chance, draws = np.array([1.0, 0.25, 0.25, 0.5]), rng(2)
    assert {systematic(chance, draws).size for _ in range(100)} == {2}
    check_shares(lambda: systematic(chance, draws), chance, 2000, 4)


@pytest.mark.parametrize("draw", ["multinomial", "exact"])
def test_clients_that_deliver_are_found_and_the_quota_holds(draw):
    """Ten clients, half of which never deliver; two at a time. The quota of 0.5 is a tenth of the rounds each."""
    times, draws, selector = np.zeros(10), np.random.default_rng(4), E3cs(2, draw=draw)
    for number in range(1, 401):
        client = selector.select(view_of(10, round=number), draws).client
        selector.observe(reports_of(client, delivered=client < 5, number=number))
        times[client] += number > 100
    # A uniform draw delivers a half; the quota keeps at most (1 - 5 * 0.1 / 2) = 0.75 for those that deliver.
    assert 0.6 < times[:5].sum() / times.sum() < 0.82
    assert times.min() > 300 * 0.1 / 2
