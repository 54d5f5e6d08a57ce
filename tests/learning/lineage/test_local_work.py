"""What algorithms make of trainings: executors agree, states stay with their models, and sums over parts by hand."""

import numpy as np
import pytest

from fedsim.learning import ExecutorChoice, Release, Supervised, TrainingRun
from fedsim.streams import Streams
from tests.support.asking import next_model
from tests.support.families import by_default
from tests.support.plain_learner import Doubling, releasing
from tests.support.tiny_images import Tiny

KINDS = ("fedprox", "scaffold", "feddyn", "fedper", "heterofl", "fedrolex")


def learner_of(algorithm, executor="sequential", mechanism=None):
    local = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3, "clip_norm": 1.0, "weight_decay": 0.01}
    table = {"data": Tiny(), "model": {"hidden": [8]}, "local": local, "algorithm": algorithm}
    return Supervised.model_validate(table).build(
        TrainingRun(6, Streams(3), parts=releasing(mechanism), executor=ExecutorChoice(executor))
    )


def third_model(learner):
    """Return the model after three rounds; with widths the clients have different ones."""
    model = learner.initial()
    for number in range(3):
        client = np.array([0, 1, 2]) + number
        level = None if learner.widths is None else np.array([0, 1, 2])
        updates = learner.updates(model, client, level=level)
        model = learner.aggregate(model, updates, np.array([0.5, 0.3, 0.2]))
    return learner.vector(model)


@pytest.mark.parametrize("kind", by_default(KINDS, ["scaffold", "fedper", "heterofl"]))
def test_executors_agree(kind):
    expected = third_model(learner_of(kind))
    assert np.array_equal(third_model(learner_of(kind, "processes")), expected)
    assert third_model(learner_of(kind, "stacked")) == pytest.approx(expected, abs=1e-4)
    assert not np.array_equal(third_model(learner_of("plain")), expected)


@pytest.mark.parametrize("schedule", ["decay", "cosine"])
def test_executors_agree_on_schedules(schedule):
    found = []
    for executor in ("sequential", "stacked"):
        local = {"batch_size": 5, "schedule": {"kind": schedule, "by": "step"}, "optimizer": "adam", "steps": 9}
        table = {"data": Tiny(), "model": {"hidden": [8]}, "local": local}
        learner = Supervised.model_validate(table).build(TrainingRun(6, Streams(3), executor=ExecutorChoice(executor)))
        found.append(learner.vector(next_model(learner, learner.initial(), [0, 1])))
    assert found[0] == pytest.approx(found[1], abs=2e-3)


def test_states_belong_to_their_line_of_models():
    """Two second rounds from one first round: neither sees what the other has done at the server."""
    learner = learner_of("scaffold")
    first = next_model(learner, learner.initial(), [0, 1])
    one, other = next_model(learner, first, [2]), next_model(learner, first, [3])
    learner.vector(one), learner.vector(other)
    fresh = learner_of("scaffold")
    again = next_model(fresh, next_model(fresh, fresh.initial(), [0, 1]), [3])
    fresh.vector(again)
    assert np.array_equal(other.server_state["algorithm.control"], again.server_state["algorithm.control"])
    assert not np.array_equal(one.server_state["algorithm.control"], other.server_state["algorithm.control"])


def test_a_release_is_that_of_the_part_which_is_sent():
    learner = learner_of("heterofl", mechanism=Doubling())
    start, level = learner.initial(), np.array([1])
    plain, released = (
        learner.measure(learner.updates(start, np.array([2]), releases, level=level), ("update",))["update"][0]
        for releases in (None, {0: Release(1.0, 1)})
    )
    assert np.array_equal(released, 2 * plain)
