"""Which models are evaluated, when, and on whose samples: in worlds whose times are written down."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import PartError
from fedsim.learning import Schedule
from fedsim.results import summarise
from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.asynchronous import FedAsync
from tests.support.short_runs import of_learning
from tests.support.stories import rows
from tests.support.worlds import CountingLearner, available_in, serve

TIMES_S = [1], [1], [1]

JUDGED = {"model": "server", "judged_on": "part-of-test-set"}


def evaluated(history):
    return rows(history.evaluations, "round", "time_s", "model_version")


def test_the_first_model_is_evaluated_at_time_0_and_no_event_moves():
    with_start, _, learner, _ = serve(WaitForAll(), *TIMES_S, count=2, evaluate_start=True)
    without, *_ = serve(WaitForAll(), *TIMES_S, count=2)
    assert evaluated(with_start) == [(0, 0.0, 0), (1, 3.0, 1), (2, 6.0, 2)]
    assert learner.evaluated == [0, 1, 2]
    assert evaluated(without) == evaluated(with_start)[1:]
    assert with_start.rounds.equals(without.rounds)
    assert with_start.participations.equals(without.participations)


@pytest.mark.parametrize("edges", [None, Edges(grouping={"kind": "order", "count": 2}, backhaul="none")])
@pytest.mark.parametrize("policy", [WaitForAll(), FedAsync(concurrency=2)])
def test_asynchronous_servers_and_clouds_begin_with_it_too(policy, edges):
    history, *_ = serve(policy, [1, 1], [1, 2], [1, 1], count=2, edges=edges, evaluate_start=True)
    assert evaluated(history)[0] == (0, 0.0, 0)
    assert history.column("evaluations", "round").tolist() == [0, 1, 2]


def test_the_model_at_the_end_of_a_budget_of_time_is_evaluated_although_it_is_not_due():
    """Rounds of 3 s: at 7 s the server has the model of 6 s, and the last round is over at 9 s."""
    history, *_ = serve(WaitForAll(), *TIMES_S, count=7, until_s=7.0, evaluate_every=5)
    assert evaluated(history) == [(2, 6.0, 2), (3, 9.0, 3)]
    begun, *_ = serve(WaitForAll(), *TIMES_S, count=7, until_s=2.0, evaluate_every=5)
    assert evaluated(begun) == [(1, 3.0, 1)], "the first model is left out on request"


def test_a_first_model_that_reaches_the_target_does_not_end_the_run():
    learner = CountingLearner(np.array([1]), accuracies=[0.9, 0.1, 0.9])
    options = {"count": 5, "target_accuracy": 0.8, "learner": learner, "evaluate_start": True}
    history, *_ = serve(WaitForAll(), *TIMES_S, **options)
    assert history.rounds.num_rows == 2
    assert history.time_to_accuracy(0.8) == 0.0


def test_a_run_without_a_round_has_the_first_evaluation_alone():
    """The server crashes at 0.5 s, before the first round at 1 s could start, and is down until the end."""
    restart = ServerRestart(at_s=(0.5,), down_s=10.0)
    options = {
        "presence": available_in([(1.0, 50.0)]),
        "server_restart": restart,
        "until_s": 5.0,
        "evaluate_start": True,
    }
    history, _, learner, _ = serve(WaitForAll(), *TIMES_S, **options, evaluate_of_clients="last")
    assert history.rounds.num_rows == 0
    assert evaluated(history) == [(0, 0.0, 0)]
    assert history.column("client_evaluations", "round").tolist() == [0]
    assert learner.evaluated_clients == [0]


@pytest.mark.parametrize(
    ("of_clients", "start", "expected"),
    [
        ("never", True, []),
        ("last", True, [5]),
        ("last", False, [5]),
        (2, True, [0, 2, 4, 5]),
        (2, False, [1, 3, 5]),
        (1, True, [0, 1, 2, 3, 4, 5]),
        (9, True, [0, 5]),
    ],
)
def test_clients_are_evaluated_with_the_last_one_or_the_first_each_nth_and_the_last(of_clients, start, expected):
    history, _, learner, _ = serve(
        WaitForAll(), *TIMES_S, count=5, evaluate_start=start, evaluate_of_clients=of_clients
    )
    assert learner.evaluated_clients == expected
    found = [] if history.client_evaluations is None else history.column("client_evaluations", "round").tolist()
    assert found == expected


def test_a_target_that_ends_the_run_is_followed_by_the_evaluation_on_clients():
    learner = CountingLearner(np.array([1, 2]), accuracies=[0.1, 0.9, 0.9])
    options = {"target_accuracy": 0.8, "learner": learner, "evaluate_of_clients": "last"}
    history, *_ = serve(Deadline(deadline_s=4), [1, 1], [1, 1], [1, 1], count=9, **options)
    assert history.rounds.num_rows == 2
    assert history.client_evaluations.to_pylist() == [
        {"round": 2, "client": 0, "samples": 1, "accuracy": 0.0, "loss": 1.0, "metrics": None, **JUDGED},
        {"round": 2, "client": 1, "samples": 2, "accuracy": 0.5, "loss": 1.0, "metrics": None, **JUDGED},
    ]


class Negative(Schedule):
    """Its factors are wrong in round 2."""

    def factors(self, version, steps):
        return np.full(steps, -1.0 if version == 1 else 1.0)


def test_what_fails_at_a_later_evaluation_is_placed_where_its_round_was_over():
    """With an evaluation after each fourth round the trainings of round 2 run at the end of round 4."""
    places = []
    for every in (1, 4):
        learning = {
            "data": {"kind": "digits", "train_limit": 60},
            "model": {"kind": "mlp", "hidden": [3]},
            "local": {"schedule": Negative()},
        }
        scenario = of_learning(learning, rounds=4, results={"evaluate_every": every})
        with pytest.raises(PartError) as failed:
            simulate(scenario, store=False, executor="sequential")
        places.append((failed.value.round, failed.value.time_s, failed.value.client))
    assert places[0] == places[1]
    assert places[0][0] == 2


@pytest.mark.parametrize(("rounds", "every"), [*itertools.product([3, 7, 8, 11], [1, 10_000]), (100, 1), (400, 10_000)])
def test_a_budget_of_as_many_rounds_holds_these_whatever_the_clock_makes_of_their_sum(rounds, every):
    """Eight times 0.1 s are less than 0.8 s, and three times 0.1 s more than 0.3 s."""
    learner = CountingLearner(np.ones(1), accuracies=[(i % 90) / 100 for i in range(rounds + 2)])
    history, *_ = serve(
        WaitForAll(), [0.05], [0.03], [0.02], learner=learner, count=10**6, until_s=rounds / 10, evaluate_every=every
    )
    assert history.rounds.num_rows == rounds
    summary = summarise(replace(history, until_s=rounds / 10))
    assert summary["final_s"] == history.column("rounds", "end_s")[-1]
    assert summary["final_accuracy"] == history.column("evaluations", "accuracy")[-1]
