"""A server that refuses updates that are no numbers, with a client whose samples are too large."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from fedsim import Component, Scenario, simulate
from fedsim.errors import ScenarioError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(80, 5)).astype("float32"), RNG.integers(0, 2, 80)
X[:20] *= 1e30  # the samples of client 0


class ByRows(Component):
    """Client i has the rows 20 i to 20 i + 19."""

    requires: ClassVar[frozenset[str]] = frozenset()

    def assign(self, labels, classes, clients, streams):
        return np.split(np.arange(labels.size), clients)


def run(policy, **rounds):
    torch.manual_seed(0)
    learning = {
        "data": (X, Y, X[20:], Y[20:]),
        "split": ByRows(),
        "model": nn.Linear(5, 2),
        "local": {"learning_rate": 0.1, "epochs": 2, "batch_size": 10},
    }
    tables = {"name": "refused", "crowd": {"clients": 4}, "network": "pause-two-speed", "learning": learning}
    selector = {"kind": "uniform", "cohort": 2} if policy["kind"] == "fedbuff" else "all"
    return simulate(Scenario(**tables, rounds={"count": 4, "policy": policy, **rounds}, selector=selector), store=False)


@pytest.mark.parametrize("policy", [{"kind": "wait-for-all"}, {"kind": "fedbuff", "concurrency": 3, "buffer": 2}])
def test_an_update_that_is_no_number_is_discarded_and_noted(policy):
    plain, history = run(policy), run(policy, refuse_nonfinite_updates=True)
    assert plain.evaluations.to_pylist()[-1]["accuracy"] is None
    assert np.isfinite(history.column("evaluations", "loss")).all()
    rows = history.participations.to_pylist()
    assert {row["served_round"] for row in rows if row["client"] == 0} == {None}
    served = {row["client"] for row in rows if row["served_round"] is not None}
    assert {1, 3} <= served <= {1, 2, 3}  # client 2 is slow
    (note,) = [note for note in history.notes if "refuse_nonfinite_updates" in note]
    assert "updates were no numbers and were refused (rounds.refuse_nonfinite_updates): client 0 in round " in note


def test_a_round_without_enough_numbers_makes_no_model():
    history = run({"kind": "wait-for-all"}, refuse_nonfinite_updates=True, minimum_updates=4)
    assert history.column("rounds", "model_version").max() == 0


def test_what_it_does_not_go_with_is_refused():
    tables = {"name": "refused", "crowd": {"clients": 4}, "network": "pause-two-speed", "selector": "all"}
    rounds = {"count": 2, "refuse_nonfinite_updates": True}
    with pytest.raises(ScenarioError, match=r"rounds\.refuse_nonfinite_updates: True is not allowed; learning\.kind"):
        Scenario(**tables, learning={"kind": "none", "model_bits": 1e6}, rounds=rounds)
    with pytest.raises(ScenarioError, match=r"rounds\.secure_aggregation hides each update; allowed: false"):
        Scenario(**tables, learning={}, rounds={**rounds, "secure_aggregation": "bonawitz"})
