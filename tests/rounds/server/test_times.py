"""Rounds in worlds of fixed times, against expectations worked by hand."""

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import Scenario, simulate
from fedsim.clock import Clock
from fedsim.errors import PartError, ScenarioError, SelectorError
from fedsim.history import RoundEnd
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.aggregation.staleness import Polynomial
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Stale
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.selectors import Cohort
from tests.support.worlds import CountingLearner, Curious, Sequence, serve


def participations(history):
    return history.participations.to_pylist()


def test_a_participation_is_a_row():
    history, *_ = serve(WaitForAll(), [1, 2], [3, 1], [0.5, 4])
    first = participations(history)[0]
    sent = {"round": 1, "edge": None, "client": 0, "draws": 1, "weight": 0.5, "work": 1.0}
    times = {"start_s": 0.0, "downlink_s": 1.0, "compute_s": 3.0, "uplink_s": 0.5, "queue_s": 0.0, "end_s": 4.5}
    ended = {"downlink_bits": 1.0, "uplink_bits": 1.0, "outcome": "delivered", "cut_in": None, "fate": "used"}
    costs = {"start_version": 0, "served_round": 1, "staleness": 0, "epsilon": 0.0, "energy_j": 0.0}
    assert first == sent | times | ended | costs


@given(st.lists(st.integers(0, 999), min_size=3, max_size=3).filter(any), st.integers(0, 30), st.permutations([0, 1]))
def test_an_upload_that_ends_at_the_deadline_is_delivered(milliseconds, rounds_before, cohort):
    """Times in whole milliseconds: their sum in decimal is the deadline, whatever binary makes of it."""
    down, work, up = (value / 1000 for value in milliseconds)
    cohorts = [np.array([1])] * rounds_before + [np.array(cohort)]
    policy = Deadline(deadline_s=sum(milliseconds) / 1000)
    times = [down, 1e9], [work, 1e9], [up, 1e9]
    history, *_ = serve(policy, *times, selector=Sequence(cohorts), count=len(cohorts))
    *before, first, second = [row["outcome"] for row in participations(history)]
    assert before == ["late"] * rounds_before
    assert [first, second] == ["delivered", "late"][:: 1 if cohort == [0, 1] else -1]


def test_one_unit_later_than_a_tie_is_late():
    history, *_ = serve(Deadline(deadline_s=6.0), [1], [2], [3 + 1e-9])
    assert participations(history)[0]["outcome"] == "late"


def test_privacy_is_charged_when_an_upload_starts():
    """Client 0 delivers, 1 is cut during its upload, 2 while it computes: the first two have leaked."""
    budget = GeometricBudget(epsilon=10.0, eta=0.04)
    history, selector, learner, ledger = serve(
        Deadline(deadline_s=5), [1, 1, 1], [1, 1, 9], [1, 9, 1], budget=budget, count=2
    )
    first = 10.0 * (np.exp(0.04) - 1) * np.exp(-0.04)
    second = first * np.exp(-0.04)
    charged = history.column("participations", "epsilon")
    np.testing.assert_allclose(charged, [first, first, 0, second, second, 0], rtol=1e-12)
    np.testing.assert_allclose(ledger.spent, [first + second, first + second, 0], rtol=1e-12)
    assert selector.views[0].privacy_spent.tolist() == [0, 0, 0]
    np.testing.assert_allclose(selector.views[1].privacy_spent, [first, first, 0], rtol=1e-12)
    assert [release.index for _, _, release, _ in learner.asked] == [1, 2]


def test_prescribed_weights_draws_and_work_are_honoured():
    learner = CountingLearner(np.array([10, 30, 60]))
    cohorts = [
        Cohort(np.array([0, 1]), draws=np.array([2, 1])),
        Cohort(np.array([1, 2]), weights=np.array([0.5, 0.5]), work=np.array([1.0, 0.25])),
        Cohort(np.array([0, 1, 2]), weights=np.array([0.2, 0.3, 0.5])),
    ]
    up = [1, 1, 1]
    serve(WaitForAll(), [0, 0, 0], [0, 0, 0], up, selector=Sequence(cohorts), learner=learner, count=3)
    assert learner.aggregated[0] == ([0, 1], pytest.approx([20 / 50, 30 / 50]))
    assert learner.aggregated[1] == ([1, 2], [0.5, 0.5])
    assert learner.aggregated[2] == ([0, 1, 2], pytest.approx([0.2, 0.3, 0.5]))
    assert [work for _, _, _, work in learner.asked] == [1, 1, 1, 0.25, 1, 1, 1]


@pytest.mark.parametrize(
    ("prescribed", "last_s", "used"),
    [
        ([0.2, 0.3, 0.5], 9, [0.4, 0.6]),
        # As those of importance sampling, which are unbiased as they are.
        ([0.2, 0.5, 0.7], 1, [0.2, 0.5, 0.7]),
        ([0.2, 0.5, 0.7], 9, [0.4, 1.0]),
    ],
)
def test_those_that_delivered_carry_the_whole_prescribed_weight_whatever_it_is(prescribed, last_s, used):
    learner = CountingLearner(np.array([10, 10, 10]))
    cohort = Cohort(np.array([0, 1, 2]), weights=np.array(prescribed))
    serve(Deadline(deadline_s=3), [1, 1, last_s], [0] * 3, [0.5] * 3, selector=Sequence([cohort]), learner=learner)
    assert learner.aggregated == [([0, 1, 2][: len(used)], pytest.approx(used))]


