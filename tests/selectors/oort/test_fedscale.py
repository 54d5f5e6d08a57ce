"""FedScale's form of Oort, rule by rule, and the faults of its code that are not kept."""

import math
from copy import deepcopy

import numpy as np
import pytest

from fedsim.selectors import OortFedScale
from tests.support.views import check_shares, measured_reports_of, rng, taught, view_of


def _seen(times, selector, view, **measured):
    """Return who is ever chosen in a view by a selector that was told measurements of the first clients."""
    taught(selector, clients=view.client.size, **measured)
    return {one for seed in range(times) for one in deepcopy(selector).select(view, rng(seed)).client.tolist()}


def test_score_by_hand():
    """Rewards 2, 6, 10 of the tried and 4 (samples) of the untried: q is at place int(4 * 0.5) = 2 of the sorted."""
    selector = OortFedScale(2, clip=0.5, threshold=100.0)
    taught(selector, clients=4, samples=4, number=2, loss_rms=[0.5, 1.5, 2.5])
    least, clipped = 0.999 * 2, np.array([2.0, 6.0, 6.0])
    expected = (clipped - least) / (10 - least) + math.sqrt(0.1 * math.log(9) / 2)
    np.testing.assert_allclose(selector.score(np.arange(4), np.arange(3), 9), expected)


def test_the_slow_are_penalised_beyond_the_percentile():
    """Sorted durations 1, 2, 3, 8; the 30th percentile is at place int(4 * 0.3) = 1, so T = 2."""
    selector = taught(OortFedScale(2), loss_rms=1.0, duration_s=[8.0, 1.0, 3.0, 2.0])
    assert selector.preferred_s() == 2.0
    score = selector.score(np.arange(4), np.arange(4), 1)
    np.testing.assert_allclose(score, (1 - 0.999) / 1e-3 * np.array([1 / 16, 1, 4 / 9, 1]), rtol=1e-9)


def test_a_silent_client_has_the_mean_of_its_round():
    selector = taught(OortFedScale(2), delivered=[True, True, False], loss_rms=[2.0, 6.0, 99.0])
    assert selector._state.utility[:3].tolist() == [2, 6, 4]


@pytest.mark.parametrize(
    ("gains", "percentile"),
    [([5.0, 5.0, 5.2, 5.3], 35.0), ([5.0, 5.0, 2.0, 2.0], 30.0), ([1.0, 1.0, 9.0, 9.0], 25.0), ([0.0] * 4, 35.0)],
)
def test_the_pacer_by_hand(gains, percentile):
    """Two windows of two rounds: by at most a tenth different relaxes, by at least five times tightens.

    What a round has gained is booked when the next is selected, so that the windows in round 6 hold rounds 2 to 5.
    """
    selector = OortFedScale(1, pacer_step=2, exploration=0.0, exploration_least=0.0)
    selector.select(view_of(1), rng())
    selector.observe(measured_reports_of([0], loss_rms=1.0))
    for number in range(2, 7):
        selector.select(view_of(1, round=number), rng())
        if number == 5:
            selector._percentile = 30.0  # whatever rounds 4's windows had to say
        if number < 6:
            selector.observe(measured_reports_of([0], loss_rms=gains[number - 2], number=number))
    assert selector._percentile == percentile


def test_ten_times_as_many_as_there_are_places_are_in_the_draw():
    """One place and 30 clients with falling utility: a high cut-off still leaves eleven in the draw."""
    options = {"exploration": 0.0, "exploration_least": 0.0, "cut_off": 1.0, "threshold": 100.0}
    seen = _seen(300, OortFedScale(1, **options), view_of(30), loss_rms=np.linspace(30, 20, 30))
    assert seen <= set(range(11))
    assert len(seen) > 8


def test_those_with_most_samples_are_explored():
    """Two places and a window of two: of the untried 5 to 9 the four with most samples are in the draw."""
    samples = np.array([1, 1, 1, 1, 1, 50, 40, 30, 20, 10])
    selector = OortFedScale(2, exploration=1.0, exploration_decay=1.0, sample_window=2.0)
    assert _seen(100, selector, view_of(10, round=2, samples=samples), loss_rms=np.ones(5)) == {5, 6, 7, 8}


def test_declared_times_count_for_the_untried():
    """Durations 4 (tried) and 1, 2, 8 (declared): T is at place int(4 * 0.5) = 2 of the sorted, 4; 8 weighs a quarter.

    Two places and a window of one: of the untried the two with the greatest samples times haste, 3 * 1 and 4 * 1.
    """
    features = np.array([[9.0, 0, 0, 1], [0, 1.0, 0, 3], [0, 0, 2.0, 4], [8.0, 0, 0, 10]])
    selector = OortFedScale(2, exploration=1.0, exploration_decay=1.0, threshold=50.0, sample_window=1.0)
    view = view_of(4, features=features, samples=np.array([1, 3, 4, 10]))
    selector.select(view, rng())
    assert selector.preferred_s() == 8.0  # before the first report: 1, 2, 8, 9
    selector.observe(measured_reports_of([0], duration_s=4.0))
    assert selector.preferred_s() == 4.0
    assert selector.select(view, rng()).client.tolist() == [1, 2]


