"""FedSUV as a whole: Algorithm 1 on crowds small enough to follow by hand."""

import math
from itertools import pairwise

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors import FedSuv
from tests.support.views import measured_reports_of, rng, view_of

DELTA = 0.1


def beta(clients, number):
    return 2 * math.log(clients * math.pi**2 * number**2 / (3 * DELTA))


def teach(selector, tries, clients=10, features=None, **reported):
    """Let a selector make its first round's acquaintance and report each client (delivered, utility) some times."""
    selector.select(view_of(clients, features=features), rng())
    for client, (delivered, utility), times in tries:
        selector.observe(measured_reports_of([client] * times, delivered, loss_rms=utility, **reported))


def test_the_random_stream_breaks_ties_and_rounding_does_not():
    """Bounds that are equal but for their last bits, as sums in another order have them."""
    chosen = []
    for bits in (np.zeros(20), np.arange(20), -np.arange(20)):
        selector = FedSuv(3, utility_scale=1.0)
        teach(selector, [(0, (True, 1.0), 1)], clients=20)
        selector._rectangles._high[1] = 3.4325873182843014 * (1.0 + bits * np.finfo(float).eps)
        found = [selector._choose(selector._beliefs, view_of(20, round=2), rng(seed)).tolist() for seed in range(40)]
        chosen.append(found)
    assert chosen[0] == chosen[1] == chosen[2]
    # 120 places among 20 clients: each is missed by all with a probability of 0.85^40.
    assert len({client for one in chosen[0] for client in one}) == 20


def test_the_cohort_is_filled_with_those_removed_last():
    selector = FedSuv(1, utility_scale=1.0)
    selector.select(view_of(6), rng())
    selector._eliminated_in[:] = [3, 0, 2, 3, 1, 0]
    selector._rectangles._high[1] = [1.0, 9.0, 9.0, 2.0, 9.0, 9.0]
    away = view_of([0, 1, 2, 3, 4], clients=6, round=4, wanted=3)
    assert selector._choose(selector._beliefs, away, rng()).tolist() == [1, 3, 0]
    assert FedSuv(1, fill="none").select(away, rng()).client.size == 3
    selector.fill = "none"
    assert selector._choose(selector._beliefs, away, rng()).tolist() == [1]


def test_away_clients_stay_in_the_pool_and_before_the_first_utility_rectangles_have_no_end():
    selector = FedSuv(2)
    selector.select(view_of([0, 1, 2], clients=8), rng())
    assert selector.left.tolist() == list(range(8))
    found = selector.rectangle(np.arange(8))
    assert np.isinf(found.validity_high).tolist() == [False] * 3 + [True] * 5
    assert np.all(found.utility_high == np.inf)


def test_meeting_the_crowd_bit_by_bit_gives_what_meeting_it_at_once_gives():
    """The models are made anew whenever twice as many are known; the last time here is when everybody is."""
    features = np.random.default_rng(4).random((32, 3))
    at_once = FedSuv(4, utility_scale=1.0, keep=32, rho=0.0, fit="none")
    bit_by_bit = FedSuv(4, utility_scale=1.0, keep=32, rho=0.0, fit="none")
    at_once.select(view_of(32, features=features), rng())
    for step, known in enumerate((2, 4, 5, 9, 16), start=1):
        bit_by_bit.select(view_of(np.arange(known), clients=32, round=step, features=features), rng())
        reports = measured_reports_of(np.arange(known), np.arange(known) % 3 > 0, step / 5)
        for selector in (at_once, bit_by_bit):
            selector.observe(reports)
    bit_by_bit.select(view_of(32, round=6, features=features), rng())
    one, other = (list(vars(each._beliefs.bounds(np.arange(32), 7)).values()) for each in (at_once, bit_by_bit))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_reports_before_the_first_selection_are_harmless():
    selector = FedSuv(2)
    selector.observe(measured_reports_of([0]))
    assert selector.select(view_of(4), rng()).client.size == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused(value):
    with pytest.raises(SelectorError, match=r"^FedSuv: features must be finite numbers"):
        FedSuv(2).select(view_of(2, features=[1.0, value]), rng())


def test_features_may_not_change_their_number():
    selector = FedSuv(2)
    selector.select(view_of(4, features=np.ones((4, 2))), rng())
    with pytest.raises(SelectorError, match="after 2 columns"):
        selector.select(view_of(4, round=2, features=np.ones((4, 3))), rng())


def test_all_clients_count_in_beta_also_those_never_met():
    """|X| of (5) is the crowd: three of ten are candidates, and without a utility the bound is sqrt(beta) itself."""
    selector = FedSuv(1, delta=DELTA, utility_scale=1.0)
    selector.select(view_of([2, 5, 6], clients=10, round=3), rng())
    assert selector.rectangle(np.array([5])).utility_high[0] == pytest.approx(math.sqrt(beta(10, 3)))


def test_a_client_rests_after_a_selection():
    """Seven clients, pairs, two rounds of rest: nobody returns before the third round after its selection; with three
    clients the one selected longest ago comes first."""

    def cohorts(clients, rest_rounds):
        selector = FedSuv(2, undelivered="zero", keep=clients, rest_rounds=rest_rounds)
        for number in range(1, 30):
            client = selector.select(view_of(clients, round=number), rng(number)).client
            selector.observe(measured_reports_of(client, True, np.array([3.0, 2.0]), number=number))
            yield set(client.tolist())

    rested = list(cohorts(7, 2))
    assert all(len(one) == 2 for one in rested)
    assert all(not one & (two | three) for one, two, three in zip(rested, rested[1:], rested[2:], strict=False))
    printed = list(cohorts(7, 0))
    assert any(one & two for one, two in pairwise(printed))
    few = list(cohorts(3, 5))
    for one, two in pairwise(few):
        assert {0, 1, 2} - one <= two
