"""CS-UCB and CS-UCB-Q against numbers worked by hand from their rules."""

import math

import numpy as np
import pytest

from fedsim.errors import ScenarioError, SelectorError
from fedsim.selectors.cs_ucb import CsUcb, CsUcbQ
from tests.support.short_runs import TIMING
from tests.support.views import reports_of, rng, view_of


def test_index_by_hand():
    selector = CsUcb(2, tau_max_s=2.0)
    selector.observe(reports_of([0, 1], [0.5, 1.5]))
    selector.observe(reports_of([0], [1.0]))
    index = selector.index(view_of(4, round=7))
    # Means (0.75 + 0.5) / 2 and 0.25; (m + 1) ln 7 over 2 and 1.
    assert index[0] == pytest.approx(0.625 + math.sqrt(3 * math.log(7) / 2))
    assert index[1] == pytest.approx(0.25 + math.sqrt(3 * math.log(7)))
    assert index[2:].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("duration_s", [2.0, 50.0])
def test_what_takes_longer_than_the_longest_earns_nothing(duration_s):
    selector = CsUcb(1, tau_max_s=2.0)
    selector.observe(reports_of([0], duration_s, delivered=False))
    assert selector.index(view_of(1))[0] == 0.0


def test_everybody_is_tried_first_and_spare_places_go_to_the_best():
    selector, seen = CsUcb(3), []
    for number in (1, 2, 3):
        chosen = selector.select(view_of(8, round=number), rng()).client
        seen.append(chosen.tolist())
        selector.observe(reports_of(chosen, 0.1 + 0.1 * chosen))
    assert set().union(*seen) == set(range(8))
    fresh = set(range(8)) - set(seen[0]) - set(seen[1])
    (spare,) = set(seen[2]) - fresh
    assert spare == min(seen[0] + seen[1])  # all tried once: the fastest has the greatest index


def test_the_greatest_indices_win():
    selector = CsUcb(2, tau_max_s=1.0)
    selector.observe(reports_of([0, 1, 2, 3], [0.9, 0.1, 0.5, 0.2]))
    assert selector.select(view_of(4), rng()).client.tolist() == [1, 3]


def test_queue_index_is_capped_and_weighed():
    selector = CsUcbQ(2, tau_max_s=2.0, weight=0.25, rates=[0.5, 0.1, 0.2])
    selector.observe(reports_of([0, 1], [1.9, 0.5]))
    selector.select(view_of(3), rng())
    # Round 1: queues 0.5, 0.1, 0.2; ln 1 = 0, so that means stand alone: 0.05, 0.75, and 1 for the untried.
    expected = [0.75 * 0.05 + 0.25 * 0.5, 0.75 * 0.75 + 0.25 * 0.1, 0.75 * 1 + 0.25 * 0.2]
    assert selector.index(view_of(3)).tolist() == pytest.approx(expected)
    # Round 9: sqrt(2 ln 9) = 2.1 takes both tried above 1.
    assert selector.index(view_of(3, round=9)).tolist() == pytest.approx([0.75 + 0.125, 0.75 + 0.025, 0.75 + 0.05])


def test_queue_index_has_a_confidence_of_its_own():
    """2 ln t over T_k, where CS-UCB has (m + 1) ln t: nine rewards of 0.2 by round 3, with m = 2."""
    selector = CsUcbQ(2, tau_max_s=2.0, weight=0.0)
    for _ in range(9):
        selector.observe(reports_of([0], 1.6))
    selector.select(view_of(3, round=3), rng())
    assert selector.index(view_of(3, round=3))[0] == pytest.approx(0.2 + math.sqrt(2 * math.log(3) / 9))


def queues(selector, clients):
    """The queues themselves: with weight 1 the index is nothing else."""
    return selector.index(view_of(clients)).tolist()


def test_queues_by_hand():
    """Each adds its own promise, and nothing else: the re-implementation added the whole list."""
    selector = CsUcbQ(1, weight=1.0, rates=[0.75, 0.5, 0.125])
    assert selector.select(view_of(3), rng()).client.tolist() == [0]
    assert queues(selector, 3) == [0.75, 0.5, 0.125]
    assert selector.select(view_of(3, round=2), rng()).client.tolist() == [1]
    assert queues(selector, 3) == [0.5, 1.0, 0.25]  # 0.75 + 0.75 - 1
    assert selector.select(view_of(3, round=3), rng()).client.tolist() == [0]
    assert queues(selector, 3) == [1.25, 0.5, 0.375]
    # Rounds 4 and 5 pass without candidates: client 0 is owed 1.25 + 0.75 - 1, and twice 0.75.
    assert selector.select(view_of(3, round=6), rng()).client.tolist() == [0]
    assert queues(selector, 3) == [2.5, 2.0, 0.75]


