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
from tests.support.stories import ends, timeline, told, used
from tests.support.worlds import Curious, FirstWanted, Sequence, serve

# Four clients that take 3, 5, 8 and 12 s: downlink, work, uplink.
FOUR = ([1, 1, 2, 2], [1, 2, 3, 5], [1, 2, 3, 5])


def test_k_fastest_of_an_over_selected_cohort():
    """2 times 1.3 is 2.6, so 3 are asked for; the round ends with the second."""
    history, selector, *_ = serve(KFastest(k=2), *FOUR, selector=FirstWanted())
    assert selector.views[0].wanted == 3
    assert timeline(history) == told("""
        0 round 1 begins; client 0 starts from 0; client 1 starts from 0; client 2 starts from 0
        3 client 0 arrives: used
        5 client 1 arrives: used; client 2 is cut off: wasted-late; round 1 ends with model 1
    """)


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


SOME = {"selector": Sequence([np.array([0, 2])])}
LENGTHS = {
    "fewer than k": (KFastest(k=3), SOME, [8]),
    "k-fastest at its longest wait": (KFastest(k=3, max_wait_s=5.0), {}, [5, 5]),
    # Half of four have delivered after 5 s.
    "quorum": (Quorum(share=0.5, max_wait_s=9.0), {}, [5]),
    "quorum after a least wait": (Quorum(share=0.5, min_wait_s=8.0, max_wait_s=9.0), {}, [8]),
    "quorum at its longest wait": (Quorum(share=0.9, min_wait_s=2.0, max_wait_s=9.0), {}, [9]),
    "quorum whose waits are equal": (Quorum(share=0.5, min_wait_s=9.0, max_wait_s=9.0), {}, [9]),
    "the whole cohort before a least wait": (Quorum(share=0.5, min_wait_s=9.0, max_wait_s=9.5), SOME, [8]),
    # The half of the durations seen: beyond 4 s, so 6 s; of eight the fourth is beyond 6 s, so 9 s; of twelve the
    # sixth, and then of sixteen the eighth, is 8 s.
    "growth until the quantile is known": (QuantileDeadline(quantile=0.5, initial_s=4.0), {}, [4, 6, 9, 8, 8]),
    # The fastest of four takes 3 s.
    "a margin": (QuantileDeadline(quantile=0.25, window=1, initial_s=9.0, margin=1.5), {}, [9, 4.5, 4.5]),
    "a lower bound": (QuantileDeadline(quantile=0.25, initial_s=9.0, shortest_s=6.0), {}, [9, 6, 6]),
    "an upper bound": (QuantileDeadline(quantile=1.0, initial_s=4.0, longest_s=7.0), {}, [4, 6, 7, 7]),
    # Clients 2 and 3 are lost after 1 s, the others take up to 5 s: no round is longer than twice that.
    "lost clients": (QuantileDeadline(initial_s=8.0), {"leaves_s": [99, 99, 1, 1]}, [8.0, *[10.0] * 5]),
    # 20, 3/4 of 12 + 1/4 of 20 = 14, 3/4 of 12 + 1/4 of 14 = 12.5: longer than the slowest.
    "moving average": (MovingAverage(initial_s=20.0), {}, [12, 12, 12]),
    "moving average with a target share": (MovingAverage(initial_s=20.0, target_share=0.75), {}, [8, 8]),
    # Client 3 misses mu = 10 s, which stays (the paper) or becomes 15 s, in which everybody is done after 12 s.
    "moving average that is too short": (MovingAverage(initial_s=10.0), {}, [10, 10, 10]),
    "moving average that grows": (MovingAverage(initial_s=10.0, growth=1.5), {}, [10, 12, 12]),
    # Nobody takes 0.1 s, and a round from an instant that is no binary fraction lasts a little less by subtraction.
    "growth whatever rounding says": (MovingAverage(initial_s=0.1, growth=2.0), {}, [0.1, 0.2, 0.4]),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_lengths_of_rounds_worked_by_hand(case):
    """Whoever has delivered by the end of a round is used."""
    policy, options, lengths_s = LENGTHS[case]
    history, *_ = serve(policy, *FOUR, count=len(lengths_s), **options)
    np.testing.assert_allclose(np.diff(ends(history), prepend=0), lengths_s, rtol=1e-12)
    there = [0, 2] if options is SOME else [0, 1] if "leaves_s" in options else range(4)
    assert used(history) == [[client for client in there if (3, 5, 8, 12)[client] <= length] for length in lengths_s]


def test_moving_average_follows_the_rounds():
    policy, memory = MovingAverage(initial_s=20.0), PastRounds()
    for mu_s in (20.0, 14.0, 12.5, 12.125):
        assert policy.time_limit_s(memory) == mu_s
        memory.rounds_s.append(12.0)
        memory.durations_s.append(np.array([3.0, 5.0, 8.0, 12.0]))
        memory.deadline_s = mu_s


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.8, 8.0), (0.81, 9.0), (0.28, 3.0), (1.0, 10.0), (0.001, 1.0), (0.7, 7.0)]
)
def test_the_quantile_is_the_smallest_number_that_so_many_do_not_exceed(quantile, expected):
    seen = PastRounds(rounds_s=[10.0], durations_s=[np.arange(10.0, 0.0, -1.0)], deadline_s=50.0)
    assert QuantileDeadline(quantile=quantile, initial_s=1.0).time_limit_s(seen) == expected
    of_25 = PastRounds(rounds_s=[25.0], durations_s=[np.arange(1.0, 26.0)], deadline_s=50.0)
    assert QuantileDeadline(quantile=0.28, initial_s=1.0).time_limit_s(of_25) == 7.0


