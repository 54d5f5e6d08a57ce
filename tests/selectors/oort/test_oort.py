"""Oort's Algorithm 1, rule by rule, against numbers worked by hand."""

import math

import numpy as np
import pytest

from fedsim.selectors import Oort
from fedsim.selectors.oort.state import blacklist, fill_up
from tests.support.views import check_shares, measured_reports_of, rng, taught, view_of


def test_utility_by_hand():
    """|B| times the root mean square loss, plus sqrt(0.1 ln R / L), times (T / D)^2 for the slow one."""
    selector = Oort(2, pacer_step_s=4.0, clip=1.0)
    selector.select(view_of(4, round=3, samples=np.array([10, 20, 30, 40])), rng())
    selector.observe(measured_reports_of([0, 1], loss_rms=[0.5, 0.25], duration_s=[4.0, 16.0], number=3))
    uncertainty = math.sqrt(0.1 * math.log(7) / 3)
    expected = [10 * 0.5 + uncertainty, (20 * 0.25 + uncertainty) * (4 / 16) ** 2]
    np.testing.assert_allclose(selector.utility(np.array([0, 1]), 7), expected)


@pytest.mark.parametrize(("duration_s", "factor"), [(3.0, 1.0), (4.0, 1.0), (4.001, (4 / 4.001) ** 2), (5.0, 0.8**2)])
def test_who_takes_longer_than_t_pays_for_it_from_the_first_second_on(duration_s, factor):
    """T is 4 s, and in round 1 the uncertainty is 0, as ln 1 is."""
    selector = taught(Oort(2, pacer_step_s=4.0, clip=1.0), loss_rms=[3.0], duration_s=duration_s)
    np.testing.assert_allclose(selector.utility(np.array([0]), 1), [3.0 * factor])


def test_outliers_samples_beyond_a_round_and_unknown_losses():
    """The 0.75 quantile of 0, 1, 2, 100 is 2 + 0.25 * 98."""
    selector = taught(Oort(2, clip=0.75), loss_rms=[0.0, 1.0, 2.0, 100.0])
    np.testing.assert_allclose(selector.utility(np.arange(4), 1), [0, 1, 2, 26.5])
    selector = Oort(1, samples_per_round=16, clip=1.0)
    selector.select(view_of(2, samples=np.array([10, 40])), rng())
    selector.observe(measured_reports_of([0, 1], loss_rms=1.0))
    np.testing.assert_allclose(selector.utility(np.array([0, 1]), 1), [10, 16], err_msg="16 samples at most")
    selector = Oort(1, clip=1.0)
    selector.select(view_of(2, samples=np.array([7, 9])), rng())
    selector.observe(measured_reports_of([0, 1], loss_rms=np.nan))
    assert selector.utility(np.array([0, 1]), 1).tolist() == [7, 9], "without losses every sample counts as one"


def test_the_last_report_counts_unless_it_tells_nothing():
    selector = taught(Oort(2, pacer_step_s=1.0, clip=1.0), loss_rms=[4.0], duration_s=9.0)
    selector.observe(measured_reports_of([0], loss_rms=3.0, duration_s=0.5, number=5))
    np.testing.assert_allclose(selector.utility(np.array([0]), 5), 3 + math.sqrt(0.1 * math.log(5) / 5))
    selector = taught(Oort(2, pacer_step_s=100.0, clip=1.0), loss_rms=[2.0, 6.0])
    selector.observe(measured_reports_of([0, 1], delivered=[False, True], loss_rms=[9.0, 1.0], number=1))
    np.testing.assert_allclose(selector.utility(np.arange(2), 1), [2.0, 1.0])


@pytest.mark.parametrize(("silent", "expected"), [("zero", [2.0, 6.0, 0.0]), ("mean", [2.0, 6.0, 4.0])])
def test_a_client_that_never_delivered(silent, expected):
    """Its duration is the time the server waited, 10 s, of which T is a half."""
    selector = Oort(2, silent=silent, pacer_step_s=5.0, clip=1.0)
    taught(selector, delivered=[True, True, False], loss_rms=[2.0, 6.0, 99.0], duration_s=[1.0, 1.0, 10.0])
    np.testing.assert_allclose(selector.utility(np.arange(3), 1), np.array(expected) * [1, 1, 0.25])