def test_a_queue_never_falls_below_zero():
    selector = CsUcbQ(1, weight=1.0, rates=[0.25, 0.0])
    selector.select(view_of(2), rng())
    selector.select(view_of(2, round=2), rng())
    assert queues(selector, 2) == [0.0, 0.0]


def test_asked_twice_in_a_round_it_counts_the_round_once():
    selector = CsUcbQ(1, weight=1.0, rates=[0.75, 0.5])
    selector.select(view_of(2), rng())
    assert selector.select(view_of([1], clients=2), rng()).client.tolist() == [1]
    assert queues(selector, 2) == [0.75, 0.5]
    selector.select(view_of(2, round=2), rng())
    assert queues(selector, 2) == [0.5, 0.0]


def test_only_those_present_are_taken_and_the_absent_are_owed_their_rounds():
    selector = CsUcbQ(1, weight=1.0, rates=[0.5, 0.25, 0.25])
    for number in range(1, 5):
        assert selector.select(view_of([1, 2], clients=3, round=number), rng()).client[0] in (1, 2)
    assert selector.select(view_of(3, round=5), rng()).client.tolist() == [0]
    assert queues(selector, 3)[0] == 2.5
    assert selector.index(view_of([0, 2], clients=3, round=5)).tolist() == [2.5, queues(selector, 3)[2]]


def test_a_promise_is_a_part_of_the_fair_share():
    samples = np.array([10, 30, 60])
    selector = CsUcbQ(2, weight=1.0, promise=0.5)
    selector.select(view_of(3, samples=samples, total_samples=100), rng())
    assert queues(selector, 3) == pytest.approx([0.1, 0.3, 0.6])  # 0.5 * 2 * share
    without = CsUcbQ(2, weight=1.0, promise=0.9)
    without.select(view_of(3, samples=np.zeros(3, dtype=np.int64), total_samples=0), rng())
    assert queues(without, 3) == pytest.approx([0.6] * 3)
    generous = CsUcbQ(2, weight=1.0, promise=1.0)
    generous.select(view_of(3, samples=samples, total_samples=100), rng())
    assert queues(generous, 3) == pytest.approx([0.2, 0.6, 1.0])


def test_promises_are_kept_in_the_long_run():
    """A queue of length q after n rounds means a share of at least c - q / n; here all queues stay short."""
    rates, rounds, luck = [0.6, 0.3, 0.2, 0.1, 0.0], 1500, rng()
    selector, taken = CsUcbQ(2, tau_max_s=1.0, weight=0.1, rates=rates), np.zeros(5)
    speed_s = np.array([0.9, 0.8, 0.7, 0.2, 0.1])  # the slowest have the greatest promise
    for number in range(1, rounds + 1):
        present = np.flatnonzero(luck.random(5) < 0.9)
        chosen = selector.select(view_of(present, clients=5, round=number), luck).client
        taken[chosen] += 1
        selector.observe(reports_of(chosen, speed_s[chosen], number=number))
    assert np.all(taken / rounds > np.array(rates) - 0.02)
    assert taken[4] > taken[2]  # what is left goes to the fastest


def test_a_scenario_refuses_rates_that_do_not_fit_the_crowd():
    promising = {"crowd.clients": 3, "selector": {"kind": "cs-ucb-q", "cohort": 1, "rates": [0.1, 0.2, 0.3]}}
    assert TIMING.replace(promising)
    promising["selector"]["rates"] = [0.1, 0.2]
    with pytest.raises(
        ScenarioError, match=r"selector.rates: .*2 numbers; allowed: one for each client, crowd.clients = 3"
    ):
        TIMING.replace(promising)


def test_refuses_rates_that_do_not_fit_the_crowd():
    with pytest.raises(SelectorError, match=r"rates: 2 numbers.*3 clients"):
        CsUcbQ(1, rates=[0.1, 0.2]).select(view_of(3), rng())
    with pytest.raises(SelectorError, match=r"rates: 4 numbers.*3 clients of this server"):
        CsUcbQ(1, rates=[0.1, 0.2, 0.3, 0.4]).select(view_of(3), rng())
