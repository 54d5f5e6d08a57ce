"""MD, weighted and importance sampling, loss-proportional selection, round robin and the soonest, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors import SELECTORS
from fedsim.selectors.baselines import LossProportional, MdSampling, RoundRobin, Soonest, WeightedSampling
from fedsim.selectors.importance import ImportanceSampling, optimal_probabilities
from tests.support.views import check_shares, reports_of, rng, view_of


@pytest.mark.statistical
def test_md_sampling_is_multinomial_and_unbiased():
    """m = 3 draws with p = 1/10, 2/10, 7/10: mean weight p, variance m p (1 - p), of kurtosis below 5."""
    view, rounds, generator = view_of(3, samples=[10, 20, 70]), 6_000, rng()
    draws, weights = np.zeros((rounds, 3)), np.zeros((rounds, 3))
    for i in range(rounds):
        cohort = MdSampling(3).select(view, generator)
        assert cohort.draws.sum() == 3
        draws[i, cohort.client], weights[i, cohort.client] = cohort.draws, cohort.weights
    p = np.array([0.1, 0.2, 0.7])
    variance = 3 * p * (1 - p)
    assert np.all(np.abs(weights.mean(axis=0) - p) < 5 * np.sqrt(variance / 9 / rounds))
    assert draws.var(axis=0) == pytest.approx(variance, rel=5 * math.sqrt(4 / rounds))


def test_weighted_sampling_averages_equally_unless_told_otherwise():
    view = view_of(6, samples=[1, 2, 3, 4, 5, 6])
    cohort = WeightedSampling(4).select(view, rng())
    assert cohort.client.size == len(set(cohort.client.tolist())) == 4
    assert cohort.weights.tolist() == [0.25] * 4
    assert cohort.draws is None
    assert WeightedSampling(4, weights="samples").select(view, rng()).weights is None


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("selector", "known"),
    [(WeightedSampling(1), {"samples": [1, 3]}), (LossProportional(1), {"last_loss": [1.0, 3.0]})],
)
def test_one_client_is_drawn_in_proportion_to_data_or_loss(selector, known):
    view, draws = view_of(2, **known), rng()
    check_shares(lambda: selector.select(view, draws).client, [0.25, 0.75])


@pytest.mark.parametrize(
    ("norm", "expected", "chance"),
    [
        # l = 4: (2 + 4 - 4) * 4 <= 8, so all share: 2 u / 8.
        ([1, 1, 2, 4], 2, [0.25, 0.25, 0.5, 1.0]),
        # l = 4 fails, 2 * 9 > 12; l = 3: the largest is certain and the others share one place.
        ([1, 9, 1, 1], 2, [1 / 3, 1, 1 / 3, 1 / 3]),
        ([5, 5, 5, 5], 3, [0.75] * 4),
        ([0, 0, 0, 2], 2, [1 / 3, 1 / 3, 1 / 3, 1]),
        ([1, 2, 3], 3, [1, 1, 1]),
    ],
)
def test_optimal_probabilities_worked_by_hand(norm, expected, chance):
    assert optimal_probabilities(np.array(norm, float), expected) == pytest.approx(np.array(chance))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.data())
def test_optimal_probabilities_add_up_to_m_and_rise_with_the_norm(norm, data):
    m = data.draw(st.integers(1, len(norm)))
    chance = optimal_probabilities(np.array(norm), m)
    assert chance.sum() == pytest.approx(m)
    assert np.all((chance >= 0) & (chance <= 1))
    order = np.argsort(norm, kind="stable")
    assert np.all(np.diff(chance[order]) >= -1e-9)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("selector", "wanted", "size"),
    [
        # w |U| = 0.4, 0.2, 0.6, 0.2 and m = 2: 2 * 0.6 <= 1.4, so everybody's probability is 2 w |U| / 1.4.
        (ImportanceSampling(2, draw="independent", floor=0.0), None, 2 / (1 - 3 / 7 * 5 / 7 * 1 / 7 * 5 / 7)),
        (ImportanceSampling(2, draw="systematic", floor=0.0), None, 2.0),
        # Of more than it asks for the server would drop some, with their weights.
        (ImportanceSampling(3), 2, 2.0),
    ],
    ids=["independent", "systematic", "wanted"],
)
def test_importance_sampling_is_unbiased_and_has_the_size_that_is_asked_for(selector, wanted, size):
    """The mean weight of every client is its share of the data, also given that somebody takes part."""
    selector.observe(reports_of(range(4), update_norm=[4.0, 1.0, 2.0, 0.5]))
    view, rounds, generator = view_of(4, samples=[10, 20, 30, 40], wanted=wanted), 30_000, rng(5)
    weights, sizes = np.zeros((rounds, 4)), np.zeros(rounds)
    for i in range(rounds):
        cohort = selector.select(view, generator)
        weights[i, cohort.client], sizes[i] = cohort.weights, cohort.client.size
    error = 5 * weights.std(axis=0) / math.sqrt(rounds)
    assert np.all(np.abs(weights.mean(axis=0) - [0.1, 0.2, 0.3, 0.4]) < error)
    assert abs(sizes.mean() - size) < 5 * max(sizes.std(), 1e-12) / math.sqrt(rounds) + 1e-12
    assert size != 2.0 or set(sizes) == {2.0}


def test_importance_sampling_prescribes_weights_unless_samples_weigh():
    prescribed = [
        ImportanceSampling(2, weights=word).select(view_of(4), rng()).weights for word in ("unbiased", "samples")
    ]
    assert [weights is None for weights in prescribed] == [False, True]


def test_a_norm_is_known_until_the_next_update_is_delivered():
    selector = ImportanceSampling(2, floor=0.0)
    selector.observe(reports_of([0, 1], update_norm=[6.0, 1.0]))
    selector.observe(reports_of([1], delivered=[False], update_norm=[np.nan]))
    assert selector.norms(view_of(2)).tolist() == [6.0, 1.0]


def test_norms_that_are_not_known_count_with_the_largest_and_small_ones_with_the_floor():
    selector = ImportanceSampling(2, floor=0.5)
    assert selector.norms(view_of(4)).tolist() == [1.0] * 4
    selector.observe(reports_of([0, 1, 2], delivered=[True, True, False], update_norm=[6.0, 1.0, np.nan]))
    assert selector.norms(view_of(4)).tolist() == [6.0, 1.75, 6.0, 6.0]
    # Client 2 was tried and has not delivered: the mean of 6 and 1.
    assert selector.norms(view_of(4, participations=[1, 1, 1, 0])).tolist() == [6.0, 1.75, 3.5, 6.0]


def test_loss_proportional_values():
    view = view_of(4, last_loss=[0.5, np.nan, 2.0, 1.0], samples=[4, 9, 16, 1])
    assert LossProportional(2).values(view).tolist() == [0.5, 2.0, 2.0, 1.0]
    assert LossProportional(2, data_exponent=0.5).values(view).tolist() == [1.0, 6.0, 8.0, 1.0]
    assert LossProportional(2).values(view_of(2)).tolist() == [1.0, 1.0]
    # Client 1 was tried and has not delivered: the mean of 0.5 and 1.
    known = {"participations": [1, 3, 1, 0], "last_duration_s": [1.0, np.nan, 1.0, np.nan]}
    tried = view_of(4, last_loss=[0.5, np.nan, 1.0, np.nan], **known)
    assert LossProportional(2).values(tried).tolist() == [0.5, 0.75, 1.0, 1.0]
    assert LossProportional(2).values(view_of(2, participations=[1, 1])).tolist() == [1.0, 1.0]


def test_round_robin_goes_around_and_passes_over_those_that_are_away():
    selector = RoundRobin(3)
    everybody = view_of(7)
    assert [selector.select(everybody, rng()).client.tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [0, 1, 6]]
    # It is the turn of 2, which is away; after 5 it goes on at the start.
    assert selector.select(view_of([0, 3, 5, 6], clients=7), rng()).client.tolist() == [3, 5, 6]
    assert selector.select(view_of([1, 4], clients=7), rng()).client.tolist() == [1, 4]


def test_the_soonest_are_those_of_least_coming_duration():
    view = view_of([2, 4, 6, 9], oracle={"coming_duration_s": lambda: np.array([3.0, np.inf, 1.0, 2.0])})
    assert Soonest(2).select(view, rng()).client.tolist() == [6, 9]


DRAWING = ("md", "weighted", "importance", "loss-proportional", "round-robin")
OTHERS = ("age-based", "aocs", "divfl", "e3cs", "fedsuv", "fedzero", "joint-bandwidth", "ocean", "tifl")
LEARNING = ("bsfl", "cs-ucb", "cs-ucb-q", "pause", "pause-enumeration", "pause-vanilla-sa", "sa-pause")


@pytest.mark.parametrize(
    ("kind", "wanted", "taken"),
    [
        *((kind, *case) for kind in DRAWING + LEARNING for case in ((1, 1), (4, 4), (99, 12))),
        *((kind, None, 3) for kind in LEARNING),
        *((kind, 0, 0) for kind in DRAWING + LEARNING + OTHERS),
    ],
)
def test_the_server_may_ask_for_fewer_or_more(kind, wanted, taken):
    selector = SELECTORS.make({"kind": kind, "cohort": 3}).build()
    for number in (1, 2):
        cohort = selector.select(view_of(12, round=number, wanted=wanted), rng(number))
        assert len(set(cohort.client.tolist())) == cohort.client.size
        assert (cohort.client.size if cohort.draws is None else cohort.draws.sum()) == taken
        selector.observe(reports_of(np.arange(12), np.linspace(0.1, 1.0, 12)))
