"""SCAFFOLD against three rounds worked out by hand on two parameters, and against plain training."""

import numpy as np

from fedsim.learning import FedAvgM, LocalTraining, Scaffold
from tests.support.asking import next_model
from tests.support.plain_learner import half_way_learner, updates

# From (0, 0) with rate 1 and one step, client 0 sends (2, 0), client 1 (0, 4); a 1 in the buffer.
TARGETS = [(4.0, 0.0), (0.0, 8.0)]
STEP = LocalTraining(learning_rate=1.0)
HALVES, ALONE = np.array([0.5, 0.5]), np.array([1.0])


def test_two_rounds_by_hand():
    learner, _ = half_way_learner(TARGETS, STEP, Scaffold())
    first = learner.aggregate(learner.initial(), updates(learner, learner.initial(), 0, 1), HALVES)
    # c_0 = (-2, 0), c_1 = (0, -4), and c is half their sum.
    assert learner.vector(first).tolist() == [1, 2, 1]
    assert first.server_state["algorithm.control"].tolist() == [-1, -2]
    # Client 0 alone: (1.5, -1) without correction, minus c - c_0 = (1, -2).
    second = learner.aggregate(first, updates(learner, first, 0), ALONE)
    assert learner.vector(second).tolist() == [1.5, 3, 2]
    # c_0 is minus its own step, (-1.5, 1); it has changed by (0.5, 1), of two clients.
    assert second.server_state["algorithm.control"].tolist() == [-0.75, -1.5]
    # The client that was away keeps c_1 = (0, -4): (-0.75, 2.5) without correction, minus c - c_1 = (-0.75, 2.5).
    third = learner.aggregate(second, updates(learner, second, 1), ALONE)
    assert learner.vector(third).tolist() == [1.5, 3, 3]


def test_the_server_optimiser_keeps_its_own_state_beside():
    learner, _ = half_way_learner(TARGETS, STEP, Scaffold(), server=FedAvgM(momentum=0.5))
    first = learner.aggregate(learner.initial(), updates(learner, learner.initial(), 0), ALONE)
    second = learner.aggregate(first, updates(learner, first, 0), ALONE)
    # d is (2, 0), c_0 = (-2, 0), c = (-1, 0). Then 1 without correction, minus 1: v is 1 + 0.
    assert learner.vector(second).tolist() == [3, 0, 2]
    assert set(second.server_state) == {"velocity", "algorithm.control"}


def test_both_messages_have_a_control_variate_beside_the_model(make_learner):
    parameters = 16 * 5 + 5 + 5 * 3 + 3
    learner = make_learner(algorithm="scaffold")
    assert (learner.model_bits, learner.update_bits) == (2 * 32 * parameters, 2 * 32 * parameters)
    assert make_learner(algorithm="scaffold", model_bits=100.0).update_bits == 200.0


def test_a_schedule_that_ends_at_zero_ends_in_a_model_that_stays(make_learner):
    """After one round the factor of the cosine is (1 + cos pi) / 2 = 0."""
    local = {"learning_rate": 0.3, "schedule": {"kind": "cosine", "over": 1}}
    learner = make_learner(local=local, algorithm="scaffold")
    first = next_model(learner, learner.initial(), [0, 1])
    second = next_model(learner, first, [0, 1, 2])
    assert not np.array_equal(learner.vector(first), learner.vector(learner.initial()))
    assert np.array_equal(learner.vector(second), learner.vector(first))
