"""Adaptive server optimisers against numbers worked by hand, and against torch's rules."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("rule", "squares", "models"),
    [
        # v: 1/4 + 2^2 = 17/4 (its root from the decimal expansion below), m: 1; then v: 17/4 + 0, m: 1/2.
        (FedAdagrad(**HALF), [4.25, 4.25], [1 / (4.25**0.5 + 0.5), 1.5 / (4.25**0.5 + 0.5)]),
        # v: 1/4 / 2 + 4 / 2 = 17/8, then 17/16.
        (
            FedAdam(**HALF, beta_2=0.5),
            [2.125, 1.0625],
            [1 / (2.125**0.5 + 0.5), 1 / (2.125**0.5 + 0.5) + 0.5 / (1.0625**0.5 + 0.5)],
        ),
        # v: 1/4 - 4 / 2 sign(1/4 - 4) = 9/4, whose root is 3/2; an update of 0 leaves it there.
        (FedYogi(**HALF, beta_2=0.5), [2.25, 2.25], [1 / 2, 1 / 2 + 1 / 4]),
    ],
    ids=["fedadagrad", "fedadam", "fedyogi"],
)
def test_two_steps_by_hand(rule, squares, models):
    """tau is 1/2, so that v starts at 1/4; the updates are 2 and 0."""
    assert rule.init(1)["squares"].tolist() == [0.25]
    for count in (1, 2):
        found, state = steps(rule, [2.0, 0.0][:count])
        assert state["squares"].tolist() == pytest.approx([squares[count - 1]])
        assert found == pytest.approx(models[:count], rel=1e-6)


def test_yogi_shrinks_its_squares_where_adam_forgets_them():
    """From v = 4 and D = 1: Yogi 4 - 1/2, Adam 4/2 + 1/2."""
    assert steps(FedYogi(**HALF, beta_2=0.5, initial=4.0), [1.0])[1]["squares"].tolist() == [3.5]
    assert steps(FedAdam(**HALF, beta_2=0.5, initial=4.0), [1.0])[1]["squares"].tolist() == [2.5]


def test_the_paper_corrects_no_bias_and_an_option_does():
    """One step of D = 2 with v from 0: m is 1, or 2 corrected; v is 2, or 4 corrected, whose root is 2."""
    plain, corrected = (FedAdam(**HALF, beta_2=0.5, initial=0.0, bias_correction=by) for by in (False, True))
    assert steps(plain, [2.0])[0] == pytest.approx([1 / (2**0.5 + 0.5)])
    assert steps(corrected, [2.0])[0] == pytest.approx([2 / (2 + 0.5)])
    # Of a sum there is none to correct: v is 4 in both.
    assert steps(FedAdagrad(**HALF, initial=0.0, bias_correction=True), [2.0])[0] == pytest.approx([2 / 2.5])


def test_each_mean_is_corrected_by_its_own_beta():
    """beta_1 is 1/2 and beta_2 3/4, D is 2 twice, v from 0.

    Step 1: m is 1, over 1/2 it is 2; v is 1, over 1/4 it is 4: 2 / (2 + 1/2). Step 2: m is 3/2, over 3/4 it is 2; v is
    7/4, over 7/16 it is 4: the same again. For Yogi step 1 is the same; then v is 1 + 4/4, over 7/16 it is 32/7.
    """
    options = {**HALF, "beta_2": 0.75, "initial": 0.0, "bias_correction": True}
    assert steps(FedAdam(**options), [2.0, 2.0])[0] == pytest.approx([0.8, 1.6])
    assert steps(FedYogi(**options), [2.0, 2.0])[0] == pytest.approx([0.8, 0.8 + 2 / ((32 / 7) ** 0.5 + 0.5)])


@pytest.mark.parametrize("rule", [FedAdam(), FedYogi()])
def test_squares_forget_a_hundredth_by_default(rule):
    """Reddi et al., section 5: beta_2 is 0.99. From v = tau^2 = 1e-6 and D = 1: v is 1 / 100, and tau^2 to 1 %."""
    assert steps(rule, [1.0])[1]["squares"].tolist() == pytest.approx([0.01], rel=1e-3)


CHANGES = st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=6)


def of_torch(optimizer, changes):
    """Return the parameter after each step of a rule of torch, whose gradients are minus the updates."""
    parameter, found = optimizer.param_groups[0]["params"][0], []
    for change in changes:
        parameter.grad = torch.tensor([-change], dtype=torch.float64)
        optimizer.step()
        found.append(float(parameter.detach()))
    return found


@pytest.mark.slow  # torch takes seconds to load its optimisers
@settings(max_examples=20)
@given(changes=CHANGES)
def test_with_the_correction_fedadam_is_torchs_adam(changes):
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    expected = of_torch(torch.optim.Adam([parameter], lr=0.1, betas=(0.8, 0.95), eps=0.01), changes)
    rule = FedAdam(learning_rate=0.1, beta_1=0.8, beta_2=0.95, tau=0.01, initial=0.0, bias_correction=True)
    assert steps(rule, changes)[0] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.slow  # torch takes seconds to load its optimisers
@settings(max_examples=20)
@given(changes=CHANGES)
def test_without_momentum_fedadagrad_is_torchs_adagrad(changes):
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    rule = torch.optim.Adagrad([parameter], lr=0.1, eps=0.01, initial_accumulator_value=0.25)
    own = FedAdagrad(learning_rate=0.1, tau=0.01, initial=0.25)
    assert steps(own, changes)[0] == pytest.approx(of_torch(rule, changes), rel=1e-4, abs=1e-4)


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