def test_equal_samples_are_explored_in_random_order():
    """The code goes by ids then: with one place and a window of five it would never look beyond five ids."""
    selector = OortFedScale(1, exploration=1.0, exploration_decay=1.0)
    assert _seen(200, selector, view_of(20, round=2), loss_rms=[1.0]) == set(range(1, 20))


def test_as_many_places_as_tried_clients():
    """The code looks up the score behind the last one and fails."""
    selector = OortFedScale(3, exploration=0.0, exploration_least=0.0)
    taught(selector, clients=3, loss_rms=np.ones(3))
    assert selector.select(view_of(3, round=2), rng()).client.tolist() == [0, 1, 2]


def test_nobody_left_to_explore():
    """The code returns the explored clients of an earlier round again, also if they are away."""
    selector = taught(OortFedScale(4), clients=6, loss_rms=np.ones(6))
    chosen = selector.select(view_of([0, 1, 2, 5], clients=6, round=2), rng()).client
    assert chosen.tolist() == [0, 1, 2, 5]


def test_a_blacklist_of_a_fraction_of_a_client():
    """30 % of five clients are one, where the code slices with 1.5."""
    selector = OortFedScale(5, blacklist_after=2, exploration=0.0, exploration_least=0.0)
    taught(selector, clients=5, loss_rms=np.ones(5))
    participations = np.array([0, 9, 3, 4, 1])
    chosen = selector.select(view_of(5, round=2, participations=participations, wanted=4), rng()).client
    assert chosen.tolist() == [0, 2, 3, 4]


def test_epsilon_decays_before_each_selection_to_its_floor():
    """K = 100: 0.9 * 0.8 in the first round, then 0.576 and 0.5, the floor."""
    selector = OortFedScale(100, exploration=0.9, exploration_decay=0.8, exploration_least=0.5)
    taught(selector, 400, loss_rms=np.ones(100))
    for number, explored in ((2, 57), (3, 50), (4, 50)):
        chosen = selector.select(view_of(400, round=number), rng(number)).client
        assert np.count_nonzero(chosen >= 100) == explored


@pytest.mark.statistical
def test_the_exploited_are_drawn_in_proportion_to_score():
    """Utilities 2 and 1 in round 1: scores (2 - 0.999) / 1.001 and 0.001 / 1.001; with 1.5 between them 0.5005."""
    options = {"exploration": 0.0, "exploration_least": 0.0, "threshold": 100.0, "clip": 1.0}
    selector, draws = taught(OortFedScale(1, **options), 3, loss_rms=[2, 1.5, 1]), rng(4)
    chance = np.array([1.001, 0.501, 0.001]) / 1.503
    check_shares(lambda: selector.select(view_of(3), draws).client, chance)


@pytest.mark.statistical
def test_the_explored_are_drawn_in_proportion_to_samples():
    selector = OortFedScale(1, exploration=1.0, exploration_decay=1.0)
    view = view_of(3, samples=np.array([30, 10, 5]))
    selector.select(view, rng())
    selector.observe(measured_reports_of([2]))
    draws = rng(4)
    check_shares(lambda: selector.select(view, draws).client, [0.75, 0.25, 0.0])


def test_a_gain_is_the_mean_over_the_exploited_that_delivered():
    """Exploited are 0 (5), 1 (late) and 2 (3), explored one of 3 and 4: (5 + 3) / 2.0001."""
    options = {"exploration": 0.25, "exploration_decay": 1.0, "exploration_least": 0.25}
    selector = taught(OortFedScale(4, **options), 5, loss_rms=np.ones(3))
    chosen = selector.select(view_of(5, round=2), rng()).client
    assert chosen[:3].tolist() == [0, 1, 2]
    selector.observe(measured_reports_of(chosen, [True, False, True, True], [5.0, 9.0, 3.0, 7.0], number=2))
    assert selector._gain == pytest.approx(8 / 2.0001)


def test_the_cut_off_goes_by_the_first_that_has_no_place():
    """Scores fall from 1 to 0; two places, so that the third score is the measure, and 21 are in the draw anyway."""
    selector = OortFedScale(2, exploration=0.0, exploration_least=0.0, cut_off=0.5, threshold=100.0, clip=1.0)
    utility = np.concatenate([[100.0, 90.0, 60.0], np.full(27, 40.0), np.full(10, 20.0)])
    taught(selector, 40, loss_rms=utility)
    score = selector.score(np.arange(40), np.arange(40), 1)
    assert score[3] < 0.5 * score[0]
    assert score[29] >= 0.5 * score[2] > score[30]
    seen = {int(k) for seed in range(600) for k in selector._exploit(np.arange(40), np.arange(40), 2, 1, rng(seed))}
    assert seen == set(range(30))
