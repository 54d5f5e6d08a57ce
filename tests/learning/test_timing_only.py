"""The learner without numbers: versions, NaN, zeros and empty vectors."""

import numpy as np
import pytest

from fedsim.learning import LEARNERS, Release, TrainingRun
from fedsim.measurements import MEASUREMENTS
from fedsim.streams import Streams
from tests.support.asking import losses, one_update


def test_learning_nothing_counts_versions_only():
    settings_ = LEARNERS.make({"kind": "none", "model_bits": 8e5, "samples_per_client": 40})
    learner = settings_.build(TrainingRun(3, Streams(0)))
    assert (settings_.provides, learner.model_bits) == ({"model-bits", "samples"}, 8e5)
    model = learner.initial()
    update = one_update(learner, model, 1, Release(0.1, 1))
    following = learner.aggregate(model, [update], np.ones(1))
    assert (model.version, following.version) == (0, 1)
    assert learner.start_evaluation(following) is None
    assert np.isnan(losses(learner, [update])).tolist() == [True]
    assert learner.work_samples(np.array([2, 0]), np.array([0.5, 1.0])).tolist() == [20, 40]
    unknown = LEARNERS.make("none")
    assert (unknown.provides, unknown.build(TrainingRun(2, Streams(0))).samples.tolist()) == (frozenset(), [0, 0])
    assert unknown.build(TrainingRun(2, Streams(0))).model_bits is None


def timing(clients=4):
    return LEARNERS.make({"kind": "none", "samples_per_client": 40}).build(TrainingRun(clients, Streams(0)))


def test_one_handle_stands_for_a_whole_cohort():
    learner = timing()
    model = learner.initial()
    cohort = learner.updates(model, np.array([3, 0, 1]), {1: Release(0.1, 1)}, np.array([1.0, 0.5, 0.5]))
    assert len(cohort) == 3
    assert cohort[0] is cohort[1] is cohort[2]
    following = learner.aggregate(model, cohort, np.ones(3), of="model")
    assert following.version == 1
    assert learner.merge([model, following, model], np.full(3, 1 / 3)).version == 2


def test_there_are_no_numbers_to_measure():
    learner = timing()
    cohort = learner.updates(learner.initial(), np.array([3, 0, 1]))
    found = learner.measure(cohort, MEASUREMENTS)
    assert found.pop("update").shape == (3, 0)
    assert {need: np.isnan(column).tolist() for need, column in found.items()} == dict.fromkeys(found, [True] * 3)
    assert learner.deviations(cohort[:1], np.ones(1), cohort).tolist() == [0, 0, 0]
    assert np.isnan(learner.probe_losses(learner.initial(), np.array([2, 0]), 5, 1)).tolist() == [True, True]
    probed = [learner.probe_samples(np.array([2, 0]), samples).tolist() for samples in (None, 6)]
    assert probed == [[40 / 3, 40 / 3], [2, 2]], "probes take a third of the samples"
    with pytest.raises(ValueError, match="needs: 'norm'"):
        learner.measure(cohort, ("norm",))
