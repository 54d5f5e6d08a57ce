"""What is looked up instead of computed, what is re-made of what is left, and which models stay."""

import gc
import itertools

import numpy as np
import pytest

from fedsim.errors import FedsimError
from fedsim.learning import FedAvgM, Keeping, LocalTraining, MemoryStore, Work
from fedsim.learning.lineage import known
from fedsim.learning.lineage.asked import Update
from tests.support.asking import even, losses
from tests.support.plain_learner import half_way_learner, updates

ADAM = {"optimizer": "adam", "learning_rate": 0.01, "keep_optimizer_state": True}
TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0), (1.0, 1.0)]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Every record and every model goes to the store at once."""
    monkeypatch.setattr(known, "_SHARE_OF_TIME", np.inf)


def chain(learner, rounds, clients=4):
    """Return models of rounds in which two clients train, the first one included."""
    models = [learner.initial()]
    for k in range(rounds):
        cohort = np.array([k % clients, (k + 1) % clients])
        models.append(learner.aggregate(models[-1], learner.updates(models[-1], cohort), even(2)))
    return models


def test_a_run_that_finds_all_of_its_evaluations_works_out_no_model():
    store = MemoryStore()
    (first, _), (again, idle) = (half_way_learner(TARGETS, store=store) for _ in range(2))
    expected = [first.evaluate(model) for model in chain(first, 5)]
    models = chain(again, 5)
    found = [again.evaluate(model) for model in models]
    assert [(one.accuracy, one.loss) for one in found] == [(one.accuracy, one.loss) for one in expected]
    assert idle.batches == []
    assert not any(model.known for model in models[1:])
    assert first.work == Work(trained=10, evaluated=6)
    assert again.work == Work(trainings_found=10, evaluations_found=6)


def test_measures_are_found_without_any_training(make_learner):
    store = MemoryStore()
    needs = ("loss", "loss_rms", "accuracy_gain", "update_norm", "update")
    first, again, part = (make_learner(store=store) for _ in range(3))

    def measured(learner, *names):
        base = learner.aggregate(learner.initial(), learner.updates(learner.initial(), np.arange(2)), even(2))
        fresh, stale = learner.updates(base, np.arange(4)), learner.updates(learner.initial(), np.array([4, 5]))
        found = learner.measure(fresh, names)
        found["deviation"] = learner.deviations(fresh, None, stale)
        found["probe"] = learner.probe_losses(base, np.arange(3), 5, 7)
        return {name: values.tobytes() for name, values in found.items()}

    expected = measured(first, *needs)
    assert first.work == Work(trained=8, probed=8 + 3)
    assert measured(again, *needs) == expected
    assert again.work == Work(trainings_found=8, probes_found=8 + 3)
    assert measured(part, "loss") == {name: expected[name] for name in ("loss", "deviation", "probe")}
    assert part.work.trained == 0


@pytest.mark.parametrize(("left", "trained"), [({3, 5}, 2), ({2, 4}, 4), ({1}, 10), (set(), 12)])
@pytest.mark.parametrize("options", [{}, {"server": FedAvgM(momentum=0.5)}])
def test_a_missing_model_is_made_of_its_nearest_kept_ancestor(left, trained, options):
    """Two trainings make a round; of six rounds' models some are left."""
    store = MemoryStore()
    first, _ = half_way_learner(TARGETS, store=store, **options)
    models = chain(first, 6)
    expected = first.vector(models[6]).tobytes()
    for number, model in enumerate(models):
        if number not in left:
            store.remove_arrays(model.digest)
    again, executor = half_way_learner(TARGETS, store=store, **options)
    assert again.vector(chain(again, 6)[6]).tobytes() == expected
    assert sum(map(len, executor.batches)) == trained == again.work.trained


@pytest.mark.parametrize("states_left", [True, False])
def test_optimiser_states_go_on_from_where_they_were_kept(make_learner, states_left):
    store = MemoryStore()
    first, whole, again = (
        make_learner(store=store, local=ADAM),
        make_learner(local=ADAM),
        make_learner(store=store, local=ADAM),
    )
    first.vector(chain(first, 5)[5])
    expected = whole.vector(chain(whole, 6)[6]).tobytes()
    if not states_left:
        # Each model has its digest in its handle; all other arrays are states.
        models = {model.digest for model in chain(make_learner(local=ADAM), 5)}
        for digest in list(store._arrays):
            if digest not in models:
                store.remove_arrays(digest)
    assert again.vector(chain(again, 6)[6]).tobytes() == expected
    # Without states the two clients' trainings are run again from their first ones on.
    assert (again.work.trained == 2) == states_left


