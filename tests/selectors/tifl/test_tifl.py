"""TiFL: profiling, tiers, credits and policies, by hand."""

import math

import numpy as np
import pytest

from fedsim.selectors.tifl.tifl import Profile, Tifl, ranked
from tests.support.views import answers_of, check_shares, reports_of, rng, view_of


def profiled(selector, latency_s):
    """Answer the selector's first question and let it select once."""
    view = view_of(len(latency_s))
    asked = selector.probe(view, rng()).client
    half = np.asarray(latency_s, dtype=float)[asked] / 2
    heard = view_of(len(latency_s), answers=answers_of(asked, compute_s=half, uplink_s=half))
    return selector, selector.select(heard, rng()).client.tolist()


def test_tiers_are_equal_parts_of_the_clients_by_latency():
    profile = Profile(3, tries=1, timeout_s=None)
    profile.make_room(8)
    profile.learn(np.arange(7), np.array([5.0, 1.0, 4.0, np.nan, 2.0, 3.0, 6.0]))
    profile.sort()
    # 1, 4 | 5, 2 | 0, 6 by rank 0..5; client 3 is a dropout and 7 has not been profiled.
    assert profile.tier.tolist() == [2, 0, 1, -1, 0, 1, 2, -1]


def test_a_timeout_counts_with_t_max_and_several_tries_with_their_mean():
    profile = Profile(2, tries=2, timeout_s=10.0)
    profile.make_room(3)
    profile.learn(np.arange(3), np.array([2.0, 7.0, np.nan]))
    assert profile.open(np.arange(3)).all()
    profile.learn(np.arange(3), np.array([np.nan, 7.0, np.nan]))
    assert not profile.open(np.arange(3)).any()
    profile.sort()
    # Means: 0 has (2 + 10) / 2 = 6, 1 has 7, 2 never answered.
    assert profile.tier.tolist() == [0, 1, -1]


