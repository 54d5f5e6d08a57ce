"""Server optimisers against numbers worked out by hand: flat, buffered, at edge servers, at a cloud, under SAFA."""

import numpy as np
import pytest

from fedsim.learning import SERVER_OPTIMIZERS, FedAdagrad, FedAdam, FedAvg, FedAvgM, FedYogi, ServerOptimizer
from fedsim.testing import check_server_optimizer
from tests.support.plain_learner import half_way_learner, updates

# From (0, 0), half the way to the targets: client 0 sends (2, 0), client 1 (0, 4); a 1 in the buffer.
TARGETS = [(4.0, 0.0), (0.0, 8.0)]
HALF = FedAvgM(momentum=0.5)


def one(weight=1.0):
    return np.array([weight])


def velocity(model):
    return model.server_state["velocity"].tolist()


@pytest.mark.parametrize("kind", SERVER_OPTIMIZERS.builtin)
def test_a_long_model_steps_as_its_pieces_do(kind):
    """A step has no sum over parameters; a piece here is shorter than any block that a rule works through."""
    rule, rng, size, piece = SERVER_OPTIMIZERS.make({"kind": kind}), np.random.default_rng(0), 40_000, 1_000
    first, model, update = rng.normal(size=(3, size)).astype(np.float32)
    _, state = rule.step(model, first, rule.init(size))
    whole, after = rule.step(model, update, state)
    for start in range(0, size, piece):
        at = slice(start, start + piece)
        own = {name: values[at] if values.size == size else values for name, values in state.items()}
        part, own_after = rule.step(model[at], update[at], own)
        assert np.array_equal(part, whole[at])
        assert all(np.array_equal(own_after[name], values[at]) for name, values in after.items() if values.size == size)


def test_weights_of_a_buffer_scale_the_update_before_it_enters_the_velocity():
    """Two updates at a server rate of 0.5 over a buffer of 2 weigh a quarter each."""
    learner, _ = half_way_learner(TARGETS, server=HALF)
    start = learner.initial()
    stale = updates(learner, start, 1)
    model = learner.aggregate(start, [*updates(learner, start, 0), *stale], np.array([0.25, 0.25]))
    assert learner.vector(model).tolist() == [0.5, 1, 0.5]
    again = learner.aggregate(model, stale, one(0.25))
    learner.vector(again)
    assert velocity(again) == [0.25, 0.5 + 1]
    # The whole model (0, 4, 1) of the stale client, from the server's (0.5, 1, 0.5), mixed in by a quarter.
    mixed = learner.aggregate(model, stale, one(0.25), of="model")
    assert learner.vector(mixed).tolist() == [0.5 + 0.25 - 0.125, 1 + 0.5 + 0.75, 0.625]


def test_an_edge_server_goes_on_from_its_own_state_on_the_clouds_model():
    learner, _ = half_way_learner(TARGETS, server=HALF)
    start = learner.initial()
    edges = [learner.aggregate(start, updates(learner, start, client), one()) for client in (0, 1)]
    cloud = learner.server_step(start, learner.merge(edges, np.array([0.5, 0.5])), FedAvg())
    assert learner.vector(cloud).tolist() == [1, 2, 1]
    fetched = learner.with_state_of(cloud, edges[0])
    assert fetched.version == cloud.version == 2
    following = learner.aggregate(fetched, updates(learner, fetched, 0), one())
    # The update is ((4, 0) - (1, 2)) / 2, the edge's velocity (2, 0) / 2 more.
    assert learner.vector(following).tolist() == [1 + 1.5 + 1, 2 - 1, 2]
    assert velocity(following) == [2.5, -1]


def test_the_clouds_own_rule_steps_from_its_model_towards_the_mean():
    learner, _ = half_way_learner(TARGETS)
    cloud = learner.initial()
    for number, (vector, state) in enumerate([([1, 2, 1], [1, 2]), ([2, 4, 2], [1, 2])], start=1):
        edges = [learner.aggregate(cloud, updates(learner, cloud, client), one()) for client in (0, 1)]
        mean = learner.merge(edges, np.array([0.5, 0.5]))
        cloud = learner.server_step(cloud, mean, HALF)
        assert cloud.version == 2 * number
        assert learner.vector(cloud).tolist() == vector
        assert velocity(cloud) == state
        # A learner whose own rule keeps no state takes none from an edge server's model.
        assert learner.with_state_of(cloud, edges[0]) is cloud


def test_safas_cache_holds_models_as_clients_trained_them():
    learner, _ = half_way_learner(TARGETS, server=HALF)
    start = learner.initial()
    cached = [learner.trained(start, update) for update in updates(learner, start, 0, 1)]
    assert [learner.vector(model).tolist() for model in cached] == [[2, 0, 1], [0, 4, 1]]
    model = start
    for vector in ([1.0, 2, 1], [1.5, 3, 1]):
        mean = learner.merge(cached, np.array([0.5, 0.5]), version=model.version + 1)
        model = learner.server_step(model, mean)
        assert learner.vector(model).tolist() == vector
    assert model.version == 2
    plain, _ = half_way_learner(TARGETS)
    mean = plain.merge([plain.trained(start, update) for update in updates(plain, start, 0, 1)], np.full(2, 0.5))
    assert plain.server_step(start, mean) is mean, "with federated averaging the step is the mean itself"


_KEPT: dict[int, dict[str, np.ndarray]] = {}


class Writes(ServerOptimizer):
    """Adds the update, and counts steps in an array that it goes on writing to."""

    def step(self, model, update, state):
        kept = _KEPT.setdefault(id(self), {"steps": np.zeros(())})
        kept["steps"] += 1
        return model + update, kept


def test_a_state_is_kept_as_it_was_returned():
    learner, _ = half_way_learner(TARGETS, server=Writes())
    first = learner.aggregate(learner.initial(), updates(learner, learner.initial(), 0), one())
    second = learner.aggregate(first, updates(learner, first, 0), one())
    learner.vector(second)
    before = first
    assert (before.server_state["steps"], second.server_state["steps"]) == (1, 2)
    with pytest.raises(ValueError, match="read-only"):
        second.server_state["steps"][...] = 0


@pytest.mark.parametrize("rule", [FedAdam(), FedYogi()])
def test_squares_forget_a_hundredth_by_default(rule):
    """Reddi et al., section 5: beta_2 is 0.99. From v = tau^2 = 1e-6 and D = 1: v is 1 / 100, and tau^2 to 1 %."""
    _, state = rule.step(np.zeros(1, np.float32), np.ones(1, np.float32), rule.init(1))
    assert state["squares"].tolist() == pytest.approx([0.01], rel=1e-3)


@pytest.mark.parametrize("rule", [FedAdagrad(), FedAdam(), FedYogi(), FedYogi(bias_correction=True)])
def test_the_rules_keep_their_contract(rule):
    check_server_optimizer(rule)
