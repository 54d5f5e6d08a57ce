"""Learning rates by round and step, clipping and weight decay, against NumPy and by hand."""

import numpy as np
import pytest

from fedsim.learning import MLP, SCHEDULES, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.schedules import Cosine, Decay
from tests.support.asking import next_model
from tests.support.softmax_regression import scaled, softmax, split_linear
from tests.support.tiny_images import Tiny


def test_rates_by_hand():
    assert Decay(factor=0.5, every=2).factors(5, 3).tolist() == [0.25] * 3
    assert Decay(factor=0.5, every=2, by="step").factors(5, 5).tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert Cosine(over=4, least=0.2).factors(2, 1) == pytest.approx([0.6])
    assert Cosine(over=4, by="step").factors(9, 6) == pytest.approx(
        [1, 0.5 + 0.25 * 2**0.5, 0.5, 0.5 - 0.25 * 2**0.5, 0, 0]
    )
    assert SCHEDULES.load("constant")().factors(7, 2).tolist() == [1, 1]


def test_steps_in_place_of_epochs():
    local = LocalTraining(steps=7, batch_size=5)
    # Of 12 samples: three batches of 5, 5 and 2 in an epoch, so two epochs and one batch more.
    assert local.batches([12, 3, 0]).tolist() == [7, 7, 0]
    assert local.work_samples([12]).tolist() == [2 * 12 + 5]
    assert LocalTraining(steps=7, batch_size=5, max_batches=4).batches(12) == 4
    assert local.batches(12, 0.5) == 4


def test_two_steps_with_rates_a_short_gradient_and_decay():
    data, rows = Tiny().load(), np.arange(12)
    local = LocalTraining(learning_rate=0.5, batch_size=12, epochs=2, clip_norm=0.2, weight_decay=0.1)
    executor = SequentialExecutor(TrainingSetup(MLP(hidden=()), data, local, 1))
    base, rates = executor.flat.layout.initial, np.array([0.5, 0.125])
    (found,) = executor.train([TrainingJob(base, rows, 1.0, np.random.default_rng(0), rates=rates)])
    numbers = base.astype(np.float64)
    inputs, hot = scaled(data.train_x[rows]), np.eye(3)[data.train_y[rows]]
    for rate in rates:
        weights, bias = split_linear(numbers, data)
        slope = (softmax(inputs @ weights.T + bias) - hot) / len(rows)
        gradient = np.concatenate([(slope.T @ inputs).ravel(), slope.sum(0)])
        assert np.linalg.norm(gradient) > 0.2
        gradient *= 0.2 / np.linalg.norm(gradient)
        numbers = numbers - rate * (gradient + 0.1 * numbers)
    assert found.difference == pytest.approx(numbers - base, abs=1e-6)


def test_a_rate_that_falls_by_rounds_halves_the_step_of_the_second(make_learner):
    """One step on all samples: the first round is the same, the second goes half as far."""
    moved = []
    for schedule in ("constant", {"kind": "decay", "factor": 0.5}):
        learner = make_learner(local={"learning_rate": 0.4, "batch_size": 96, "schedule": schedule})
        first = next_model(learner, learner.initial(), [0, 1])
        second = next_model(learner, first, [2])
        moved.append((learner.vector(first), learner.vector(second) - learner.vector(first)))
    (one, far), (other, near) = moved
    assert np.array_equal(one, other)
    assert near == pytest.approx(far / 2, abs=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_constant_rate_given_step_by_step_is_the_rate_of_the_settings(optimizer):
    data = Tiny().load()
    local = LocalTraining(optimizer=optimizer, learning_rate=0.1, batch_size=5, epochs=2)
    executor = SequentialExecutor(TrainingSetup(MLP(hidden=(4,)), data, local, 1))
    base, rows = executor.flat.layout.initial, np.arange(12)
    jobs = [
        TrainingJob(base, rows, 1.0, np.random.default_rng(0), rates=rates)
        for rates in (None, np.full(6, 0.1), np.full(6, 0.01), None)
    ]
    whole, given, small, again = (one.difference for one in executor.train(jobs))
    assert np.array_equal(whole, given)
    assert np.array_equal(whole, again)
    assert not np.array_equal(whole, small)
