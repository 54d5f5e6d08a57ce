"""What a server is told of updates, against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from fedsim.learning import Release
from fedsim.measurements import HIDDEN, MEASUREMENTS
from tests.support.plain_learner import Doubling, half_way_learner, updates

TARGETS = [(6.0, 8.0), (0.0, 8.0), (-6.0, 2.0)]


def test_only_what_is_asked_for_is_worked_out():
    learner, executor = half_way_learner(TARGETS)
    cohort = updates(learner, learner.initial(), 2, 0)
    assert learner.measure(cohort, ()) == {}
    assert learner.work.trained == 0
    found = learner.measure(cohort, ("loss_rms", "update_norm", "loss", "update"))
    assert list(found) == ["loss_rms", "update_norm", "loss", "update"]
    assert executor.batches == [[2, 0]]
    assert executor.scored == 0
    assert (found["loss"].tolist(), found["loss_rms"].tolist()) == ([2.5, 0.5], [2.75, 0.75])
    learner.measure(cohort, ("accuracy_gain",))
    assert executor.scored == 4


def test_updates_and_norms_are_of_the_parameters_as_they_were_sent():
    learner, _ = half_way_learner(TARGETS, mechanism=Doubling())
    cohort = learner.updates(learner.initial(), np.array([0, 1, 0]), {2: Release(0.5, 1)})
    found = learner.measure(cohort, ("update", "update_norm"))
    assert found["update"].dtype == np.float32
    assert found["update"].tolist() == [[3, 4], [0, 4], [6, 8]]
    assert found["update_norm"].tolist() == [5, 4, 10]


class Told(Doubling):
    def clipped(self, update, buffers):
        return np.where(buffers, update, update / 4).astype(np.float32)


def test_signals_are_the_clipped_parameters_and_no_server_can_read_them():
    """Updates are (3, 4) and (0, 4); clipped (0.75, 1) with the energy 25 / 16. A store has them the next time."""
    learner, executor = half_way_learner(TARGETS, mechanism=Told())
    cohort = learner.updates(learner.initial(), np.array([0, 1, 0]), {2: Release(0.5, 1)})
    for _ in range(2):
        assert learner.measure(cohort, ("signal_energy",))["signal_energy"].tolist() == [25, 16, 25 / 16]
    assert executor.batches == [[0, 1]]
    untold, executor = half_way_learner(TARGETS, mechanism=Doubling())
    again = untold.updates(untold.initial(), np.array([0]), {0: Release(0.5, 1)})
    assert np.isnan(untold.measure(again, ("signal_energy",))["signal_energy"]).all()
    assert not executor.batches
    assert not set(HIDDEN) & set(MEASUREMENTS)


def test_an_unknown_need_is_refused_with_those_allowed():
    learner, _ = half_way_learner(TARGETS)
    with pytest.raises(
        ValueError, match=r"needs: 'gradient'.*loss, loss_rms, accuracy_gain, update_norm, noise_energy, update"
    ):
        learner.measure([], ("loss", "gradient"))
    shapes = {need: column.shape for need, column in learner.measure([], MEASUREMENTS).items()}
    assert shapes == {**dict.fromkeys(MEASUREMENTS, (0,)), "update": (0, 2)}


def test_measures_do_not_depend_on_batches_or_order(make_learner):
    together, singly = make_learner(), make_learner()
    model, other = together.initial(), singly.initial()
    all_at_once = together.measure(together.updates(model, np.arange(6)), MEASUREMENTS)
    for client in reversed(range(6)):
        alone = singly.measure(singly.updates(other, np.array([client])), MEASUREMENTS)
        for need in MEASUREMENTS:
            assert alone[need][0].tobytes() == all_at_once[need][client].tobytes()
    assert np.ptp(all_at_once["update_norm"]) > 0


def sent(*vectors):
    """Return a learner and updates of given vectors, from targets twice as far."""
    learner, _ = half_way_learner([(2 * x, 2 * y) for x, y in vectors])
    return learner, updates(learner, learner.initial(), *range(len(vectors)))


def test_deviation_is_zero_where_there_is_nothing_to_deviate_from():
    learner, found = sent((2, 1), (-2, -1), (4, 4))
    assert learner.deviations([], None, found).tolist() == [0, 0, 0]
    assert learner.deviations([], np.array([]), found).tolist() == [0, 0, 0]
    assert learner.deviations(found[:1], np.zeros(1), found).tolist() == [0, 0, 0]
    assert learner.work.trained == 0
    assert learner.deviations(found[:2], None, found[2:]).tolist() == [0]
    assert learner.deviations(found, None, []).shape == (0,)
    for weights in ([1.0], [1.0, -1.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="fresh_weights"):
            learner.deviations(found[:2], np.array(weights), found[2:])


VECTORS = arrays(np.float32, st.tuples(st.integers(2, 7), st.just(2)), elements=st.floats(-100, 100, width=16))


@given(vectors=VECTORS, weights=st.none() | st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=6, max_size=6))
def test_deviation_is_how_far_a_stale_update_moves_the_mean_by_the_papers_formula(vectors, weights):
    wide, n = vectors.astype(np.float64), len(vectors) - 1
    given_weights = None if weights is None or not any(weights[:n]) else np.array(weights[:n])
    mean = np.average(wide[:-1], axis=0, weights=given_weights)
    learner, found = sent(*vectors.tolist())
    deviation = learner.deviations(found[:-1], given_weights, found[-1:])[0]
    size = np.sum(mean**2)
    if size < 1e-6:  # a mean of nearly zero, or exactly zero: no relative measure to compare
        return
    moved = (wide[-1] + n * mean) / (n + 1) - mean
    # Float64 rounding of terms of at most 100 against a mean of at least 1e-3.
    assert deviation == pytest.approx(np.sum(moved**2) / size, rel=1e-6, abs=1e-9)