@pytest.mark.parametrize(("reach", "expected_s"), [(2.0, 6.0), (3.0, 9.0), (9.0, 15.0)])
def test_a_deadline_does_not_grow_beyond_the_reach_of_the_slowest_delivery(reach, expected_s):
    """The slowest delivery so far took 3 s, and the last deadline was 10 s: 1.5 of it, or 2 or 3 times 3 s."""
    lost = PastRounds(rounds_s=[10.0], durations_s=[np.full(4, np.inf)], deadline_s=10.0, slowest_s=3.0)
    assert QuantileDeadline(initial_s=1.0, reach=reach).time_limit_s(lost) == expected_s
    lost.slowest_s = 0.0
    assert QuantileDeadline(initial_s=1.0, reach=reach).time_limit_s(lost) == 15.0, "none has delivered so far"


def test_the_quantile_looks_back_as_far_as_its_window():
    """Two clients took 1 s, two 2 s and two 3 s: of all six the second is 1 s, of the last four 2 s, of two 3 s."""
    seen = PastRounds(rounds_s=[1.0, 2.0, 3.0], durations_s=[np.full(2, s) for s in (1.0, 2.0, 3.0)], deadline_s=9.0)
    for window, quantile, expected_s in ((3, 0.5, 2.0), (3, 0.3, 1.0), (2, 0.3, 2.0), (1, 0.3, 3.0)):
        policy = QuantileDeadline(quantile=quantile, window=window, initial_s=1.0)
        assert policy.time_limit_s(seen) == expected_s


def test_a_moving_average_grows_only_where_too_few_delivered():
    """3/4 of 12 s and 1/4 of 20 s are 14 s: that if three of four are enough, and half as much again if not."""
    seen = PastRounds(rounds_s=[12.0], durations_s=[np.array([3.0, 5.0, 12.0, np.inf])], deadline_s=20.0)
    for target_share, mu_s in ((0.75, 14.0), (0.76, 21.0)):
        assert MovingAverage(growth=1.5, target_share=target_share).time_limit_s(seen) == mu_s


def test_asking_clients_first_is_not_part_of_the_wait():
    """Asking both takes 2 s. Client 0 takes 3 s, so that mu = 3/4 of 3 + 1/4 of 4 = 3.25, too short for client 1."""

    class Asks(Sequence):
        def probe(self, view, rng):
            return Probe(client=view.client, asks="resources", up_bits=1.0)

    selector = Asks([np.array([0]), np.array([1])])
    history, *_ = serve(MovingAverage(initial_s=4.0), [1, 1], [1, 2], [1, 1], selector=selector, count=2)
    assert ends(history) == [5, 10.25]
    assert used(history) == [[0], []]


@pytest.mark.parametrize(
    "policy",
    [
        Deadline(deadline_s=2.0),
        KFastest(k=2, over_selection=2.0, max_wait_s=2.0),
        Quorum(share=0.5, min_wait_s=1.0, max_wait_s=2.0),
        QuantileDeadline(initial_s=2.0, growth=1.0),
        MovingAverage(initial_s=2.0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_an_empty_round_costs_time_and_leaves_the_model(policy):
    history, selector, learner, _ = serve(policy, *FOUR, count=3)
    assert ends(history) == [2, 4, 6]
    assert learner.aggregated == []
    assert history.column("rounds", "model_version").tolist() == [0, 0, 0]
    assert selector.reports[2].delivered.tolist() == [False] * 4
    assert selector.reports[2].duration_s.tolist() == [2.0] * 4
    assert set(history.column("participations", "fate")) == {"wasted-late"}


def test_too_few_updates_are_thrown_away():
    """Two arrive in each round of 5 s, and three are needed."""
    history, selector, learner, _ = serve(Deadline(deadline_s=5), *FOUR, count=2, minimum_updates=3)
    assert timeline(history)[5:11] == told("""
        3 client 0 arrives: wasted-unmerged
        5 client 1 arrives: wasted-unmerged; client 2 is cut off: wasted-late;
          client 3 is cut off: wasted-late; round 1 ends with model 0; round 2 begins
    """)
    assert learner.asked == [], "nobody trains for nothing"
    assert selector.reports[0].delivered.tolist() == [True, True, False, False], "the server has seen them arrive"
    assert selector.views[1].last_duration_s.tolist()[:2] == [3, 5]
    enough, *_ = serve(Deadline(deadline_s=5), *FOUR, minimum_updates=2)
    assert used(enough) == [[0, 1]]


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
