"""REFL: its forecaster against plain ridge regression, and whom it selects, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import simulate
from fedsim.selectors.refl.refl import Refl, ReflOracle, SeasonalForecast, target
from tests.support.short_runs import TIMING
from tests.support.views import reports_of, rng, view_of

DAY_S, HOUR_S = 86400.0, 3600.0
NOBODY = np.zeros(0, dtype=np.int64)


def terms(time_s, harmonics):
    """Return the design matrix of a daily season."""
    angle = 2 * np.pi * np.outer(np.atleast_1d(time_s) / DAY_S, np.arange(1, harmonics + 1))
    return np.hstack([np.ones((len(angle), 1)), np.cos(angle), np.sin(angle)])


@given(st.integers(1, 40), st.integers(1, 4), st.floats(0.1, 10.0), st.integers(0, 2**31))
def test_the_forecast_is_ridge_regression_for_each_client(times, harmonics, ridge, seed):
    generator, clients = rng(seed), 5
    when_s = np.sort(generator.uniform(0, 3 * DAY_S, times))
    there = generator.random((times, clients)) < 0.4
    forecast = SeasonalForecast([DAY_S], harmonics, ridge)
    for time_s, row in zip(when_s, there, strict=True):
        forecast.learn(time_s, clients, np.flatnonzero(row), NOBODY)
    design, later_s = terms(when_s, harmonics), when_s[-1] + 1234.0
    fitted = np.linalg.solve(design.T @ design + ridge * np.eye(design.shape[1]), design.T @ (there - 0.5))
    expected = np.clip(0.5 + (terms(later_s, harmonics) @ fitted)[0], 0, 1)
    assert forecast.probability(np.arange(clients), later_s, later_s) == pytest.approx(expected, abs=1e-8)


def test_an_instant_at_which_nothing_is_known_leaves_the_forecast_as_it_is():
    forecast = SeasonalForecast([DAY_S], 2, 1.0)
    for hour in range(30):
        forecast.learn(hour * HOUR_S, 3, np.flatnonzero([hour % 24 < 8, hour % 24 < 16, False]), NOBODY)
    before = forecast.probability(np.arange(3), 40 * HOUR_S, 44 * HOUR_S)
    assert np.all(before < 1)
    forecast.learn(31 * HOUR_S, 3, NOBODY, np.arange(3))
    assert forecast.probability(np.arange(3), 40 * HOUR_S, 44 * HOUR_S) == pytest.approx(before, abs=1e-12)


def test_a_slot_is_the_mean_of_its_instants():
    forecast = SeasonalForecast([DAY_S, 7 * DAY_S], 3, 1.0)
    for hour in range(60):
        forecast.learn(hour * HOUR_S, 1, np.flatnonzero([hour % 3 > 0]), NOBODY)
    from_s, until_s = 61 * HOUR_S, 70 * HOUR_S
    middles = from_s + (np.arange(4000) + 0.5) / 4000 * (until_s - from_s)
    instants = [forecast.probability(np.arange(1), at, at)[0] for at in middles]
    assert min(instants) > 0
    assert max(instants) < 1
    # The midpoint rule is off by at most (b - a)^2 / 24 n^2 times the curvature, far below the tolerance.
    assert forecast.probability(np.arange(1), from_s, until_s)[0] == pytest.approx(np.mean(instants), abs=1e-6)


def test_a_client_never_seen_has_one_half_and_a_second_look_at_an_instant_counts_once():
    forecast = SeasonalForecast([DAY_S], 1, 2.0)
    for _ in range(3):
        forecast.learn(0.0, 2, np.array([1]), NOBODY)
    # One observation y of the terms (1, 1, 0) with ridge 2: 0.5 + (y - 0.5) * 2 / (2 + 2) at the same time of day.
    assert forecast.probability(np.arange(2), DAY_S, DAY_S) == pytest.approx(np.array([0.25, 0.75]))


def run_days(selector, days, there_at):
    """Select every half hour from those that are there."""
    for number in range(1, 48 * days + 1):
        time_s = number * HOUR_S / 2
        view = view_of(there_at(time_s), clients=4, round=number, time_s=time_s)
        cohort = selector.select(view, rng(number)).client
        selector.observe(reports_of(cohort, number=number, time_s=time_s + HOUR_S / 2))


def test_those_about_to_leave_are_selected():
    """0 leaves at 18 h every day and 1 at midnight; 2 and 3 stay. An hour before, each is the least available."""

    def there_at(time_s):
        hour = time_s / HOUR_S % 24
        return np.flatnonzero([hour < 18, hour >= 6, True, True])

    selector = Refl(1, hold_off=0, slot_s=HOUR_S)
    run_days(selector, 6, there_at)
    for hour, leaving in ((17, 0), (23, 1)):
        time_s = 6 * DAY_S + hour * HOUR_S
        view = view_of(there_at(time_s), clients=4, round=1000 + hour, time_s=time_s)
        assert selector.select(view, rng()).client.tolist() == [leaving]


def test_mu_is_the_moving_average_of_round_durations():
    """From 1000 s with alpha 0.25: 0.75 * 100 + 250 = 325, then 0.75 * 40 + 81.25 = 111.25."""
    selector = Refl(1)
    selector.select(view_of(3, time_s=50.0), rng())
    selector.observe(reports_of([0], time_s=150.0))
    assert selector.mu_s == 325.0
    selector.select(view_of(3, round=2, time_s=200.0), rng())
    selector.observe(reports_of([1], number=2, time_s=240.0))
    assert selector.mu_s == 111.25


def test_clients_wait_after_their_selection_unless_too_few_are_left():
    selector, cohorts = Refl(2, hold_off=2), []
    for number in range(1, 5):
        cohorts.append(set(selector.select(view_of(7, round=number, time_s=number * 1.0), rng(number)).client.tolist()))
        selector.observe(reports_of(sorted(cohorts[-1]), number=number, time_s=number + 0.5))
    assert len(cohorts[0] | cohorts[1] | cohorts[2]) == 6
    assert not cohorts[3] & (cohorts[1] | cohorts[2])
    assert selector.select(view_of(7, round=5, wanted=7), rng()).client.size == 7


def test_the_adaptive_target_worked_by_hand():
    assert target(10, 3, adaptive=True, least_share=0.0) == 7
    assert target(10, 30, adaptive=True, least_share=0.0) == 1
    assert target(10, 8, adaptive=True, least_share=0.5) == 5
    assert target(10, 8, adaptive=False, least_share=0.5) == 10
    assert target(0, 2, adaptive=True, least_share=0.5) == 0


@pytest.mark.parametrize(("number", "size"), [(2, 1), (6, 1), (7, 4)])
def test_updates_that_are_due_within_mu_make_the_target_smaller(number, size):
    """Of four selected one delivers after 20 s; the others were cut off from view at 30 s and are away from then on.

    A late client is expected to take the 20 s known, which are over, so all three are due, for the 5 rounds held off.
    """
    selector = Refl(4, adaptive_target=True, initial_s=10.0)
    first = selector.select(view_of(4, clients=9), rng()).client
    selector.observe(reports_of(first, time_s=30.0, delivered=[True, False, False, False], duration_s=[20, 30, 30, 30]))
    others = np.setdiff1d(np.arange(9), first[1:])
    assert selector.select(view_of(others, clients=9, round=number, time_s=30.0), rng()).client.size == size
    # Those that are back are not at work any more.
    assert selector.select(view_of(9, round=number + 1, time_s=31.0), rng()).client.size == 4


def stays_until(leaves_s):
    return lambda _from_s, until_s: np.asarray(leaves_s) >= until_s


@pytest.mark.parametrize(("rule", "chosen"), [("paper", {0, 1}), ("reference-code", {1})])
def test_a_perfect_oracle(rule, chosen):
    """Slots of 10 s: 0 leaves at once, 1 after 15 s, 2 and 3 stay. The code passes over those that leave at once."""
    view = view_of(4, oracle={"stays": stays_until([5.0, 15.0, 90.0, 90.0])})
    options = {"rule": rule, "accuracy": 1.0, "slot_s": 10.0}
    assert set(ReflOracle(len(chosen), **options).select(view, rng()).client.tolist()) == chosen
    firsts = {int(ReflOracle(1, **options).select(view, rng(seed)).client[0]) for seed in range(40)}
    assert firsts == chosen


@pytest.mark.statistical
def test_noise_spoils_the_oracle_as_often_as_it_says():
    """Of one that leaves and one that stays, the right one is selected if both answers are right or, at random, one.

    With accuracy 0.8: 0.64 + 0.32 / 2 = 0.8.
    """
    view, rounds = view_of(2, oracle={"stays": stays_until([15.0, 90.0])}), 800
    generator = rng()
    right = sum(ReflOracle(1, accuracy=0.8, slot_s=10.0).select(view, generator).client[0] == 0 for _ in range(rounds))
    assert abs(right / rounds - 0.8) < 5 * math.sqrt(0.8 * 0.2 / rounds)


def test_the_code_looks_at_a_share_of_either_group():
    """Half of the leavers and half of the others, or 29 %; the leavers looked at come first, then the others."""
    for each, accuracy, looked_at in ((4, 0.5, 2), (100, 0.29, 29)):
        view = view_of(2 * each, oracle={"stays": stays_until([15.0] * each + [90.0] * each)})
        for seed in range(20):
            oracle = ReflOracle(2 * looked_at, accuracy=accuracy, rule="reference-code", slot_s=10.0)
            assert np.count_nonzero(oracle.select(view, rng(seed)).client < each) == looked_at


def test_refl_and_its_reduced_safa_are_scenarios():
    """The settings that the docstrings of `Refl` and `All` give."""
    late = {"kind": "stale", "weight": "constant", "max_staleness": 5}
    safa = {"count": 6, "policy": {"kind": "quorum", "share": 0.1, "max_wait_s": 100.0}, "late": late}
    history = simulate(TIMING.replace({"crowd.clients": 20, "rounds": safa, "selector": "all"}))
    # A round with all twenty ends with the second delivery, that of fast ones; the slow go on and are merged later.
    assert history.column("rounds", "selected").tolist()[0] == 20
    assert history.column("rounds", "delivered").tolist()[0] == 2
    refl = {"count": 6, "policy": "moving-average", "late": {"kind": "stale", "weight": "deviation"}}
    selector = {"kind": "refl", "cohort": 3, "adaptive_target": True}
    history = simulate(TIMING.replace({"crowd.clients": 20, "rounds": refl, "selector": selector}))
    assert history.column("rounds", "selected").tolist() == [3] * 6


def test_the_slot_is_that_from_mu_to_two_mu_from_now():
    asked = []

    class Listening(SeasonalForecast):
        def probability(self, client, from_s, until_s):
            asked.append((from_s, until_s))
            return super().probability(client, from_s, until_s)

    for slot_s in (None, 7.0):
        selector = Refl(1, slot_s=slot_s, initial_s=30.0)
        selector._forecast = Listening([DAY_S], 1, 1.0)
        selector.select(view_of(3, time_s=100.0), rng())
    assert asked == [(130.0, 160.0), (107.0, 114.0)]


@pytest.mark.parametrize(("mu_s", "due"), [(5.0, 0), (9.9, 0), (10.0, 1), (15.0, 1)])
def test_an_update_is_due_if_it_is_expected_within_mu(mu_s, due):
    """Client 0 has taken 20 s once and was sent at 40 s; at 50 s its update is expected in 10 s."""
    selector = Refl(1, initial_s=mu_s, alpha=1.0)
    selector.select(view_of([0], clients=2, time_s=0.0), rng())
    selector.observe(reports_of([0], duration_s=[20.0], time_s=20.0))
    selector.select(view_of([0], clients=2, round=2, time_s=40.0), rng())
    selector.observe(reports_of([0], number=2, delivered=[False], duration_s=[5.0], time_s=45.0))
    later = view_of([1], clients=2, round=3, time_s=50.0)
    selector.meet(later)
    assert selector.missed(later).tolist() == [0]
    assert selector.due(later) == due
