"""An aggregation under the executor "merged": which updates are merged, and that it is the aggregation as ever."""

from typing import Any

import numpy as np
import pytest

from fedsim.learning import Drawn, ExecutorChoice, MemoryStore, Release, Supervised
from fedsim.learning.supervised import SupervisedLearner
from fedsim.streams import Streams
from tests.support.plain_learner import Doubling
from tests.support.tiny_images import Tiny

CLIENTS = 8
LOCAL = {"learning_rate": 0.3, "batch_size": 8}
NEAR = {"rtol": 0, "atol": 3e-6}


def learner(executor: str, *, mechanism: Any = None, store: Any = None, **settings: Any) -> SupervisedLearner:
    """Return a learner whose clients have 1 to 30 samples: some do one step, and some several."""
    table = {
        "data": Tiny(),
        "model": {"hidden": [5]},
        "split": {"kind": "log-normal", "sigma": 1.2, "mean_samples": 10},
        "local": LOCAL,
        "allow_empty": True,
        **settings,
    }
    chosen = ExecutorChoice.of(executor)
    made = Supervised.model_validate(table).build(CLIENTS, Streams(3), mechanism, store, executor=chosen)
    assert isinstance(made, SupervisedLearner)
    return made


def run(made: SupervisedLearner, *, drawn: bool = False, measured: bool = False, released: bool = False) -> Any:
    """Return the numbers after two rounds with everyone, and how many clients were trained by themselves."""
    executor, alone = made._results.runs.executor, []
    train = executor.train
    executor.train = lambda jobs: (alone.extend(jobs), train(jobs))[1]  # type: ignore[method-assign]
    model = made.initial()
    cohort = np.flatnonzero(made.samples)
    for number in range(2):
        more: dict[str, Any] = {}
        if drawn:
            taken = made._results.runs._draws.counts(cohort, 0.6, number)
            more["drawn"] = Drawn(0.6, number, taken, 12.0)
        if released:
            more["releases"] = {0: Release(1.0, number)}
        updates = made.updates(model, cohort, **more)
        if measured:
            made.measure(updates, ("loss", "update_norm"))
        weights = np.ones(cohort.size) if drawn else made.samples[cohort] / made.samples[cohort].sum()
        model = made.aggregate(model, updates, weights)
    made.export(model)  # so that the store has it
    return made.vector(model), len(alone), made.trainings


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": ({}, {}),
    "sum of parts that are drawn": ({"local": {"learning_rate": 0.3, "batch_size": 99}}, {"drawn": True}),
    "server optimiser": ({"server": {"kind": "fedadam", "learning_rate": 0.01, "tau": 0.1}}, {}),
    "half of the work": ({"local": {**LOCAL, "epochs": 3, "max_batches": 1}}, {}),
}


@pytest.mark.parametrize(("settings", "options"), SETTINGS.values(), ids=SETTINGS)
def test_models_are_those_of_single_trainings(settings: dict[str, Any], options: dict[str, Any]) -> None:
    wanted, every, trained = run(learner("sequential", **settings), **options)
    found, alone, counted = run(learner("merged", **settings), **options)
    np.testing.assert_allclose(found, wanted, **NEAR)
    assert alone < every
    assert counted == trained


def test_clients_of_several_steps_train_by_themselves() -> None:
    made = learner("merged")
    _, alone, _ = run(made)
    assert 0 < alone == 2 * np.count_nonzero(made.samples > LOCAL["batch_size"]) < 2 * CLIENTS


UNMERGED: dict[str, dict[str, Any]] = {
    "compressed": {"compression": {"kind": "top-k", "share": 0.5}},
    "a rule for single updates": {"aggregation": "median"},
    "a schedule": {"local": {**LOCAL, "schedule": {"kind": "decay", "factor": 0.5}}},
    "a local algorithm with a state": {"algorithm": "scaffold"},
}


@pytest.mark.parametrize("settings", UNMERGED.values(), ids=UNMERGED)
def test_updates_that_are_read_one_by_one_are_not_merged(settings: dict[str, Any]) -> None:
    wanted, every, _ = run(learner("sequential", **settings))
    found, alone, _ = run(learner("merged", **settings))
    np.testing.assert_array_equal(found, wanted)
    assert alone == every


def test_an_update_that_is_made_private_is_not_merged() -> None:
    """The others are: the first client's update of two rounds is doubled."""
    wanted, _, _ = run(learner("sequential", mechanism=Doubling()), released=True)
    plain, alone, _ = run(learner("merged", mechanism=Doubling()))
    found, more, _ = run(learner("merged", mechanism=Doubling()), released=True)
    np.testing.assert_allclose(found, wanted, **NEAR)
    assert more >= alone
    assert np.abs(found - plain).max() > 1e-3


def test_a_stale_update_is_not_merged() -> None:
    models = []
    for kind in ("sequential", "merged"):
        made = learner(kind)
        cohort, share = np.flatnonzero(made.samples), np.full(np.count_nonzero(made.samples), 0.1)
        late = made.updates(made.initial(), cohort)
        first = made.aggregate(made.initial(), late[:3], share[:3])
        models.append(made.vector(made.aggregate(first, late[3:], share[3:], of="model")))
    np.testing.assert_allclose(*models, **NEAR)


def test_measuring_changes_no_bit_of_a_model() -> None:
    """What is merged depends on the aggregation alone, whether single updates are in memory or not."""
    alone, measured = run(learner("merged"))[0], run(learner("merged"), measured=True)[0]
    np.testing.assert_array_equal(alone, measured)


def test_a_run_that_goes_on_from_a_store_has_the_same_bits() -> None:
    store = MemoryStore()
    whole, _, counted = run(learner("merged", store=store))
    again, alone, trained = run(learner("merged", store=store))
    np.testing.assert_array_equal(again, whole)
    assert counted > 0 == alone == trained
