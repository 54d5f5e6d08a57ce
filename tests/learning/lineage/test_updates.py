"""Cohorts: their batches, what they report, what fails in them, and what is let go of."""

import numpy as np
import pytest

from fedsim.errors import PartError
from tests.support.asking import even, losses
from tests.support.plain_learner import HalfWay, half_way_learner

TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0), (1.0, 1.0), (3.0, -5.0), (2.0, 2.0)]
COHORTS = [[0, 3, 5], [1, 2], [4, 0, 1, 2], [5]]


def line(learner):
    """Return a model for each cohort, each going on from the one before."""
    models = [learner.initial()]
    for clients in COHORTS:
        asked = learner.updates(models[-1], np.array(clients))
        models.append(learner.aggregate(models[-1], asked, np.arange(1.0, 1 + len(clients)) / 10))
    return models


@pytest.mark.parametrize("most", [1, 2, 256])
def test_batches_are_cut_from_cohorts_in_their_order(most):
    learner, executor = half_way_learner(TARGETS)
    executor.max_batch = most
    learner.vector(line(learner)[-1])
    assert executor.batches == [cohort[i : i + most] for cohort in COHORTS for i in range(0, len(cohort), most)]


@pytest.mark.parametrize("clients", [[0, 1], [1, 1]], ids=["two", "one twice"])
def test_a_cohort_that_makes_two_models_is_trained_once(clients):
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    cohort = learner.updates(start, np.array(clients))
    both = [learner.aggregate(start, cohort, np.full(2, weight)) for weight in (0.5, 0.25)]
    learner.vector(learner.merge(both, even(2)))
    assert executor.batches == [sorted(set(clients))]
    np.testing.assert_allclose(both[0].vector[:2], 2 * both[1].vector[:2], rtol=1e-6)


def test_without_a_store_a_report_is_found_in_the_same_run():
    learner, executor = half_way_learner(TARGETS, store=False)
    models = line(learner)
    learner.vector(models[-1])
    told, ran = losses(learner, learner.updates(models[1], np.array([2, 1]))), len(executor.batches)
    assert ran == len(COHORTS)
    apart, _ = half_way_learner(TARGETS)
    assert told.tolist() == losses(apart, list(apart.updates(line(apart)[1], np.array([2, 1])))).tolist()


class Failing(HalfWay):
    """Fails at a client, while its results are read."""

    def __init__(self, at: int, failure: BaseException) -> None:
        super().__init__(TARGETS)
        self.at = at
        self.failure = failure

    def train(self, jobs):
        for job, result in zip(jobs, super().train(jobs), strict=True):
            if int(job.rows[0]) == self.at:
                raise self.failure
            yield result


def test_a_failing_part_is_told_with_its_clients_and_round():
    learner, _ = half_way_learner(TARGETS, executor=Failing(2, PartError("it fails", "allowed: not to")))
    models = line(learner)
    with pytest.raises(PartError) as failed:
        learner.vector(models[-1])
    assert (failed.value.round, failed.value.clients) == (2, (1, 2))


def test_an_interrupted_cohort_goes_on_with_the_same_bits():
    learner, _ = half_way_learner(TARGETS)
    expected = learner.vector(line(learner)[-1]).tobytes()
    failing = Failing(2, KeyboardInterrupt())
    learner, _ = half_way_learner(TARGETS, executor=failing)
    models = line(learner)
    with pytest.raises(KeyboardInterrupt):
        learner.vector(models[-1])
    failing.at = None
    assert learner.vector(models[-1]).tobytes() == expected
