"""Compressed updates in whole runs: bits and times, every rule, resumed runs."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.learning import MemoryStore
from fedsim.simulation import Simulation
from tests.support.families import by_default
from tests.support.worlds import CountingLearner, FirstWanted, serve

SCENARIO = """
name = "messages"
[crowd]
clients = 6
[learning]
data = { kind = "digits", train_limit = 240 }
model = { kind = "mlp", hidden = [8] }
local = { learning_rate = 0.1 }
compression = { kind = "top-k", share = 0.05 }
[network]
kind = "fedscale"
median_kbps = 100.0
[rounds]
count = 5
[selector]
kind = "uniform"
cohort = 3
[results]
audit = true
"""
# 8 hidden units over 64 pixels and 10 classes.
NUMBERS = 64 * 8 + 8 + 8 * 10 + 10
RULES = {
    "all": {},
    "deadline": {"rounds.policy": {"kind": "deadline", "deadline_s": 0.4}},
    "stale": {"rounds.policy": {"kind": "deadline", "deadline_s": 0.4}, "rounds.late": "stale"},
    "deviation": {
        "rounds.policy": {"kind": "deadline", "deadline_s": 0.4},
        "rounds.late": {"kind": "stale", "weight": "deviation"},
    },
    "partial": {"rounds.policy": {"kind": "deadline", "deadline_s": 0.4}, "rounds.late": "partial"},
    "fedbuff": {"rounds.policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 3}},
    "fedasync": {"rounds.policy": {"kind": "fedasync", "concurrency": 4}},
    "safa": {"rounds.policy": {"kind": "safa", "share": 0.4, "max_wait_s": 1.0}, "selector": "all"},
    "edges": {"rounds.edges": {"grouping": {"kind": "order", "count": 2}, "backhaul": "none", "rounds": 2}},
    "privacy": {
        "privacy": {"budget": {"kind": "geometric", "epsilon": 90.0}, "mechanism": {"kind": "laplace-l1", "clip": 1.0}}
    },
}


def scenario(**changes: object) -> Scenario:
    return Scenario.from_toml(SCENARIO).replace(changes)


@pytest.mark.parametrize(
    ("compression", "up_bits"),
    [
        ("none", 32 * NUMBERS),
        ({"kind": "qsgd"}, 8 * NUMBERS + 4 * 32),
        # 5 % of 610 numbers are 30, a place takes 10 bits.
        ({"kind": "top-k", "share": 0.05}, 30 * 42),
        ({"kind": "random-k", "share": 0.05, "shared_seed": True}, 30 * 32 + 64),
    ],
)
def test_bits_in_the_records_and_times_follow_the_compression(compression: object, up_bits: float) -> None:
    history = simulate(scenario(**{"learning.compression": compression, "rounds.count": 2}))
    assert set(history.column("participations", "downlink_bits")) == {32 * NUMBERS}
    assert set(history.column("participations", "uplink_bits")) == {up_bits}
    up_s, down_s = (history.column("participations", f"{way}link_s") for way in ("up", "down"))
    np.testing.assert_allclose(up_s / down_s, up_bits / (32 * NUMBERS))


@pytest.mark.parametrize("rule", by_default(sorted(RULES), ["stale", "deviation", "partial", "fedbuff", "edges"]))
def test_with_every_rule_a_run_repeats_and_a_shorter_one_is_resumed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every model is kept, however long the machine takes to put one into the store.
    monkeypatch.setattr("fedsim.learning.lineage.known._LONGEST_S", 0.0)
    changes = RULES[rule]
    whole = simulate(scenario(**changes)).evaluations
    loss = whole["loss"].to_pylist()
    assert (loss[-1] < loss[0] - 0.02) == (rule != "privacy"), "noise of this size spoils the model"
    store = MemoryStore()
    simulate(scenario(**{**changes, "rounds.count": 3}), store=store)
    resumed = Simulation(scenario(**changes), store=store)
    assert resumed.run().evaluations.equals(whole)
    assert resumed.context.learner.work.trainings_found > 0
    plain = simulate(scenario(**{**changes, "learning.compression": "none"})).evaluations
    assert not plain.equals(whole)


def test_updates_with_a_memory_are_asked_for_once_as_they_arrive() -> None:
    """Two of three clients at a time, 1 s, 1.6 s and 4 s each; the buffer takes five updates."""
    from fedsim.rounds.policies.asynchronous import FedBuff

    learner = CountingLearner(np.full(3, 10), remembers=True)
    none_s = [0.0] * 3
    history, *_ = serve(
        FedBuff(buffer=5, concurrency=2),
        none_s,
        [1.0, 1.6, 4.0],
        none_s,
        learner=learner,
        selector=FirstWanted(),
        count=2,
    )
    rows = history.participations.to_pylist()
    arrived = sorted((row["end_s"], row["client"]) for row in rows if row["outcome"] == "delivered")
    assert [client for _, client, *_ in learner.asked] == [client for _, client in arrived]
    assert len(learner.asked) >= 10