def test_stale_updates_share_the_prescribed_weight_of_the_newest_cohort():
    """Of weights 0.2, 0.3 and 1.5 the third is late, and half a count beside 0.4 of a cohort that weighs 0.4."""
    learner = CountingLearner(np.array([10, 10, 10]))
    cohorts = [
        Cohort(np.array([0, 1, 2]), weights=np.array([0.2, 0.3, 1.5])),
        Cohort(np.array([0]), weights=np.array([0.4])),
    ]
    world = [1, 1, 2], [0] * 3, [0.5] * 3
    options = {"late": Stale(weight=Polynomial(a=1.0)), "selector": Sequence(cohorts), "learner": learner, "count": 2}
    serve(Deadline(deadline_s=2), *world, **options)
    assert learner.aggregated == [
        ([0, 1], pytest.approx([2.0 * 0.4, 2.0 * 0.6])),
        ([2, 0], pytest.approx([0.4 * 0.75 / 1.15, 0.4 * 0.4 / 1.15])),
    ]


def test_losses_are_computed_only_for_selectors_that_ask():
    _, plain, *_ = serve(WaitForAll(), [1, 1], [1, 1], [1, 1], count=2)
    _, curious, *_ = serve(WaitForAll(), [1, 1], [1, 1], [1, 1], selector=Curious(), count=2)
    assert np.isnan(plain.reports[0].loss).all()
    assert curious.reports[0].loss.tolist() == [0.0, 1.0]
    assert curious.views[1].last_loss.tolist() == [0.0, 1.0]


def test_endings():
    times = ([1], [1], [1])
    history, *_ = serve(WaitForAll(), *times, count=10, until_s=6.0)
    assert history.rounds.num_rows == 2, "the round that would start at 6 s does not start"
    learner = CountingLearner(np.array([1]), accuracies=[0.1, 0.9, 0.95])
    history, *_ = serve(WaitForAll(), *times, count=10, target_accuracy=0.9, learner=learner)
    assert history.rounds.num_rows == 2
    history, *_ = serve(WaitForAll(), *times, count=7, evaluate_every=3, evaluate_start=True)
    assert history.column("evaluations", "round").tolist() == [0, 3, 6, 7], "the last round is always evaluated"


def test_waiting_for_a_link_that_carries_nothing_is_refused():
    with pytest.raises(
        ScenarioError, match="round 1: the uplink of client 1 would take inf s; the policy waits for every client"
    ):
        serve(WaitForAll(), [1, 1], [1, 1], [1, np.inf])
    history, *_ = serve(Deadline(deadline_s=3), [1, 1], [1, 1], [1, np.inf])
    assert [row["outcome"] for row in participations(history)] == ["delivered", "late"]
    with pytest.raises(ScenarioError, match="would take nan s"):
        serve(Deadline(deadline_s=3), [np.nan], [1], [1])


def test_nobody_is_refused():
    with pytest.raises(SelectorError, match=r"returned no client in round 1.*\n  allowed: one candidate at"):
        serve(WaitForAll(), [1], [1], [1], selector=Sequence([np.array([], dtype=int)]))


class Ticking(RoundPolicy):
    """Looks once a second whether more clients have delivered than it has sent."""

    def wait(self, server, round_):
        while round_.size < 99:
            yield round_.limit(1.0)
        return RoundEnd.ENOUGH


def test_a_policy_that_no_event_can_end_is_refused_though_time_goes_on():
    tables = {"name": "t", "crowd": {"clients": 2}, "network": "pause-two-speed", "selector": "all", "learning": "none"}
    scenario = Scenario(**tables, devices={"compute": "zero"}, rounds={"count": 3, "until_s": 5.0, "policy": Ticking()})
    with pytest.raises(PartError, match=r"Ticking.wait waits for ever: no client is in flight") as caught:
        simulate(scenario, store=False)
    assert (caught.value.round, caught.value.time_s) == (1, 10.0), "noticed at twice the end of the run"


class ForNothing(RoundPolicy):
    def wait(self, server, round_):
        yield server.env.event()


def test_a_policy_without_events_is_refused_where_its_last_client_has_ended():
    """Its clients deliver after 3 and 6 s."""
    with pytest.raises(PartError, match="2 of the round's 2 have delivered") as caught:
        serve(ForNothing(), [1, 2], [1, 2], [1, 2])
    assert (caught.value.round, caught.value.time_s) == (1, 6.0)


def test_a_round_remembers_that_a_limit_has_passed_and_no_limits():
    env = Clock()
    round_ = Round(env, 1, 1, PastRounds(), math.inf)
    round_.limit(5.0)
    assert round_.ended_by() is RoundEnd.ENOUGH
    held = [weakref.ref(round_.limit(1.0)) for _ in range(3)]
    env.run(until=2.0)
    gc.collect()
    assert round_.ended_by() is RoundEnd.DEADLINE
    assert [one() for one in held] == [None] * 3
