"""What a store keeps, and what it saves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedsim.learning import Evaluation, MemoryStore
from fedsim.learning.executors.contracts import TrainingResult
from fedsim.learning.supervised import SupervisedLearner

Maker = Callable[..., SupervisedLearner]
ADAM = {"optimizer": "adam", "learning_rate": 0.01, "keep_optimizer_state": True}


def rounds(learner: SupervisedLearner, cohorts: list[list[int]]) -> Any:
    model = learner.initial()
    for cohort in cohorts:
        weights = np.full(len(cohort), 1 / len(cohort))
        model = learner.aggregate(model, learner.updates(model, np.array(cohort)), weights)
    return model


def test_a_shared_store_pays_for_each_training_once(make_learner: Maker) -> None:
    store = MemoryStore()
    first, again = make_learner(store=store, local=ADAM), make_learner(store=store, local=ADAM)
    cohorts = [[0, 1, 2], [2, 3], [0, 3]]
    evaluation = first.evaluate(rounds(first, cohorts))
    assert (first.trainings, store.misses, store.hits) == (7, 7, 0)
    assert again.evaluate(rounds(again, cohorts)) == evaluation
    assert (again.trainings, store.hits) == (0, 7)
    changed = make_learner(store=store, local={**ADAM, "learning_rate": 0.02})
    changed.evaluate(rounds(changed, cohorts))
    assert changed.trainings == 7


def test_store_forgets_what_was_used_longest_ago() -> None:
    result = TrainingResult(np.zeros(10, dtype=np.float32), 0.5, 0.6, {"step": np.ones(5, dtype=np.float32)})
    store = MemoryStore(limit_bytes=3 * result.nbytes + 1)
    for name in "abc":
        store.put(name, result)
    assert store.get("a") is result
    store.put("d", result)
    assert store.get("b") is None
    assert [store.get(name) is result for name in "acd"] == [True] * 3
    assert (len(store), store.nbytes) == (3, 3 * 60)
    store.put("a", result)
    assert store.nbytes == 3 * 60
    tiny = MemoryStore(limit_bytes=59)
    tiny.put("a", result)
    assert (len(tiny), tiny.nbytes) == (0, 0)
    with pytest.raises(ValueError, match="limit_bytes"):
        MemoryStore(limit_bytes=-1)


def test_evaluations_count_as_much_as_they_take() -> None:
    store = MemoryStore(limit_bytes=1100)
    kept = {name: Evaluation(0.5, 1.0) for name in "abc"}
    for name, evaluation in kept.items():
        store.put(name, evaluation)
    assert [store.get(name) is kept[name] for name in "abc"] == [False, True, True]
    store.put("d", TrainingResult(np.zeros(100, dtype=np.float32), 0.5, 0.6, {}))
    assert (len(store), store.nbytes) == (2, 512 + 400)
