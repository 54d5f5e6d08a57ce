"""Adaptive server optimisers against numbers worked by hand, and against torch's rules."""

import json

import numpy as np
import pytest

from fedsim.learning import FedAdagrad, FedAdam, FedAvg, FedYogi
from fedsim.testing import check_server_optimizer
from tests.support.plain_learner import half_way_learner, updates

# Halves and quarters, whose arithmetic is exact: after one step m = D / 2.
HALF = {"learning_rate": 1.0, "beta_1": 0.5, "tau": 0.5}


def steps(rule, changes, start=0.0):
    """Return the model of one parameter after each update, and the last state."""
    model, state, found = np.array([start], np.float32), rule.init(1), []
    for change in changes:
        model, state = rule.step(model, np.array([change], np.float32), state)
        found.append(float(model[0]))
    return found, state


@pytest.mark.parametrize("rule", [FedAdam(), FedYogi()])
def test_squares_forget_a_hundredth_by_default(rule):
    """Reddi et al., section 5: beta_2 is 0.99. From v = tau^2 = 1e-6 and D = 1: v is 1 / 100, and tau^2 to 1 %."""
    assert steps(rule, [1.0])[1]["squares"].tolist() == pytest.approx([0.01], rel=1e-3)


@pytest.mark.parametrize("rule", [FedAdagrad(), FedAdam(), FedYogi(), FedYogi(bias_correction=True)])
def test_the_rules_keep_their_contract(rule):
    check_server_optimizer(rule)


def test_a_cloud_an_edge_server_and_a_buffer_step_alike():
    """Each server's update is (2, 0): Yogi's step is the same 1/2 everywhere, and 0 where nothing was sent."""
    yogi = FedYogi(**HALF, beta_2=0.5)
    learner, _ = half_way_learner([(4.0, 0.0)], server=yogi)
    start = learner.initial()
    flat = learner.aggregate(start, updates(learner, start, 0), np.ones(1))
    mixed = learner.aggregate(start, updates(learner, start, 0), np.ones(1), of="model")
    plain, _ = half_way_learner([(4.0, 0.0)], server=FedAvg())
    begun = plain.initial()
    edge = plain.aggregate(begun, updates(plain, begun, 0), np.ones(1))
    cloud = plain.server_step(begun, plain.merge([edge], np.ones(1)), yogi)
    cached = plain.merge([plain.trained(begun, updates(plain, begun, 0)[0])], np.ones(1))
    safa = plain.server_step(begun, cached, yogi)
    found = [learner.vector(flat), learner.vector(mixed), plain.vector(cloud), plain.vector(safa)]
    assert json.dumps([each.tolist() for each in found]) == json.dumps([[0.5, 0.0, 1.0]] * 4)