def test_the_fast_and_the_slow_policy_stay_in_their_tiers():
    latency_s = [9, 1, 8, 2, 7, 3, 6, 4, 5, 10]
    assert profiled(Tifl(2, policy="fast"), latency_s)[1] == [1, 3]
    assert profiled(Tifl(2, policy="slow"), latency_s)[1] == [0, 9]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("options", "chance"),
    [
        ({"policy": "uniform"}, [0.2] * 5),
        ({"policy": "random"}, [0.7, 0.1, 0.1, 0.05, 0.05]),
        ({"tiers": 2, "probabilities": [1, 3]}, [0.25, 0.75]),
        ({"policy": "adaptive"}, [0.2] * 5),
    ],
)
def test_tiers_are_drawn_with_the_policy_s_probabilities(options, chance):
    selector, _ = profiled(Tifl(1, **options), np.arange(10))
    draws = rng(3)
    check_shares(lambda: selector.select(view_of(10), draws).client * len(chance) // 10, chance)


def test_ranks_worked_by_hand():
    """(n - rank) / (n (n + 1) / 2): three tiers share 6 parts, two of them 3."""
    accuracy = np.array([0.5, 0.3, 0.9])
    assert ranked(accuracy, np.ones(3, bool)) == pytest.approx(np.array([2, 3, 1]) / 6)
    assert ranked(accuracy, np.array([True, False, True])) == pytest.approx(np.array([2, 0, 1]) / 3)
    # Of a tier nothing is known: it keeps 1/3, and the others share 2/3 in parts of two and one.
    assert ranked(np.array([0.5, np.nan, 0.3]), np.ones(3, bool)) == pytest.approx(np.array([2, 3, 4]) / 9)
    assert ranked(np.full(2, np.nan), np.ones(2, bool)).tolist() == [0.5, 0.5]
    assert ranked(accuracy, np.zeros(3, bool)) == pytest.approx(np.array([2, 3, 1]) / 6)
    among_equals = ranked(np.where(np.arange(40) % 2, 0.5, 0.25), np.ones(40, bool)) * 820
    assert among_equals.tolist() == pytest.approx([part for k in range(20) for part in (40 - k, 20 - k)])


def test_accuracy_is_minus_the_mean_last_loss_of_a_tier():
    selector, _ = profiled(Tifl(1, tiers=2), [1, 2, 3, 4])
    selector.observe(reports_of([0, 1, 2], loss=[1.0, 3.0, 5.0], delivered=[True, True, False]))
    selector.observe(reports_of([0], loss=[2.0]))
    assert selector.accuracy()[0] == -2.5
    assert math.isnan(selector.accuracy()[1])


def second_tier_share(losses):
    """Return how often the slow tier is drawn after two intervals with these losses of the fast and the slow one."""
    selector, _ = profiled(Tifl(1, tiers=2, interval=1), [1, 2])
    for number, (fast, slow) in enumerate(losses, start=2):
        selector.observe(reports_of([0, 1], loss=[fast, slow], number=number))
        selector.select(view_of(2, round=number), rng(number))
    rounds, generator = 1_500, rng(1)
    return np.mean([selector.select(view_of(2), generator).client[0] for _ in range(rounds)])


@pytest.mark.statistical
def test_probabilities_change_when_the_current_tier_has_not_become_better():
    tolerance = 5 * math.sqrt(0.25 / 1_500)
    # Both stand still: the slow tier has the larger loss and gets 2/3.
    assert abs(second_tier_share([(1.0, 2.0), (1.0, 2.0)]) - 2 / 3) < tolerance
    # No loss is known in any round: nothing ever changes.
    assert abs(second_tier_share([(np.nan, np.nan)] * 2) - 1 / 2) < tolerance


def test_while_accuracy_rises_nothing_changes():
    selector, _ = profiled(Tifl(1, tiers=2, interval=1, improvement="absolute"), [1, 2])
    for number in range(2, 30):
        selector.observe(reports_of([0, 1], loss=[1 / number, 5 / number], number=number))
        selector.select(view_of(2, round=number), rng(number))
        assert selector._chance.tolist() == [0.5, 0.5]
    selector.observe(reports_of([0, 1], loss=[1.0, 5.0]))
    selector.select(view_of(2, round=30), rng())
    assert selector._chance.tolist() == [1 / 3, 2 / 3]


def test_credits_limit_how_often_a_tier_is_drawn():
    selector, first = profiled(Tifl(1, tiers=2, credits=3), [1, 2])
    drawn = first + [int(selector.select(view_of(2), rng(seed)).client[0]) for seed in range(5)]
    assert sorted(drawn) == [0, 0, 0, 1, 1, 1]
    # All are spent: the round takes place all the same.
    assert selector.select(view_of(2), rng()).client.size == 1


def test_a_small_tier_is_filled_up_from_its_neighbours_the_faster_first():
    """Tiers of two, the third is drawn and one of its clients is there: then comes the second tier, then the fourth."""
    selector, _ = profiled(Tifl(3, tiers=5, policy="uniform"), np.arange(10))
    selector._chance = np.array([0, 0, 1.0, 0, 0])
    assert selector.select(view_of([0, 2, 4, 6, 9], clients=10), rng()).client.tolist() == [2, 4, 6]
    assert selector.select(view_of([0, 2, 4, 6, 9], clients=10, wanted=2), rng()).client.tolist() == [2, 4]
    assert selector.select(view_of([4], clients=10), rng()).client.tolist() == [4]
    assert selector.select(view_of([0, 1], clients=10), rng()).client.tolist() == [0, 1]


def test_profiling_in_rounds_takes_those_that_were_profiled_least():
    selector, seen = Tifl(2, tiers=2, profiling="rounds", policy="fast"), []
    assert selector.probe(view_of(5), rng()) is None
    for number in range(1, 4):
        client = selector.select(view_of(5, round=number), rng(number)).client
        seen += client.tolist()
        selector.observe(reports_of(client, duration_s=client + 1.0, number=number))
    assert set(seen) == set(range(5))
    assert selector.select(view_of(5, round=4), rng()).client.tolist() in ([0, 1], [0, 2], [1, 2])


def test_only_newcomers_are_asked():
    selector, _ = profiled(Tifl(2), [1, 2, 3])
    assert selector.probe(view_of(3), rng()) is None
    probe = selector.probe(view_of(5), rng())
    assert probe.client.tolist() == [3, 4]
    assert probe.asks == "resources"
    asking = Tifl(2, down_bits=3.0, up_bits=5.0, timeout_s=7.0).probe(view_of(5), rng())
    assert (asking.down_bits, asking.up_bits, asking.wait_s, asking.samples) == (3.0, 5.0, 7.0, None)
    assert Tifl(2, timeout_s=None).probe(view_of(5), rng()).wait_s is None


def test_probabilities_are_looked_at_every_so_many_rounds():
    """I = 3: losses are known in round 4 and compared in round 7; an asynchronous server selects twice in a round."""
    selector, _ = profiled(Tifl(1, tiers=2, interval=3), [1, 2])
    changed = []
    for number in range(2, 10):
        selector.observe(reports_of([0, 1], loss=[1.0, 2.0], number=number))
        for _ in range(2):
            selector.select(view_of(2, round=number), rng(number))
        changed.append(selector._chance[0] != 0.5)
    assert changed == [False] * 5 + [True] * 3


def test_latency_is_work_and_upload():
    selector, view = Tifl(1, tiers=3, policy="fast"), view_of(3)
    asked = selector.probe(view, rng()).client
    heard = answers_of(asked, compute_s=[1.0, 2.0, 3.0], uplink_s=[9.0, 2.0, 2.0])
    assert selector.select(view_of(3, answers=heard), rng()).client.tolist() == [1]


def test_tiers_without_credits_are_not_ranked():
    """Three tiers that stand still; the worst has no credit, so that the other two share three parts."""
    selector, _ = profiled(Tifl(1, tiers=3, interval=1, credits=9), [1, 2, 3])
    selector._credits[2] = 0
    for number in (2, 3):
        selector.observe(reports_of([0, 1, 2], loss=[1.0, 2.0, 3.0], number=number))
        selector.select(view_of(3, round=number), rng(number))
    assert selector._chance == pytest.approx(np.array([1, 2, 0]) / 3)


def test_whoever_leaves_while_it_is_asked_is_asked_again_and_whoever_is_silent_is_not():
    """Asked are 0 to 3; 1 has left when the answers of 0 and 3 are in, and 2 is there but has not answered."""
    selector = Tifl(1, tiers=2)
    asked = selector.probe(view_of(4), rng()).client
    assert asked.tolist() == [0, 1, 2, 3]
    answers = answers_of([0, 3], compute_s=[1.0, 2.0], uplink_s=[1.0, 2.0])
    selector.select(view_of([0, 2, 3], clients=4, answers=answers), rng())
    assert selector.probe(view_of(4, round=2), rng()).client.tolist() == [1]
    assert selector._profile.tier.tolist() == [0, -1, -1, 1]


@pytest.mark.parametrize(
    ("improvement", "changed"), [("absolute", [False, False, True]), ("relative", [False, True, True])]
)
def test_a_tier_is_compared_with_itself_or_with_the_mean_of_all(improvement, changed):
    """The fast tier alone is drawn. Its loss falls by 0.1 where the mean falls by 0.2, and then rises."""
    selector, _ = profiled(Tifl(1, tiers=2, interval=1, improvement=improvement), [1, 2])
    found = []
    for number, (fast, slow) in enumerate([(1.0, 2.0), (0.9, 1.7), (1.1, 1.7)], start=2):
        selector._chance, selector._tier = np.array([1.0, 0.0]), 0
        selector.observe(reports_of([0, 1], loss=[fast, slow], number=number))
        selector.select(view_of(2, round=number), rng(number))
        found.append(selector._chance.tolist() != [1.0, 0.0])
    assert found == changed


def test_the_round_s_time_limit_is_t_max_unless_another_is_given():
    """Latencies 1 to 6 and a limit of 4: clients 4 and 5 are dropouts, selected last."""
    for options, dropouts in (({}, [4, 5]), ({"timeout_s": 2.0}, [2, 3, 4, 5]), ({"timeout_s": 9.0}, [])):
        selector, view = Tifl(4, tiers=2, **options), view_of(6, deadline_s=4.0)
        asked = selector.probe(view, rng()).client
        half = (asked + 1.0) / 2
        heard = answers_of(asked, compute_s=half, uplink_s=half)
        client = selector.select(view_of(6, deadline_s=4.0, answers=heard), rng()).client.tolist()
        assert np.flatnonzero(selector._profile.tier < 0).tolist() == dropouts
        assert client == [0, 1, 2, 3] or not dropouts or len(dropouts) > 2


def test_an_evaluation_asks_all_clients_in_tiers_every_so_many_rounds():
    """I = 3, after a round for the profile: checks precede the second selection and those after every third one."""
    selector, _ = profiled(Tifl(1, tiers=2, interval=3, evaluation="probe", timeout_s=8.0), [1, 2, 30])
    asked, changed = [], []
    for number in range(2, 9):
        view = view_of(3, round=number)
        probe = selector.probe(view, rng(number))
        if probe is not None:
            assert (probe.client.tolist(), probe.asks, probe.down_bits, probe.wait_s) == ([0, 1], "loss", None, 8.0)
            view = view_of(3, round=number, answers=answers_of([0, 1], loss=[1.0, 2.0]))
        selector.select(view, rng(number))
        selector.observe(reports_of([0], loss=[9.0], number=number))  # is not used
        asked.append(probe is not None)
        changed.append(selector._chance.tolist() != [0.5, 0.5])
    assert asked == [True, False, True, False, False, True, False]
    assert changed == [False, False, True, True, True, True, True]
    assert selector.accuracy().tolist() == [-1.0, -2.0]
    static, _ = profiled(Tifl(1, tiers=2, policy="fast", evaluation="probe"), [1, 2])
    assert static.probe(view_of(2, round=2), rng()) is None
