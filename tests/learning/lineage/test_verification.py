"""A planted wrong entry is caught in the act: nothing of its basis is found any more, and all is computed again."""

import numpy as np
import pytest
from torch import nn

from fedsim import run, simulate
from fedsim.errors import DistrustError
from fedsim.learning import MemoryStore, ServerOptimizer
from fedsim.learning.lineage import verification
from fedsim.learning.lineage.computed import PRINT, print_of
from fedsim.simulation import Simulation
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 5)).astype(np.float32), RNG.integers(0, 3, 60)


def own():
    return nn.Linear(5, 3)


def scenario(model="logistic-regression"):
    learning = {"data": (X, Y), "model": model, "local": {"learning_rate": 0.1, "batch_size": 8}}
    return of_learning(learning, rounds=3, cohort=None)


def losses(history):
    return history.evaluations.column("loss").to_pylist()


def planted(store, name):
    """Change the named number of all records that have it; return how many there are."""
    changed = "loss" if name == "accuracy" else name  # the loss of evaluations
    had = {digest: record for digest, record in store._records.items() if name in record}
    wrong = {digest: {**record, changed: record[changed] + 1.0} for digest, record in had.items()}
    store.put_records(wrong)
    return len(wrong)


@pytest.mark.parametrize(
    ("name", "model"), [(PRINT, own), ("loss_rms", "logistic-regression"), ("accuracy", "logistic-regression")]
)
def test_a_planted_wrong_entry_is_found_and_all_is_computed_again(name, model):
    store = MemoryStore()
    right = losses(simulate(scenario(model), store=store, executor="sequential"))
    assert planted(store, name) >= 4
    history = simulate(scenario(model), store=store, executor="sequential")
    assert losses(history) == right
    named = "test_verification:own" if model is own else "another machine or release"
    assert any(named in note and "is stored with another result" in note for note in history.notes)
    # Computed anew under another digest, which the next run trusts.
    again = Simulation(scenario(model), store=store, executor="sequential")
    assert losses(again.run()) == right
    assert again.context.learner.work.trained == 0


def test_a_simulation_says_to_run_again():
    store = MemoryStore()
    simulate(scenario(), store=store, executor="sequential")
    planted(store, PRINT)
    with pytest.raises(DistrustError, match=r"training of client \d from version 0 is stored with another"):
        Simulation(scenario(), store=store, executor="sequential").run()


def test_a_run_in_a_folder_is_computed_again(tmp_path):
    store, told = MemoryStore(), []
    right = losses(run(scenario(), tmp_path / "first", store=store, executor="sequential"))
    planted(store, PRINT)
    found = run(scenario(), tmp_path / "second", store=store, executor="sequential", tell=told.append)
    assert losses(found) == right
    assert any("is stored with another result" in line for line in told)


def test_what_agrees_is_found_and_counted_as_found():
    store = MemoryStore()
    simulate(scenario(), store=store, executor="sequential")
    again = Simulation(scenario(), store=store, executor="sequential")
    again.run()
    learner = again.context.learner
    assert learner._verification.verified >= 2  # the first training and the first evaluation
    assert learner.work.trained == learner.work.evaluated == 0


class Halving(ServerOptimizer):
    """Looks at a setting where the model is still near zero, as no probe is."""

    def step(self, model, update, state):
        near = np.abs(model).max() < 1
        return model + np.float32(SHARE[0] if near else 1.0) * update, {}


SHARE = [1.0]


@pytest.mark.parametrize("kind", ["sequential", pytest.param("stacked", marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_model_that_a_rule_would_not_make_again_is_found_out(kind, share, monkeypatch):
    """A longer run begins at the last model of a shorter one, which the rule made with another setting."""
    monkeypatch.setattr(verification, "SHARE", share)
    store, short = MemoryStore(), scenario()
    short = short.replace({"learning.server": Halving()})
    long, found = short.replace({"rounds.count": 5}), []
    for setting in (1.0, 0.5, 0.5):
        SHARE[0] = setting
        right = losses(simulate(long, store=False, executor=kind))
        histories = [simulate(one, store=store, executor=kind) for one in (short, long)]
        assert losses(histories[1]) == right
        found.append([note for one in histories for note in one.notes if "test_verification:Halving" in note])
    assert not found[0]
    assert any(" is stored with another result (step" in note for note in found[1])
    assert not found[2]


def test_a_print_changes_with_each_number():
    numbers = np.linspace(-1, 1, 7, dtype=np.float32)
    for place in (slice(None), *range(7)):
        moved = numbers.copy()
        moved[place] = np.nextafter(moved[place], np.float32(9))
        assert print_of(moved) != print_of(numbers)


def test_a_round_without_updates_leaves_what_is_owed_to_the_next(make_learner):
    looked = make_learner()._verification
    looked._owed = 1
    looked.of_trainings([])
    assert (looked._owed, looked.verified) == (1, 0)
