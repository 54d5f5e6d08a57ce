"""What `test_algorithm` does not meet: the blacklist, free places, ties, and faults of FedScale's code."""

import math
from copy import deepcopy

import numpy as np
import pytest

from fedsim.selectors import Oort, OortFedScale
from fedsim.selectors.oort.state import blacklist, fill_up
from tests.support.views import measured_reports_of, rng, taught, view_of


@pytest.mark.parametrize(
    ("clients", "relaxed", "preferred_s"),
    [(13, 0, 3.0), (13, 4, 5.0), (13, 13, 9.0), (13, 14, math.inf), (14, 0, 4.0), (14, 1, 8.0), (14, 2, math.inf)],
)
def test_t_is_a_percentile_in_a_small_crowd_and_covers_cohorts_in_a_large_one(clients, relaxed, preferred_s):
    """W K = 4 clients are 30 % of 13.3. Durations are 1 to 10 s: 30 % of them are 3, and 5 points more are 3.5."""
    selector = taught(Oort(2, window=2), clients, duration_s=np.arange(10, 0, -1.0), loss_rms=1.0)
    selector._relaxed = relaxed
    assert selector.preferred_s() == preferred_s


def test_the_blacklist_and_its_limit():
    """Of ten clients three at most are listed: those selected most often, beyond ten times."""
    participations = np.array([11, 50, 12, 10, 13, 20, 0, 0, 0, 0])
    selector = taught(Oort(6, exploration=0.0, exploration_least=0.0), loss_rms=np.ones(6))
    chosen = selector.select(view_of(10, round=2, participations=participations, wanted=3), rng()).client
    assert chosen.tolist() == [0, 2, 3]  # 1, 5 and 4 are listed
    chosen = selector.select(view_of(6, round=3, participations=participations[:6], wanted=6), rng()).client
    assert chosen.tolist() == [0, 1, 2, 3, 4, 5]  # those listed fill the places that are left


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


def test_equal_samples_are_explored_in_random_order():
    """FedScale's code goes by ids then: with one place and a window of five it would never look beyond five ids."""
    selector = taught(OortFedScale(1, exploration=1.0, exploration_decay=1.0), 20, loss_rms=[1.0])
    view = view_of(20, round=2)
    assert {int(deepcopy(selector).select(view, rng(seed)).client[0]) for seed in range(200)} == set(range(1, 20))


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


def test_a_gain_is_the_mean_over_the_exploited_that_delivered():
    """Exploited are 0 (5), 1 (late) and 2 (3), explored one of 3 and 4: (5 + 3) / 2.0001."""
    options = {"exploration": 0.25, "exploration_decay": 1.0, "exploration_least": 0.25}
    selector = taught(OortFedScale(4, **options), 5, loss_rms=np.ones(3))
    chosen = selector.select(view_of(5, round=2), rng()).client
    assert chosen[:3].tolist() == [0, 1, 2]
    selector.observe(measured_reports_of(chosen, [True, False, True, True], [5.0, 9.0, 3.0, 7.0], number=2))
    assert selector._gain == pytest.approx(8 / 2.0001)
