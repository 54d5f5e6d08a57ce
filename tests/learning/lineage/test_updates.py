"""A cohort as columns: the bits, the work and the records are those of its trainings one by one."""

import gc
import weakref

import numpy as np
import pytest

from fedsim.errors import PartError
from fedsim.learning import FedAvg, FedAvgM, MemoryStore
from fedsim.learning.lineage.handles import Cohort
from fedsim.learning.store.memory import NoStore
from tests.support.asking import even, losses
from tests.support.plain_learner import HalfWay, half_way_learner

TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0), (1.0, 1.0), (3.0, -5.0), (2.0, 2.0)]
COHORTS = [[0, 3, 5], [1, 2], [4, 0, 1, 2], [5]]


def line(learner, *, opened, work=1.0):
    """Return a model for each cohort, each going on from the one before."""
    models = [learner.initial()]
    for clients in COHORTS:
        asked = learner.updates(models[-1], np.array(clients), work=np.full(len(clients), work))
        assert isinstance(asked, Cohort)
        given = list(asked) if opened else asked
        models.append(learner.aggregate(models[-1], given, np.arange(1.0, 1 + len(clients)) / 10))
    return models


@pytest.mark.parametrize("server", [FedAvg(), FedAvgM()])
@pytest.mark.parametrize("most", [1, 2, 256])
def test_bits_and_batches_are_those_of_trainings_one_by_one(server, most):
    found = []
    for opened in (False, True):
        learner, executor = half_way_learner(TARGETS, server=server)
        executor.max_batch = most
        models = line(learner, opened=opened, work=0.3)
        learner.vector(models[-1])
        found.append(([model.vector.tobytes() for model in models], executor.batches, learner.work))
    assert found[0] == found[1]
    assert found[0][1] == [cohort[i : i + most] for cohort in COHORTS for i in range(0, len(cohort), most)]


def test_a_cohort_may_be_opened_before_and_after_it_has_run():
    learner, executor = half_way_learner(TARGETS)
    expected = learner.vector(line(learner, opened=True)[-1]).tobytes()
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    before, after = (learner.updates(start, np.array(clients)) for clients in ([0, 3, 5], [1, 2]))
    models = [learner.aggregate(start, cohort, even(len(cohort))) for cohort in (before, after)]
    opened = before[1]
    assert (opened, len(before), list(before)) == (before.trainings[1], 3, before[:])
    learner.vector(learner.merge(models, even(2)))
    assert sorted(client for batch in executor.batches for client in batch) == [0, 1, 2, 3, 5]
    told = losses(learner, [*before, *after])
    assert learner.trainings == 5
    assert np.isfinite(told).all()
    learner, _ = half_way_learner(TARGETS)
    models = line(learner, opened=False)
    assert learner.vector(models[-1]).tobytes() == expected


@pytest.mark.parametrize("clients", [[0, 1], [1, 1]], ids=["two", "one twice"])
def test_a_cohort_that_makes_two_models_is_trained_once(clients):
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    cohort = learner.updates(start, np.array(clients))
    both = [learner.aggregate(start, cohort, np.full(2, weight)) for weight in (0.5, 0.25)]
    learner.vector(learner.merge(both, even(2)))
    assert executor.batches == [sorted(set(clients))]
    np.testing.assert_allclose(both[0].vector[:2], 2 * both[1].vector[:2], rtol=1e-6)


def test_what_a_cohort_reports_is_found_by_others():
    store = MemoryStore()
    first, _ = half_way_learner(TARGETS, store=store)
    models = line(first, opened=False)
    first.evaluate(models[-1])
    first.flush()
    other, idle = half_way_learner(TARGETS, store=store)
    again = line(other, opened=False)
    other.evaluate(again[-1])
    assert losses(other, list(other.updates(again[0], np.array([3, 0])))).size == 2
    assert idle.batches == []


def test_without_a_store_a_report_is_found_in_the_same_run():
    learner, executor = half_way_learner(TARGETS, store=NoStore())
    models = line(learner, opened=False)
    learner.vector(models[-1])
    told, ran = losses(learner, list(learner.updates(models[1], np.array([2, 1])))), len(executor.batches)
    assert ran == len(COHORTS)
    apart, _ = half_way_learner(TARGETS)
    assert told.tolist() == losses(apart, list(apart.updates(line(apart, opened=True)[1], np.array([2, 1])))).tolist()


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
    models = line(learner, opened=False)
    with pytest.raises(PartError) as failed:
        learner.vector(models[-1])
    assert (failed.value.round, failed.value.clients) == (2, (1, 2))


def test_an_interrupted_cohort_goes_on_with_the_same_bits():
    learner, _ = half_way_learner(TARGETS)
    expected = learner.vector(line(learner, opened=True)[-1]).tobytes()
    failing = Failing(2, KeyboardInterrupt())
    learner, _ = half_way_learner(TARGETS, executor=failing)
    models = line(learner, opened=False)
    with pytest.raises(KeyboardInterrupt):
        learner.vector(models[-1])
    failing.at = None
    assert learner.vector(models[-1]).tobytes() == expected


def test_a_line_lets_go_of_its_cohorts():
    learner, _ = half_way_learner(TARGETS)
    models = line(learner, opened=False)
    old = [weakref.ref(model) for model in models[1:-1]]
    newest = models.pop()
    del models
    learner.vector(newest)
    gc.collect()
    assert [model() for model in old] == [None] * 3
