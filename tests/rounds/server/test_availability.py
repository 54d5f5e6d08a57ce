"""What availability does to rounds: candidates, waiting, leaving in mid-task."""

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, Knowledge, WaitForAll
from tests.support.short_runs import timed
from tests.support.worlds import Sequence, available_in, serve


def test_every_column_is_cut_alike():
    budget = GeometricBudget(epsilon=10.0, eta=0.04)
    there = available_in([(0, 3)], [(0, 1000)], [(0, 1000)])
    selector = Sequence([np.array([0, 2]), np.array([1])])
    serve(WaitForAll(), [1] * 3, [1] * 3, [1] * 3, presence=there, selector=selector, budget=budget, count=2)
    view = selector.views[1]
    assert (view.round, view.time_s, view.clients, view.total_samples) == (2, 3.0, 3, 30)
    assert view.client.tolist() == [1, 2]
    assert view.samples.tolist() == [10, 10]
    assert view.participations.tolist() == [0, 1]
    np.testing.assert_array_equal(view.last_duration_s, [np.nan, 3.0])
    assert view.last_loss.size == 2
    assert view.privacy_spent[0] == 0 < view.privacy_spent[1]
    assert view.features.shape == (2, 0)
    cut = Knowledge(np.array([1, 2, 3]), None, np.array([[4.0], [5.0], [6.0]])).view(1, 0.0, np.array([0, 2]))
    assert cut.features.tolist() == [[4.0], [6.0]]
    assert not cut.samples.flags.writeable


def test_the_earlier_of_dropout_and_leaving_counts_and_a_tie_is_delivered():
    there = available_in([(0, 4)], [(0, 4)], [(0, 6)])
    history, *_ = serve(
        Deadline(deadline_s=10), [1] * 3, [2] * 3, [3] * 3, presence=there, leaves_s=[2.5, np.inf, np.inf]
    )
    rows = history.participations.to_pylist()
    assert [(row["outcome"], row["end_s"]) for row in rows] == [("dropped", 2.5), ("dropped", 4.0), ("delivered", 6.0)]


def test_a_run_ends_when_nobody_comes_before_its_end():
    there = available_in([(0, 6)])
    history, *_ = serve(WaitForAll(), [1], [1], [1], presence=there, count=9, until_s=500.0, evaluate_every=5)
    assert history.column("rounds", "start_s").tolist() == [0, 3]
    assert history.column("evaluations", "round").tolist() == [2], "the last round is evaluated"
    with pytest.raises(ScenarioError, match="no round can start"):
        serve(WaitForAll(), [1], [1], [1], presence=available_in([]))
    with pytest.raises(ScenarioError, match=r"rounds\.until_s"):
        serve(WaitForAll(), [1], [1], [1], presence=available_in([(90, 99)]), until_s=50.0)


def test_a_policy_that_waits_for_everyone_does_not_fit_clients_that_leave():
    leaving, staying = (
        {"kind": "markov", "mean_on_s": 2.0, "mean_off_s": 20.0},
        {"kind": "bernoulli", "probability": 0.5},
    )
    with pytest.raises(ScenarioError, match=r"rounds\.policy.*\n?.*devices\.availability"):
        timed(rounds={"count": 2}, devices={"compute": "zero", "availability": leaving})
    timed(rounds={"count": 2}, devices={"compute": "zero", "availability": staying})


def test_the_views_of_a_full_crowd_are_not_copied():
    knowledge = Knowledge(np.array([1, 2]), None, None)
    assert np.shares_memory(knowledge.view(1, 0.0).samples, knowledge.samples)
