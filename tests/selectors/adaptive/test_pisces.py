"""Pisces: utilities and staleness by hand."""

import numpy as np

from fedsim.selectors.adaptive.pisces import Pisces
from tests.support.views import measured_reports_of, rng, view_of

GREEDY = {"exploration": 0.0, "exploration_least": 0.0}


def send(selector, client, number):
    """Let a server of four clients send these at a round."""
    view = view_of(client, clients=4, round=number, samples=np.full(len(client), 2), wanted=len(client))
    assert selector.select(view, rng()).client.tolist() == client


def test_worth_is_utility_over_staleness_by_hand():
    selector = Pisces(1, beta=0.5, window=2)
    send(selector, [0, 1], 1)
    send(selector, [2], 3)
    # Client 0 has missed no model, client 1 three of them; client 2 never delivers.
    selector.observe(measured_reports_of([0], loss_rms=1.0, number=1))
    selector.observe(measured_reports_of([1, 2], delivered=np.array([True, False]), loss_rms=3.0, number=4))
    np.testing.assert_allclose(selector.worth(np.arange(3)), [2.0 * 1.0, 2.0 * 3.0 / np.sqrt(4), 0.0])
    # Of staleness 3, 1 and 5 the last two count.
    for sent, came in ((4, 5), (5, 10)):
        send(selector, [1], sent)
        selector.observe(measured_reports_of([1], loss_rms=1.0, number=came))
    np.testing.assert_allclose(selector.worth(np.array([1])), [2.0 / np.sqrt(3 + 1)])


def test_two_participations_in_one_report_count_one_after_the_other():
    selector = Pisces(1)
    send(selector, [3], 2)
    send(selector, [3], 5)
    selector.observe(measured_reports_of([3, 3], number=6))
    # Staleness 4 and 1, on average 2.5.
    np.testing.assert_allclose(selector.worth(np.array([3])), [2.0 / 3.5**0.5])


def test_the_greatest_worths_are_exploited_and_the_untried_explored():
    selector = Pisces(2, **GREEDY)
    send(selector, [0, 1, 2], 1)
    selector.observe(measured_reports_of([0, 1, 2], loss_rms=np.array([1.0, 3.0, 2.0])))
    assert selector.select(view_of(4, round=2), rng()).client.tolist() == [1, 2]
    assert selector.select(view_of(4, round=2, wanted=4), rng()).client.tolist() == [0, 1, 2, 3]
    curious = Pisces(1, exploration=1.0)
    send(curious, [0, 1, 2], 1)
    assert curious.select(view_of(4, round=1), rng()).client.tolist() == [3]


def test_the_share_of_exploration_decays_to_its_least_value():
    selector = Pisces(1, exploration=0.8, exploration_decay=0.5, exploration_least=0.3)
    assert [selector._share(number) for number in (1, 2, 3)] == [0.8, 0.4, 0.3]