@pytest.mark.parametrize(
    ("keeping", "stay"), [("all", range(1, 8)), ("every 1", range(1, 8)), ("last", {7}), ("every 3", {3, 6, 7})]
)
def test_superseded_models_go_unless_a_rule_or_a_handle_wants_them(keeping, stay):
    store, rule = MemoryStore(), Keeping.parse(keeping)
    assert Keeping.parse(str(rule)) == rule
    assert (rule == Keeping()) == (keeping in {"all", "every 1"}), "every model stays by default"
    learner, _ = half_way_learner(TARGETS, store=store, keeping=rule)
    model, digests = learner.initial(), {}
    for k in range(7):
        model = learner.aggregate(model, updates(learner, model, k % 4), np.ones(1))
        learner.vector(model)
        digests[k + 1] = model.digest
    # The model before the newest is let go of with the next one.
    assert {version for version in digests if store.arrays(digests[version]) is not None} - {6} == set(stay) - {6}
    assert digests[7] in store._arrays


@pytest.mark.parametrize("text", ["", "none", "every", "every 0", "every -1", "every 1.5", "All", "every 2 "])
def test_other_rules_are_refused(text):
    with pytest.raises(FedsimError, match=r"keep-models: .* is not allowed; it must be all, last or every N"):
        Keeping.parse(text)
    with pytest.raises(FedsimError, match="keep-models: every 0 is not allowed"):
        Keeping(0)


def test_the_base_of_a_stale_update_stays_as_long_as_the_update():
    store = MemoryStore()
    learner, _ = half_way_learner(TARGETS, store=store, keeping=Keeping.parse("last"))
    models = chain(learner, 2)
    base = models[1].digest
    late = updates(learner, models[1], 3)
    learner.vector(models[2])
    del models[1:2]
    for _ in range(3):
        models.append(learner.aggregate(models[-1], updates(learner, models[-1], 0), np.ones(1)))
        learner.vector(models[-1])
        assert (store.arrays(base) is not None) == bool(late)
        if len(models) == 4:
            late.clear()
            learner.vector(learner.aggregate(models[-1], updates(learner, models[-1], 1), np.ones(1)))


def test_an_asynchronous_run_goes_on_from_its_last_stored_model(monkeypatch):
    """Updates start from up to four models before; the tenth and the 29th model are due of 35.."""
    store, calls = MemoryStore(), itertools.count(1)
    first, again = (half_way_learner(TARGETS, store=store)[0] for _ in range(2))

    def played(learner, count):
        model = learner.initial()
        flight = updates(learner, model, 0, 1, 2, 3)
        for k in range(count):
            model = learner.aggregate(model, [flight.pop(0)], np.array([0.5]))
            flight += updates(learner, model, k % 4)
            if learner is first:
                learner.vector(model)
        return learner.vector(model).tobytes()

    monkeypatch.setattr(known._Turn, "come", property(lambda _: next(calls) % 19 == 0))
    played(first, 35)  # each asks for its model and for its records
    monkeypatch.undo()
    assert played(again, 36) == played(half_way_learner(TARGETS)[0], 36)
    assert again.work.trained == 36 - 29


def test_records_wait_for_the_store_and_are_found_while_they_wait(monkeypatch):
    monkeypatch.setattr(known, "_SHARE_OF_TIME", 1e-12)
    store = MemoryStore()
    learner, executor = half_way_learner(TARGETS, store=store)
    start = learner.initial()
    for k in range(3):
        learner.evaluate(learner.aggregate(start, updates(learner, start, k), np.ones(1)))
    again = updates(learner, start, 2)
    store.misses = 0
    losses(learner, again)
    assert (sum(map(len, executor.batches)), store.misses) == (3, 0)
    learner.flush()
    other, idle = half_way_learner(TARGETS, store=store)
    losses(other, updates(other, other.initial(), 0, 1, 2))
    assert idle.batches == []


@pytest.mark.slow
@pytest.mark.parametrize("local", [LocalTraining(), LocalTraining(keep_optimizer_state=True)])
def test_a_long_replay_holds_few_handles(local):
    store = MemoryStore()
    first, again = (half_way_learner(TARGETS, store=store, local=local)[0] for _ in range(2))
    for model in chain(first, 300):
        first.evaluate(model)
    del model
    model, held = again.initial(), []
    for k in range(300):
        cohort = np.array([k % 4, (k + 1) % 4])
        model = again.aggregate(model, again.updates(model, cohort), even(2))
        again.evaluate(model)
        if k % 100 == 99:
            gc.collect()
            held.append(sum(type(each) is Update for each in gc.get_objects()))
    # The first line with more than 512 trainings, of two a model, has 257 models, and the store has the last of them.
    assert again.work.trained == 0
    assert max(held) <= 2 * 272, held
    assert held[-1] < 2 * 100, held


def test_a_very_long_line_that_is_not_kept_is_worked_out(monkeypatch):
    monkeypatch.setattr("fedsim.learning.lineage.computed._FEW", 0)
    monkeypatch.setattr("fedsim.learning.lineage.computed._MOST", 150)
    learner, executor = half_way_learner(TARGETS, store=MemoryStore(0))
    chain(learner, 200)
    # Two trainings a round: the 76th model is the first with more than 150 behind it, and then the 76th after that.
    assert learner.work.trained == 2 * 76 + 2 * 76 == sum(map(len, executor.batches))
