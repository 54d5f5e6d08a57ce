"""Metrics of a user's own that do not hold to the contract, and what a run says of them."""

import json
import math
from typing import ClassVar

import numpy as np
import pytest

from fedsim import run, simulate
from fedsim.errors import FedsimError, PartError
from fedsim.learning import MLP, TASKS, Digits, LocalTraining, Metric, TrainingSetup
from fedsim.learning.executors.trials import check_fit
from tests.support.short_runs import of_learning


class Constant(Metric):
    """What each sample adds is 0."""

    def sums(self, scores, targets):
        return scores[:, :1] * 0


class Several(Constant):
    def value(self, sums, samples):
        return np.ones(2)


class NoNumber(Constant):
    def value(self, sums, samples):
        return math.nan


class Endless(Constant):
    def value(self, sums, samples):
        return np.float32(np.inf)


class Wide(Metric):
    def sums(self, scores, targets):
        return scores


class Raising(Constant):
    def value(self, sums, samples):
        return 1 / 0


class Loss(Constant):
    name: ClassVar = "loss"


class Unnamed(Constant):
    name: ClassVar = ""


def scenario(*metrics):
    learning = {
        "data": {"kind": "digits", "train_limit": 60},
        "model": {"kind": "mlp", "hidden": [3]},
        "task": {"kind": "classification", "metrics": metrics},
    }
    return of_learning(learning, rounds=2, results={"evaluate_clients": "last"})


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (Several(), r"Several\.value returned .*a number; nan where there is none"),
        (Wide(), r"metrics: Wide: sums of 10 numbers for each sample are not allowed; allowed: 1, as its width says"),
        (Loss(), r"Loss\.name .*'loss'.*a text, neither empty nor 'loss'"),
        (Unnamed(), r"Unnamed\.name .*''.*a text, neither empty nor 'loss'"),
    ],
)
def test_what_is_no_metric_is_refused_by_name(metric, words):
    with pytest.raises(FedsimError, match=f"(?s){words}"):
        simulate(scenario(metric), store=False)


def test_a_name_that_two_metrics_have_is_refused_once():
    """Before any executor is built, of which ``auto`` would try several."""
    task = TASKS.make({"kind": "classification", "metrics": ["accuracy", "accuracy"]})
    setup = TrainingSetup(MLP(hidden=(3,)), Digits(train_limit=60).load(), LocalTraining(), seed=0, task=task)
    with pytest.raises(FedsimError, match=r"^learning.task.metrics: the names accuracy, accuracy are not allowed"):
        check_fit(setup)


def test_what_fails_at_time_0_fails_before_the_first_round():
    with pytest.raises(PartError) as failed:
        simulate(scenario(Raising()).replace({"results.evaluate_clients": "never"}), store=False)
    assert (failed.value.round, failed.value.time_s) == (0, 0.0)
    assert "round: before the first" in str(failed.value)


def test_what_is_no_number_is_null_in_tables_and_in_the_summary(tmp_path):
    history = run(scenario("accuracy", NoNumber(), Endless()), tmp_path / "run", store=False)
    for table in (history.evaluations, history.client_evaluations):
        rows = [dict(row) for row in table.column("metrics").to_pylist()]
        assert {row["NoNumber"] for row in rows} == {None}
        assert {row["Endless"] for row in rows} == {math.inf}
    assert np.isnan(history.metric("NoNumber")).all()

    def refused(word):
        raise AssertionError(f"{word} is no JSON")

    summary = json.loads((tmp_path / "run" / "summary.json").read_text(), parse_constant=refused)
    assert [summary["final_metrics"][name] for name in ("NoNumber", "Endless")] == [None, None]
