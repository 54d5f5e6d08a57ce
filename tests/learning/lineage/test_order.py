"""The order in which handles get their numbers: nothing twice, ready trainings together, little kept."""

import numpy as np
from hypothesis import given, strategies as st

from fedsim.learning import MemoryStore
from tests.support.asking import even
from tests.support.plain_learner import half_way_learner, updates

TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0), (1.0, 1.0), (3.0, -5.0), (2.0, 2.0)]


def test_ready_trainings_of_all_edges_go_together():
    learner, executor = half_way_learner(TARGETS)
    edges = []
    for cell in ((0, 1), (2, 3), (4, 5)):
        model = learner.initial()
        for _ in range(2):
            model = learner.aggregate(model, updates(learner, model, *cell), even(2))
        edges.append(model)
    learner.vector(learner.merge(edges, even(3)))
    assert executor.batches == [[0, 1, 2, 3, 4, 5]] * 2


def test_trainings_of_a_cohort_are_measured_in_one_batch():
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    model = learner.aggregate(start, updates(learner, start, 3), np.ones(1))
    learner.measure([*updates(learner, model, 5, 1), *updates(learner, start, 2)], ("loss",))
    assert [sorted(batch) for batch in executor.batches] == [[2, 3], [1, 5]]


def test_what_is_needed_first_is_trained_first_and_soon_forgotten():
    learner, executor = half_way_learner(TARGETS, store=MemoryStore(limit_bytes=0))
    executor.max_batch = 4
    # Forty clients start from version 0 and arrive one after the other, as in FedAsync.
    model = learner.initial()
    work = 0.5 + np.arange(40) / 100  # no two alike
    arrivals = learner.updates(model, np.arange(40) % 6, work=work)
    for update in arrivals:
        model = learner.aggregate(model, [update], np.array([0.5]), of="model")
    del arrivals, update
    learner.vector(model)
    assert [client for batch in executor.batches for client in batch] == [k % 6 for k in range(40)]
    assert max(executor.alive[::4]) <= 4, "as each batch begins"


def test_models_of_a_long_line_are_let_go_of_on_the_way():
    """Each round has two clients, of which one starts from the model before: no more than these and the next live."""
    learner, executor = half_way_learner(TARGETS, store=False)
    model, late = learner.initial(), []
    for k in range(600):  # more than calls may be nested
        fresh = updates(learner, model, k % 6, (k + 1) % 6)
        model = learner.aggregate(model, [*late, fresh[0]], even(len(late) + 1))
        late = fresh[1:]
    del late, fresh
    assert (model.version, learner.work.trained) == (600, 0)
    learner.vector(model)
    assert max(executor.bases_alive) <= 4


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["difference", "model", "merge"]),
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), min_size=1, max_size=4),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=12,
)


def grow(learner, steps, after_each):
    """Build models by random steps from any earlier ones, stale and branches included; and updates' digests."""
    models = [learner.initial()]
    used = set()
    for kind, members, choice in steps:
        current = models[choice % len(models)]
        if kind == "merge":
            parents = [models[where % len(models)] for _, where in members]
            models.append(learner.merge(parents, even(len(parents))))
        else:
            sent = [updates(learner, models[where % len(models)], client)[0] for client, where in members]
            used.update(update.digest for update in sent)
            way = kind
            models.append(learner.aggregate(current, sent, even(len(sent)) * 0.75, of=way))
        after_each(models[-1])
    return models, used


def by_hand(steps):
    """Return what `grow` must give, in float64 and from the formulas."""
    targets = np.array(TARGETS)
    models = [np.zeros(3)]
    for kind, members, choice in steps:
        current = models[choice % len(models)]
        bases = [models[where % len(models)] for _, where in members]
        if kind == "merge":
            models.append(np.mean(bases, axis=0))
            continue
        sent = [np.append((targets[c] - b[:2]) / 2, 1) for (c, _), b in zip(members, bases, strict=True)]
        if kind == "difference":
            models.append(current + 0.75 * np.mean(sent, axis=0))
        else:
            models.append(0.25 * current + 0.75 * np.mean([b + h for b, h in zip(bases, sent, strict=True)], axis=0))
    return models


@given(steps=STEPS, order=st.randoms(use_true_random=False))
def test_any_lineage_gives_the_formulas_numbers_in_any_order(steps, order):
    eager, stepwise = half_way_learner(TARGETS)
    first, used = grow(eager, steps, eager.vector)
    lazy, at_once = half_way_learner(TARGETS)
    second, _ = grow(lazy, steps, lambda _: None)
    for model in order.sample(second, len(second)):
        lazy.vector(model)
    for one, other, expected in zip(first, second, by_hand(steps), strict=True):
        assert (one.digest, one.version) == (other.digest, other.version)
        assert eager.vector(one).tobytes() == lazy.vector(other).tobytes()
        # At most twelve steps, each rounding numbers below 200 to float32 a few times and at most tripling an error.
        np.testing.assert_allclose(eager.vector(one), expected, rtol=1e-4, atol=1e-4)
    # A training whose difference all its models have had runs once more for a model that is asked for later.
    for executor in (stepwise, at_once):
        assert len(used) <= sum(map(len, executor.batches)) <= sum(len(members) for _, members, _ in steps)
