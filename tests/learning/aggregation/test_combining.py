"""Aggregation of differences and of whole models, and merging, against vectors worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.errors import ScenarioError
from fedsim.learning import FedAvg, Release
from tests.support.asking import one_update
from tests.support.plain_learner import Doubling, Halving, half_way_learner, updates

# From (0, 0), half the way to the targets: client 0 sends (2, 0), client 1 (0, 4), client 2 (-3, 1); a 1 in the buffer.
TARGETS = [(4.0, 0.0), (0.0, 8.0), (-6.0, 2.0)]


def one(weight=1.0):
    return np.array([weight])


def after_client_0(**options):
    """Return a learner, its first model, the one after client 0 alone, and the update of client 1 from the first."""
    learner, _ = half_way_learner(TARGETS, **options)
    start = learner.initial()
    return learner, start, learner.aggregate(start, updates(learner, start, 0), one()), updates(learner, start, 1)


def test_whole_models_use_what_was_sent_after_privacy():
    learner, start, model, _ = after_client_0(mechanism=Doubling())
    private = learner.updates(start, np.array([2, 1]), {1: Release(0.5, 1)})
    found = learner.aggregate(model, private, np.array([0.0, 0.5]), of="model")
    # 0.5 (2, 0, 1) + 0.5 ((0, 0, 0) + (0, 8, 1))
    np.testing.assert_array_equal(learner.vector(found), [1, 4, 1])


WEIGHTS = st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(np.array)


@given(weights=WEIGHTS, server=st.sampled_from([FedAvg(), Halving()]))
def test_both_ways_agree_where_every_base_is_the_model(weights, server):
    learner, _ = half_way_learner(TARGETS, server=server)
    model = learner.aggregate(learner.initial(), updates(learner, learner.initial(), 0), one())
    cohort = updates(learner, model, 0, 1, 2)
    ways = [learner.aggregate(model, cohort, weights), learner.aggregate(model, cohort, weights, of="model")]
    assert ways[0].digest == ways[1].digest
    assert learner.vector(ways[0]).tobytes() == learner.vector(ways[1]).tobytes()


def test_cloud_averages_its_edges_models():
    learner, _ = half_way_learner(TARGETS)
    start = learner.initial()
    edge = learner.aggregate(start, updates(learner, start, 0), one())
    edge = learner.aggregate(edge, updates(learner, edge, 0), one())  # (2, 0) and half of (2, 0) more
    other = learner.aggregate(start, updates(learner, start, 1), one())
    cloud = learner.merge([edge, other], np.array([0.75, 0.25]))
    assert (edge.version, other.version, cloud.version) == (2, 1, 3)
    assert learner.work.trained == 0
    np.testing.assert_array_equal(learner.vector(cloud), [2.25, 1, 1.75])
    assert learner.evaluate(cloud).loss == 5
    swapped, again = (learner.merge([other, edge], np.array(w)) for w in ([0.75, 0.25], [0.25, 0.75]))
    assert len({cloud.digest, swapped.digest, again.digest}) == 3
    np.testing.assert_array_equal(learner.vector(again), learner.vector(cloud))
    unmoved = learner.aggregate(edge, [], np.array([]))
    np.testing.assert_array_equal(learner.vector(unmoved), learner.vector(edge))


@pytest.mark.parametrize("weights", [[0.5, 0.4], [1.5, -0.5], [1.0], [np.nan, 1.0], []])
def test_merging_takes_the_weights_of_a_mean(weights):
    learner, _ = half_way_learner(TARGETS)
    models = [learner.initial(), learner.initial()]
    with pytest.raises(ValueError, match="weights"):
        learner.merge(models, np.array(weights))


def test_wrong_ways_to_aggregate_are_refused():
    learner, _ = half_way_learner(TARGETS)
    start = learner.initial()
    way = "gradient"
    with pytest.raises(ValueError, match=r"of: 'gradient'.*difference, model"):
        learner.aggregate(start, updates(learner, start, 0), one(), of=way)
    with pytest.raises(ValueError, match="weights"):
        learner.aggregate(start, updates(learner, start, 0, 1), np.ones(3))
    with pytest.raises(ScenarioError, match="no mechanism"):
        learner.updates(start, np.array([0, 1]), {1: Release(0.5, 1)})


def test_updates_of_a_cohort_are_those_of_its_members():
    learner, _ = half_way_learner(TARGETS, mechanism=Doubling())
    start, release = learner.initial(), Release(0.5, 3)
    cohort = learner.updates(start, np.array([2, 0, 1]), {1: release}, np.array([1.0, 0.5, 0.25]))
    asked = [(2, None, 1.0), (0, release, 0.5), (1, None, 0.25)]
    assert [one.digest for one in cohort] == [one_update(learner, start, *each).digest for each in asked]
    # Half of the work goes half as far, and is then doubled on its way.
    np.testing.assert_array_equal(learner.measure(cohort, ("update",))["update"], [[-3, 1], [2, 0], [0, 1]])
    assert one_update(learner, start, 0, None, 1).digest == one_update(learner, start, 0).digest


def test_the_same_client_and_version_in_two_branches_share_luck_but_not_digests():
    learner, executor = half_way_learner(TARGETS)
    start = learner.initial()
    edges = [learner.aggregate(start, updates(learner, start, client), one()) for client in (0, 1)]
    twins = [updates(learner, edge, 2)[0] for edge in edges]
    assert twins[0].digest != twins[1].digest
    learner.measure(twins, ("loss",))
    luck = [executor.draws[2, learner.vector(edge).tobytes()] for edge in edges]
    assert luck[0] == luck[1]
