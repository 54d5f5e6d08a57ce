"""PAUSE's terms against the paper's equations, and what follows from them."""

import math

import numpy as np
import pytest

from fedsim.selectors import Pause
from tests.support.views import play, reports_of, view_of


@pytest.mark.parametrize("time_index", ["paper", "reference-code"])
@pytest.mark.parametrize("beta", [1.0, 2.0, 3.0])
def test_first_generalisation_reward_is_m_over_k_to_the_beta(time_index, beta):
    g = Pause(5, beta=beta, time_index=time_index).generalisation(view_of(30))
    np.testing.assert_allclose(g, (5 / 30) ** beta, rtol=1e-14)


def test_generalisation_reward_by_hand():
    view = view_of(3, round=5, samples=np.array([10, 20, 70]), total_samples=100, participations=np.array([0, 2, 4]))
    # t - 1 = 4 and m = 1: shares 0.1 - 0, 0.2 - 0.5, 0.7 - 1; squares keep the sign.
    np.testing.assert_allclose(Pause(1).generalisation(view), [0.01, -0.09, -0.09], rtol=1e-12)
    reference = Pause(1, time_index="reference-code").generalisation(view)
    np.testing.assert_allclose(reference, [0.01, -((0.4 - 0.2) ** 2), -((0.8 - 0.7) ** 2)], rtol=1e-12)
    view = view_of([3, 7], clients=30, samples=np.zeros(2, dtype=np.int64), total_samples=0)
    np.testing.assert_allclose(Pause(5).generalisation(view), (5 / 30) ** 2, rtol=1e-14)


def test_privacy_reward_is_what_is_left_of_the_budget():
    spent = 20.0 * (1 - np.exp(-0.04 * np.arange(3)))
    p = Pause(1).privacy(view_of(3, round=3, privacy_spent=spent, privacy_budget=20.0))
    np.testing.assert_allclose(p, [1.0, math.exp(-0.04), math.exp(-0.08)], rtol=1e-12)
    assert Pause(1).privacy(view_of(3, round=3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("time_index", "t"), [("paper", 6), ("reference-code", 7)])
def test_ucb_by_hand(time_index, t):
    selector = Pause(2, tau_min_s=0.1, zeta=3.0, time_index=time_index)
    selector.observe(reports_of([0, 1], [0.2, 0.4]))
    selector.observe(reports_of([0], [0.1], number=2))
    ucb = selector.ucb(view_of(3, round=7, participations=np.array([2, 1, 0])))
    means = np.array([(0.5 + 1.0) / 2, 0.25])
    expected = 3.0 * means + np.sqrt(3 * math.log(t) / np.array([2, 1]))
    np.testing.assert_allclose(ucb[:2], expected, rtol=1e-14)
    assert ucb[2] == math.inf


def test_who_was_selected_and_never_reported_is_untried():
    """As after a crash of the server, which counts participations and has heard of nobody."""
    selector = Pause(1)
    selector.observe(reports_of([0], 0.1))
    assert selector.ucb(view_of(2, round=4, participations=np.array([1, 2])))[1] == math.inf


@pytest.mark.parametrize(
    ("duration_s", "delivered", "expected"),
    [
        # Below tau_min a duration earns one, and a censored one counts as it is; round 2 has no exploration yet.
        *((duration_s, True, 1.0) for duration_s in (0.0, 1e-300, 0.01, 0.05)),
        (0.1, True, 0.5),
        (2.0, False, 0.025),
    ],
)
def test_what_a_duration_earns_in_the_second_round(duration_s, delivered, expected):
    selector = Pause(1, tau_min_s=0.05)
    selector.observe(reports_of([0], duration_s, delivered=delivered))
    assert selector.ucb(view_of(1, round=2, participations=np.array([1])))[0] == pytest.approx(expected)


def test_the_first_rounds_cover_everybody_once():
    rng = np.random.default_rng(5)
    cohorts, participations = play(Pause(5), 6, 30, rng.uniform(0.05, 1.0, 30))
    assert sorted(np.concatenate(cohorts).tolist()) == list(range(30))
    assert np.all(participations == 1)


def test_without_bonuses_it_settles_on_the_fastest():
    duration_s = np.where(np.arange(12) < 3, 0.05, 5.0)
    _, participations = play(Pause(3, alpha=0.0, gamma=0.0, zeta=30.0), 200, 12, duration_s)
    assert set(np.argsort(participations)[-3:].tolist()) == {0, 1, 2}
    assert participations[:3].min() > 5 * participations[3:].max()


def test_a_heavy_generalisation_reward_shares_the_rounds_evenly():
    duration_s = np.linspace(0.05, 1.0, 10)
    _, participations = play(Pause(2, alpha=1e6, gamma=0.0), 100, 10, duration_s)
    assert np.ptp(participations) <= 1
    assert participations.sum() == 200


def test_members_group_by_speed():
    """Two equally large groups, fast and slow: a cohort that is half fast pays for its slowest, so few mix."""
    duration_s = np.where(np.arange(20) < 10, 0.05, 1.0)
    cohorts, _ = play(Pause(4, alpha=1.0, gamma=1.0, zeta=30.0), 300, 20, duration_s)
    mixed = [0 < np.count_nonzero(chosen < 10) < 4 for chosen in cohorts[5:]]
    hypergeometric_mixed = 1 - 2 * math.comb(10, 4) / math.comb(20, 4)
    assert np.mean(mixed) < hypergeometric_mixed / 2


def test_memory_is_kept_when_the_crowd_grows():
    selector = Pause(1, alpha=0.0, gamma=0.0)
    selector.select(view_of(2), np.random.default_rng(0))
    selector.observe(reports_of([0], 0.1))
    selector.observe(reports_of([5], 0.2))
    ucb = selector.ucb(view_of(6, round=2, participations=np.array([1, 0, 0, 0, 0, 1])))
    assert ucb[[0, 5]].tolist() == pytest.approx([0.5, 0.25])
    grown = selector.select(
        view_of(8, round=2, participations=np.array([1, 0, 0, 0, 0, 1, 0, 0])), np.random.default_rng(0)
    )
    assert grown.client[0] not in (0, 5)