def test_epsilon_decays_to_its_floor():
    """K = 100: of so many clients 90, 88, 86 are explored, then fewer, down to 20, while untried ones are there."""
    selector, crowd, explored, tried = Oort(100, blacklist_after=None), 4000, [], set()
    for number in range(1, 91):
        chosen = selector.select(view_of(crowd, round=number), rng(number)).client
        explored.append(len(set(chosen.tolist()) - tried))
        tried |= set(chosen.tolist())
        selector.observe(measured_reports_of(chosen, number=number))
    expected = [int(100 * max(0.9 * 0.98 ** (number - 1), 0.2) + 1e-9) for number in range(1, 91)]
    assert explored[1:] == expected[1:]  # in the first round there is nobody to exploit
    assert explored[0] == 100
    assert explored[-1] == 20


@pytest.mark.parametrize(("asked", "relaxations"), [("round", [0] * 6 + [1, 2, 2]), ("window", [0] * 6 + [1, 1, 1])])
def test_the_pacer_by_hand(asked, relaxations):
    """W = 3. After six rounds the last three gained less, after seven too (2 + 2 + 9 against 5 + 5 + 5 ...)."""
    selector = Oort(1, window=3, pacer_step_s=2.0, pacer_asked=asked)
    gains = [5.0, 5.0, 5.0, 2.0, 2.0, 2.0, 3.0, 9.0]
    found = []
    for number in range(1, 10):
        selector.select(view_of(3, round=number), rng())
        found.append(selector.preferred_s() / 2.0 - 1)
        if number <= len(gains):
            selector.observe(measured_reports_of([0], loss_rms=gains[number - 1], number=number))
    # Sums of three, before and last: after 6 rounds 15 > 6; after 7, 12 > 7; after 8, 9 < 14.
    assert found == relaxations


def test_without_a_step_t_covers_the_fastest_tried():
    """W K = 4: T is the fourth shortest of five durations, the eighth after one relaxation: more than there are."""
    selector = taught(Oort(2, window=2, preferred="cohorts"), duration_s=[9.0, 1.0, 5.0, 3.0], loss_rms=1.0)
    assert selector.preferred_s() == math.inf
    selector.observe(measured_reports_of([4], duration_s=7.0))
    assert selector.preferred_s() == 7.0
    selector._relaxed = 1
    assert selector.preferred_s() == math.inf


@pytest.mark.parametrize(
    ("clients", "relaxed", "preferred_s"),
    [(13, 0, 3.0), (13, 4, 5.0), (13, 13, 9.0), (13, 14, math.inf), (14, 0, 4.0), (14, 1, 8.0), (14, 2, math.inf)],
)
def test_t_is_a_percentile_in_a_small_crowd_and_covers_cohorts_in_a_large_one(clients, relaxed, preferred_s):
    """W K = 4 clients are 30 % of 13.3. Durations are 1 to 10 s: 30 % of them are 3, and 5 points more are 3.5."""
    selector = taught(Oort(2, window=2), clients, duration_s=np.arange(10, 0, -1.0), loss_rms=1.0)
    selector._relaxed = relaxed
    assert selector.preferred_s() == preferred_s


def test_the_percentile_has_at_least_one_client():
    assert taught(Oort(2), 4, duration_s=[7.0, 5.0], loss_rms=1.0).preferred_s() == 5.0


def exploiting(**options):
    return Oort(3, exploration=0.0, exploration_least=0.0, blacklist_after=None, clip=1.0, **options)


def test_only_those_above_the_cut_off_are_exploited():
    """Three places; the third best has 8, so that with c = 0.9 those from 7.2 on are in the draw: four of them."""
    seen = set()
    for seed in range(60):
        selector = taught(exploiting(cut_off=0.9), clients=6, loss_rms=[10.0, 9.0, 8.0, 7.5, 7.1, 1.0])
        chosen = selector.select(view_of(6), rng(seed)).client
        assert chosen.size == 3
        seen |= set(chosen.tolist())
    assert seen == {0, 1, 2, 3}


