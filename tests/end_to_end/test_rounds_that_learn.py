"""Every rule for closing rounds on real data: the model gets better, and what is trained is what is used."""

import functools

import numpy as np
import pytest

from fedsim import Scenario, simulate
from tests.support.families import by_default

LAW = {"kind": "log-normal", "median_s": 0.5, "sigma": 0.7}
RULES = {
    "wait-for-all": ({"kind": "wait-for-all"}, "cancel", 12),
    "deadline-stale": ({"kind": "deadline", "deadline_s": 1.5}, "stale", 12),
    "deadline-deviation": ({"kind": "deadline", "deadline_s": 1.5}, {"kind": "stale", "weight": "deviation"}, 12),
    "k-fastest-drop": ({"kind": "k-fastest", "k": 4}, "drop", 12),
    "deadline-partial": ({"kind": "deadline", "deadline_s": 1.5}, "partial", 12),
    "fedasync": ({"kind": "fedasync", "concurrency": 4}, "cancel", 40),
    "fedbuff": ({"kind": "fedbuff", "buffer": 4, "concurrency": 6}, "cancel", 12),
    "safa": ({"kind": "safa", "share": 0.4, "max_wait_s": 3.0}, "cancel", 25),
}


def scenario(rule):
    policy, late, count = RULES[rule]
    return Scenario(
        name=rule,
        crowd={"clients": 10},
        learning={
            "model": {"kind": "mlp", "hidden": [16]},
            "local": {"optimizer": "sgd", "learning_rate": 0.3, "batch_size": 20},
        },
        network={"kind": "latency", "downlink": LAW, "uplink": LAW},
        devices={"compute": {"kind": "rate", "samples_per_s": 400.0}},
        rounds={"count": count, "policy": policy, "late": late},
        selector={"kind": "uniform", "cohort": 6} if rule != "safa" else "all",
        results={"evaluate_every": count, "audit": True},
    )


@functools.cache
def run(rule):
    return simulate(scenario(rule))


@pytest.mark.parametrize("rule", by_default(RULES, ["deadline-deviation", "deadline-partial", "fedbuff"]))
def test_every_rule_learns(rule):
    history = run(rule)
    assert history.column("evaluations", "accuracy")[-1] > 0.7
    if rule in ("deadline-stale", "deadline-deviation", "fedasync", "fedbuff", "safa"):
        assert history.column("rounds", "stale_used").sum() > 3


def test_partial_work_is_whole_batches_on_the_clock_and_in_training():
    """143 samples are 8 batches of at most 20."""
    history = run("deadline-partial")
    work = history.column("participations", "work")
    assert np.any(work < 1)
    np.testing.assert_allclose(work * 8, np.round(work * 8), atol=1e-12)
