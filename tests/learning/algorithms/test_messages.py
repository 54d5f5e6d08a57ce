"""What algorithms send, and what they do not go with; their numbers are in `test_literal_rounds.py`."""

import numpy as np
import pytest

from fedsim import Scenario
from fedsim.errors import FedsimError, ScenarioError
from fedsim.learning import ExecutorChoice, Supervised, TrainingRun
from fedsim.streams import Streams
from tests.support.asking import next_model
from tests.support.tiny_images import Tiny

SHARED = 16 * 5 + 5
"""Of the perceptron 16-5-3; the last layer has 5 * 3 + 3."""


def test_the_last_layer_is_neither_sent_nor_changed(make_learner):
    learner = make_learner(algorithm="fedper", local={"learning_rate": 0.3})
    assert (learner.model_bits, learner.update_bits) == (32 * SHARED, 32 * SHARED)
    start = learner.vector(learner.initial())
    after = learner.vector(next_model(learner, learner.initial(), [0, 1]))
    assert np.array_equal(after[SHARED:], start[SHARED:])
    assert not np.array_equal(after[:SHARED], start[:SHARED])


def test_both_messages_have_a_control_variate_beside_the_model(make_learner):
    learner = make_learner(algorithm="scaffold")
    assert (learner.model_bits, learner.update_bits) == (2 * 32 * (SHARED + 18), 2 * 32 * (SHARED + 18))
    assert make_learner(algorithm="scaffold", model_bits=100.0).update_bits == 200.0


def test_a_schedule_that_ends_at_zero_ends_in_a_model_that_stays(make_learner):
    """After one round the factor of the cosine is (1 + cos pi) / 2 = 0."""
    local = {"learning_rate": 0.3, "schedule": {"kind": "cosine", "over": 1}}
    learner = make_learner(local=local, algorithm="scaffold")
    first = next_model(learner, learner.initial(), [0, 1])
    second = next_model(learner, first, [0, 1, 2])
    assert not np.array_equal(learner.vector(first), learner.vector(learner.initial()))
    assert np.array_equal(learner.vector(second), learner.vector(first))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"algorithm": "fednova", "local": {"optimizer": "adam"}},
            r"local\.optimizer = 'adam' is not allowed with algo",
        ),
        (
            {"algorithm": "fednova", "aggregation": "median"},
            "aggregation = 'median' is not allowed with algorithm = 'fed",
        ),
        (
            {"algorithm": {"kind": "fedrolex", "widths": [1.0, 0.25, 0.5]}},
            "widths = .* is not allowed; they fall, and the first one is",
        ),
        ({"algorithm": {"kind": "fedrolex", "widths": [0.5]}}, "they fall, and the first one is"),
    ],
)
def test_what_an_algorithm_does_not_go_with_is_refused(table, words):
    with pytest.raises(ValueError, match=words):
        Supervised.model_validate(table)


def test_normalised_averaging_needs_one_synchronous_server():
    policy = {"kind": "fedbuff", "concurrency": 2, "buffer": 2}
    tables = {"name": "nova", "crowd": {"clients": 4}, "network": "pause-two-speed", "selector": "all"}
    with pytest.raises(ScenarioError, match="one synchronous server"):
        Scenario(**tables, learning={"algorithm": "fednova"}, rounds={"count": 2, "policy": policy})


def test_executors_of_whole_cohorts_refuse_a_loss_of_its_own_and_auto_takes_one_that_can():
    settings = Supervised.model_validate({"data": Tiny(), "model": {"hidden": [5]}, "algorithm": "moon"})
    with pytest.raises(FedsimError, match="Moon has a loss of its own, which the executor 'stacked"):
        settings.build(TrainingRun(6, Streams(3), executor=ExecutorChoice("stacked")))
    learner = settings.build(TrainingRun(6, Streams(3), executor=ExecutorChoice("auto", rounds=2)))
    assert learner.executor_used.kind == "sequential"