def test_with_a_cut_off_of_one_the_best_are_exploited():
    selector = taught(exploiting(cut_off=1.0), clients=6, loss_rms=[1.0, 9.0, 8.0, 7.5, 7.1, 10.0])
    assert selector.select(view_of(6), rng()).client.tolist() == [1, 2, 5]


def declaring(seconds):
    """Return features of clients that take so long: a tenth each way, the rest for work; and their samples."""
    shares = np.array([0.1, 0.8, 0.1])
    return np.concatenate([np.outer(seconds, shares), np.ones((len(seconds), 1))], axis=1)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("options", "features", "share"),
    [
        ({}, declaring([2.0, 6.0]), 0.75),
        ({"by_speed": False}, declaring([2.0, 6.0]), 0.5),
        ({}, np.array([[2.0], [6.0]]), 0.5),
        ({}, None, 0.5),
        ({}, declaring([0.0, 0.0]), 0.5),
    ],
)
def test_exploration_follows_declared_speed(options, features, share):
    """Times of 2 and 6 s are drawn as 3 : 1."""
    view, draws = view_of(2, features=features), rng(5)
    check_shares(lambda: Oort(1, **options).select(view, draws).client, [share, 1 - share])


def test_the_blacklist_and_its_limit():
    """Of ten clients three at most are listed: those selected most often, beyond ten times."""
    participations = np.array([11, 50, 12, 10, 13, 20, 0, 0, 0, 0])
    selector = taught(Oort(6, exploration=0.0, exploration_least=0.0), loss_rms=np.ones(6))
    chosen = selector.select(view_of(10, round=2, participations=participations, wanted=3), rng()).client
    assert chosen.tolist() == [0, 2, 3]  # 1, 5 and 4 are listed
    chosen = selector.select(view_of(6, round=3, participations=participations[:6], wanted=6), rng()).client
    assert chosen.tolist() == [0, 1, 2, 3, 4, 5]  # those listed fill the places that are left


def test_places_that_nobody_untried_takes_are_exploited():
    selector = taught(Oort(4), clients=4, loss_rms=np.ones(4))
    assert selector.select(view_of(4, round=2, wanted=3), rng()).client.size == 3


def test_equal_gains_do_not_relax_the_pacer():
    selector = Oort(1, window=2, pacer_step_s=3.0)
    for number in range(1, 9):
        selector.select(view_of(2, round=number), rng())
        assert selector.preferred_s() == 3.0
        selector.observe(measured_reports_of([0], loss_rms=4.0, number=number))


@pytest.mark.statistical
def test_the_exploited_are_drawn_in_proportion_to_utility():
    """One place, all admitted, utilities 6 and 2 in round 1: 3 : 1."""
    options = {"cut_off": 0.0, "clip": 1.0, "exploration": 0.0, "exploration_least": 0.0}
    selector, draws = taught(Oort(1, **options), 2, loss_rms=[6, 2]), rng(2)
    check_shares(lambda: selector.select(view_of(2), draws).client, [0.75, 0.25])


def test_who_was_selected_exactly_as_often_as_allowed_is_not_listed():
    view = view_of(4, round=2, participations=np.array([10, 11, 9, 30]))
    assert blacklist(view, 10, 1.0, rng()).tolist() == [False, True, False, True]
    assert blacklist(view, 10, 0.25, rng()).tolist() == [False, False, False, True]
    assert not blacklist(view, None, 1.0, rng()).any()
    equal = view_of(4, round=2, participations=np.array([30, 30, 9, 30]))
    assert {int(blacklist(equal, 10, 0.25, rng(seed)).argmax()) for seed in range(30)} == {0, 1, 3}


@pytest.mark.parametrize("taken", [[], [7], [3, 7], [7, 3, 0]])
def test_free_places_are_filled_and_no_more(taken):
    filled = fill_up(np.array(taken, dtype=np.int64), 3, 10, rng())
    assert filled.size == 3
    assert set(taken) <= set(filled.tolist()) <= set(range(10))
    assert filled.tolist() == sorted(set(filled.tolist()))
