"""When synchronous servers close their rounds: everything that happens, worked by hand."""

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from fedsim.rounds import Deadline
from fedsim.rounds.policies.adaptive import MovingAverage, QuantileDeadline
from fedsim.rounds.policies.count_based import KFastest, Quorum
from fedsim.rounds.policies.round import PastRounds
from fedsim.selectors import Probe
from tests.support.short_runs import timed
from tests.support.stories import ends, used
from tests.support.worlds import Curious, Sequence, serve

# Four clients that take 3, 5, 8 and 12 s: downlink, work, uplink.
FOUR = ([1, 1, 2, 2], [1, 2, 3, 5], [1, 2, 3, 5])


def test_k_fastest_keeps_what_a_selector_gives_beyond_the_wish_out_by_lot():
    history, *_ = serve(KFastest(k=1, over_selection=2.0), *FOUR, count=40)
    assert np.all(history.column("rounds", "selected") == 2)
    assert len(set(history.column("participations", "client"))) == 4


@pytest.mark.parametrize(
    ("k", "over_selection", "wanted"), [(20, 1.3, 26), (100, 1.3, 130), (5, 1.3, 7), (10, 1.1, 11)]
)
def test_how_many_are_asked_for(k, over_selection, wanted):
    assert KFastest(k=k, over_selection=over_selection).traits.cohort_size == wanted


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize(
    "policy",
    [
        KFastest(k=1, over_selection=3.0),
        Quorum(share=0.1, max_wait_s=9.0),
        MovingAverage(initial_s=9, target_share=0.1),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_whoever_arrives_at_the_instant_that_ends_a_round_counts(policy, order):
    """0.6 s in two ways that differ in the last digit; client 2 takes 0.7 s."""
    columns = [0.1, 0.3, 0.5], [0.2, 0.2, 0.1], [0.3, 0.1, 0.1]
    assert 0.1 + 0.2 + 0.3 > 0.3 + 0.2 + 0.1
    history, *_ = serve(policy, *columns, selector=Sequence([np.array(order)]))
    assert sorted(used(history)[0]) == [0, 1]
    assert ends(history) == [pytest.approx(0.6)]


def test_a_moving_average_grows_whatever_rounding_says():
    """Nobody takes 0.1 s, and a round from an instant that is no binary fraction lasts a little less by subtraction."""
    history, *_ = serve(MovingAverage(initial_s=0.1, growth=2.0), *FOUR, count=3)
    np.testing.assert_allclose(np.diff(ends(history), prepend=0), [0.1, 0.2, 0.4], rtol=1e-12)


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.8, 8.0), (0.81, 9.0), (0.28, 3.0), (1.0, 10.0), (0.001, 1.0), (0.7, 7.0)]
)
def test_the_quantile_is_the_smallest_number_that_so_many_do_not_exceed(quantile, expected):
    seen = PastRounds(rounds_s=[10.0], durations_s=[np.arange(10.0, 0.0, -1.0)], deadline_s=50.0)
    assert QuantileDeadline(quantile=quantile, initial_s=1.0).time_limit_s(seen) == expected
    of_25 = PastRounds(rounds_s=[25.0], durations_s=[np.arange(1.0, 26.0)], deadline_s=50.0)
    assert QuantileDeadline(quantile=0.28, initial_s=1.0).time_limit_s(of_25) == 7.0


def test_asking_clients_first_is_not_part_of_the_wait():
    """Asking both takes 2 s. Client 0 takes 3 s, so that mu = 3/4 of 3 + 1/4 of 4 = 3.25, too short for client 1."""

    class Asks(Sequence):
        def probe(self, view, rng):
            return Probe(client=view.client, asks="resources", up_bits=1.0)

    selector = Asks([np.array([0]), np.array([1])])
    history, *_ = serve(MovingAverage(initial_s=4.0), [1, 1], [1, 2], [1, 1], selector=selector, count=2)
    assert ends(history) == [5, 10.25]
    assert used(history) == [[0], []]


def test_a_loss_that_was_asked_for_is_known_of_updates_that_are_thrown_away():
    _, selector, learner, _ = serve(Deadline(deadline_s=5), *FOUR, count=2, minimum_updates=3, selector=Curious())
    np.testing.assert_array_equal(selector.reports[0].loss, [0.0, 1.0, np.nan, np.nan])
    np.testing.assert_array_equal(selector.views[1].last_loss, [0.0, 1.0, np.nan, np.nan])
    assert learner.aggregated == []


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (
            {"policy": {"kind": "quorum", "share": 0.5, "min_wait_s": 3.0, "max_wait_s": 2.0}},
            "min_wait_s = 3.0 is longer",
        ),
        (
            {"policy": {"kind": "adaptive-deadline", "initial_s": 3.0, "longest_s": 2.0}},
            "initial_s = 3.0 does not lie between shortest_s = 0.0 and longest_s = 2.0",
        ),
        ({"policy": {"kind": "k-fastest", "k": 0}}, "k: 0 is not allowed"),
        ({"policy": {"kind": "k-fastest", "k": 2, "over_selection": 0.9}}, "over_selection: 0.9 is not allowed"),
        ({"policy": {"kind": "k-fastest", "k": 2}, "late": "partial"}, "rounds with a longest duration"),
        ({"policy": "wait-for-all", "late": "partial"}, "rounds with a longest duration"),
        ({"policy": {"kind": "fedbuff", "concurrency": 3}, "late": "stale"}, "has a rule of its own"),
        ({"policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2}, "minimum_updates": 3}, "allowed: 1 to 2"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(rounds, said):
    with pytest.raises(ScenarioError, match=said):
        five(rounds)


@pytest.mark.parametrize(
    "rounds",
    [
        {"policy": {"kind": "k-fastest", "k": 2, "max_wait_s": 9.0}, "late": "partial"},
        {"policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2}, "minimum_updates": 2},
        {"policy": {"kind": "quorum", "share": 0.5, "min_wait_s": 2.0, "max_wait_s": 2.0}},
    ],
)
def test_rules_that_just_go_together_are_allowed(rounds):
    five(rounds)


def five(rounds):
    return timed(clients=5, rounds={"count": 1, **rounds})
