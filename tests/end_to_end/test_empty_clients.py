"""Clients without samples: refused, or allowed and then idle for the whole run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError
from fedsim.learning import MLP, LocalTraining, TrainingSetup
from fedsim.learning.supervised import SupervisedLearner
from tests.support.plain_learner import LAYOUT, HalfWay, learner_of
from tests.support.short_runs import DIGITS
from tests.support.tiny_images import Tiny

SIZES = [40, 0, 30, 0, 20, 10]
SCENARIO = DIGITS.replace(
    {
        "learning.split": {"kind": "sizes", "samples": SIZES},
        "learning.allow_empty": True,
        "selector": "all",
        "results.audit": True,
    }
)


def scenario(changes: dict[str, Any]) -> Scenario:
    return SCENARIO.replace(changes)


def test_they_are_refused_unless_they_are_allowed() -> None:
    with pytest.raises(ScenarioError, match=r"client 1 has 0 sample\(s\).*or learning.allow_empty = true"):
        simulate(scenario({"learning.allow_empty": False}))
    with pytest.raises(ScenarioError, match="none of the 6 clients has samples"):
        simulate(scenario({"learning.split.samples": 0}))


def test_the_others_learn_as_a_crowd_of_their_own() -> None:
    """The four with samples give what FedAvg by samples gives: 40, 30, 20 and 10 of 100."""
    history = simulate(scenario({}))
    rows = history.participations.to_pydict()
    assert sorted(set(rows["client"])) == [0, 2, 4, 5]
    weight = dict(zip(rows["client"], rows["weight"], strict=True))
    assert weight == pytest.approx({0: 0.4, 2: 0.3, 4: 0.2, 5: 0.1})
    assert history.rounds.column("candidates").to_pylist() == [4, 4, 4]
    assert history.rounds.column("delivered").to_pylist() == [4, 4, 4]


BERNOULLI = {"kind": "bernoulli", "probability": 0.5, "retry_s": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds.policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2}},
        {"rounds.policy": {"kind": "safa", "share": 0.5, "max_wait_s": 1.0}},
        {"rounds.edges": {"grouping": {"kind": "given", "edge": [0, 1, 0, 1, 0, 0]}, "backhaul": "none"}},
        {"rounds.edges": {"grouping": {"kind": "latency", "count": 2}, "backhaul": "none"}},
        {"rounds.weights": "uniform"},
        {"devices.availability": BERNOULLI, "rounds.policy": {"kind": "deadline", "deadline_s": 1.0}},
        {"selector": {"kind": "uniform", "cohort": 5}},
        {"selector": {"kind": "md", "cohort": 3}},
        {"selector": {"kind": "clustered-size", "cohort": 3}},
        {"selector": {"kind": "oort", "cohort": 3}},
        {"selector": {"kind": "tifl", "cohort": 2, "tiers": 2}},
        {"selector": {"kind": "sa-pause", "cohort": 2, "iterations": 20}},
        {"selector": {"kind": "pow-d", "cohort": 2, "candidates": 6}},
        {"learning.split": {"kind": "log-normal", "sigma": 3.0, "mean_samples": 50.0}},
    ],
    ids=lambda changes: str(next(iter(changes.values())))[:40],
)
def test_under_no_policy_and_by_no_selector_is_one_sent(changes: dict[str, Any]) -> None:
    """The audit is on; each run has as many candidates as there are clients with samples, or fewer."""
    history = simulate(scenario(changes))
    rows = history.participations.to_pydict()
    assert rows["client"]
    samples = history.clients.column("samples").to_pylist()
    assert all(samples[client] for client in rows["client"])
    assert np.max(history.rounds.column("candidates").to_pylist()) <= sum(map(bool, samples))


def test_with_batch_normalisation_one_sample_is_none() -> None:
    """A batch takes two samples there: the client with one does no work, as the one without any."""
    setup = TrainingSetup(MLP(), Tiny().load(), LocalTraining(), seed=0)
    rows, layout = [np.arange(3), np.arange(3, 4), np.arange(0)], replace(LAYOUT, smallest_batch=2)

    def learner(*, allow_empty: bool) -> SupervisedLearner:
        return learner_of(setup, HalfWay([[0]]), rows, layout, allow_empty=allow_empty)

    assert learner(allow_empty=True).work_samples(np.arange(3)).tolist() == [3, 0, 0]
    with pytest.raises(ScenarioError, match=r"client 1 has 1 sample\(s\), too few for one batch"):
        learner(allow_empty=False)
