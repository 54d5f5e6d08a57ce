"""Updates are added up as they come, in their order, and let go of: memory does not grow with the cohort."""

import numpy as np
import pytest

from fedsim.learning import FedAvg, FedAvgM, Release
from tests.support.asking import aggregated, even
from tests.support.plain_learner import Doubling, half_way_learner, updates

COHORT = 200


@pytest.mark.parametrize("server", [FedAvg(), FedAvgM()])
@pytest.mark.parametrize("needs", [(), ("loss", "update_norm")])
def test_two_differences_of_a_cohort_of_two_hundred_are_in_memory(server, needs):
    learner, executor = half_way_learner([(0.0, 0.0)] * COHORT, store=False, server=server)
    model = learner.initial()
    for _ in range(2):
        cohort = learner.updates(model, np.arange(COHORT))
        model = learner.aggregate(model, cohort, even(COHORT))
        if needs:
            learner.measure(cohort, needs)
        learner.vector(model)
        assert learner.work.trained == len(executor.alive)
    assert len(executor.alive) == 2 * COHORT
    # The one just added, which the executor still holds while it begins the next.
    assert max(executor.alive) <= 2


def test_what_is_measured_before_it_is_aggregated_is_held_until_then():
    learner, executor = half_way_learner([(0.0, 0.0)] * 8, store=False)
    start = learner.initial()
    cohort = learner.updates(start, np.arange(5))
    learner.measure(cohort, ("loss",))
    assert executor.alive == [0, 1, 2, 3, 4]
    learner.vector(learner.aggregate(start, cohort, even(5)))
    assert learner.work.trained == 5
    learner.measure(learner.updates(start, np.array([7])), ("loss",))
    assert executor.alive[5] <= 1


TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0), (1.0, 1.0)]


@pytest.mark.parametrize("of", ["difference", "model"])
@pytest.mark.parametrize("batch", [1, 2, 256])
def test_the_order_of_the_updates_counts_and_not_that_of_the_trainings(of, batch):
    """The first update's base is trained last; the oracle is a plain loop in float64."""
    weights = np.array([0.3, 1e-9, 0.1, 0.7])
    learner, executor = half_way_learner(TARGETS, mechanism=Doubling())
    executor.max_batch = batch
    start = learner.initial()
    model = learner.aggregate(start, updates(learner, start, 3), np.ones(1))
    mixed = [*updates(learner, model, 0), *learner.updates(start, np.array([1, 2]), {1: Release(1.0, 1)})]
    mixed += updates(learner, model, 3)
    following = learner.aggregate(model, mixed, weights, of=of)
    found = learner.vector(following)
    sent = []
    for base, client, factor in zip([model, start, start, model], (0, 1, 2, 3), (1, 1, 2, 1), strict=True):
        vector = learner.vector(base)
        way = ((np.array(TARGETS[client]) - vector[:2]) / 2).astype(np.float32)
        difference = np.append(factor * way, 1).astype(np.float32)
        if of == "model" and base is start:
            difference = (difference.astype(float) + vector - learner.vector(model)).astype(np.float32)
        sent.append(difference)
    assert found.tobytes() == aggregated(FedAvg(), learner.vector(model), sent, weights).tobytes()


def test_a_difference_that_is_needed_again_is_trained_again():
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    cohort = updates(learner, start, 0, 1)
    once = learner.vector(learner.aggregate(start, cohort, even(2)))
    assert learner.work.trained == 2
    twice = learner.vector(learner.aggregate(start, cohort, np.ones(2)))
    assert (learner.work.trained, executor.batches) == (4, [[0, 1]] * 2)
    assert twice.tolist() == (2 * once).tolist()
    learner.measure(cohort, ("loss", "loss_rms"))
    assert learner.work.trained == 4
