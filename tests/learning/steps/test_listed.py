"""What clients send, and what they remember of it, against loops by hand over a learner without torch."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.learning import QSGD, Compressor, MemoryStore, RandomK, Release, TopK
from fedsim.learning.lineage.asked import STEPS
from tests.support.asking import even
from tests.support.plain_learner import Doubling, half_way_learner, updates

TARGETS = [(1, 2), (3, -5), (-2, 0.5)]


def run(learner, cohorts):
    models, sent = [learner.initial()], []
    for cohort in cohorts:
        sent += (handles := updates(learner, models[-1], *cohort))
        models.append(learner.aggregate(models[-1], handles, even(len(cohort))))
    return models, sent


def memory_after(update):
    state = update.state
    return state.value[STEPS + "left-out"]


class Half(Compressor):
    @property
    def remembers(self):
        return True

    def bits(self, tensors):
        return 16.0 * sum(tensors)

    def compress(self, update, tensors, rng):
        return (update / 2).astype(np.float32)


COHORTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True), min_size=1, max_size=6)


@given(COHORTS, st.sampled_from([TopK(share=0.5), RandomK(share=0.5), Half()]), st.sampled_from([1, 256]))
def test_what_was_sent_and_what_is_left_add_up_to_all_updates(cohorts, compressor, batch):
    learner, executor = half_way_learner(TARGETS, compression=compressor)
    executor.max_batch = batch
    _, handles = run(learner, cohorts)
    sent = learner.measure(handles, ("update",))["update"]
    for client in {client for cohort in cohorts for client in cohort}:
        mine = [i for i, update in enumerate(handles) if update.client == client]
        # The executor goes half the way from its base to the client's target.
        exact = [(np.array(TARGETS[client]) - learner.vector(handles[i].base)[:2]) / 2 for i in mine]
        total = sent[mine].astype(np.float64).sum(axis=0) + memory_after(handles[mine[-1]])
        np.testing.assert_allclose(total, np.sum(exact, axis=0), rtol=1e-5, atol=1e-5)


def test_an_update_that_arrived_and_is_not_used_counts_as_sent():
    learner, _ = half_way_learner(TARGETS, compression=TopK(share=0.5))
    start = learner.initial()
    updates(learner, start, 1)  # arrives, and the server discards it
    (again,) = updates(learner, start, 1)
    # Memory (1.5, 0) and update (1.5, -2.5): the second message is (3, 0).
    assert learner.measure([again], ("update",))["update"].tolist() == [[3, 0]]
    assert learner.work.trained == 2


def test_two_updates_of_a_client_in_one_aggregation_follow_one_another():
    learner, _ = half_way_learner(TARGETS, compression=TopK(share=0.5))
    start = learner.initial()
    both = updates(learner, start, 1) + updates(learner, start, 1)
    assert learner.vector(learner.aggregate(start, both, np.ones(2)))[:2].tolist() == [3, -2.5]


def test_a_release_is_made_before_it_is_compressed_and_the_memory_holds_what_it_left():
    learner, _ = half_way_learner(TARGETS, compression=TopK(share=0.5), mechanism=Doubling())
    (update,) = learner.updates(learner.initial(), np.array([1]), {0: Release(1.0, 1)})
    found = learner.measure([update], ("update",))["update"]
    assert found.tolist() == [[0, -5]]  # twice (1.5, -2.5) is (3, -5)
    assert memory_after(update).tolist() == [3, 0]


@pytest.mark.parametrize("compressor", [QSGD(levels=3), TopK(share=0.5), RandomK(share=0.5, error_feedback=False)])
def test_digests_know_the_compressor_and_the_client_s_memory(compressor):
    def digests(chosen, cohorts):
        return [update.digest for update in run(half_way_learner(TARGETS, compression=chosen)[0], cohorts)[1]]

    once = digests(compressor, [[1]])
    assert once == digests(compressor, [[1]]) == digests(compressor.model_copy(update={"coding": "entropy"}), [[1]])
    assert once != digests("none", [[1]])
    assert once != digests(compressor.model_copy(update={"share": 0.75, "levels": 5}), [[1]])
    learner, _ = half_way_learner(TARGETS, compression=compressor)
    start = learner.initial()
    first, second = updates(learner, start, 1) + updates(learner, start, 1)
    # From the same model a client sends the same again, unless it remembers what it has not sent.
    assert (first.digest != second.digest) == compressor.remembers


@pytest.mark.parametrize("left", ["all", "models", "last model", "nothing"])
def test_memories_go_on_from_where_they_were_kept(left, monkeypatch):
    monkeypatch.setattr("fedsim.learning.lineage.known._LONGEST_S", 0.0)
    cohorts = [[0, 1], [1, 2], [0, 2], [1, 2]]
    store = MemoryStore()
    first, _ = half_way_learner(TARGETS, compression=TopK(share=0.5), store=store)
    models, _ = run(first, cohorts)
    first.vector(models[-1])
    kept = {"all": None, "models": {m.digest for m in models}, "last model": {models[-1].digest}, "nothing": set()}[
        left
    ]
    for digest in list(store._arrays):
        if kept is not None and digest not in kept:
            store.remove_arrays(digest)
    whole, _ = half_way_learner(TARGETS, compression=TopK(share=0.5))
    again, _ = half_way_learner(TARGETS, compression=TopK(share=0.5), store=store)
    longer = [*cohorts, [0, 1, 2]]
    expected = whole.vector(run(whole, longer)[0][-1]).tobytes()
    assert again.vector(run(again, longer)[0][-1]).tobytes() == expected
    # With the states beside the models only the last cohort is trained.
    assert (again.work.trained == 3) == (left == "all")


def test_sizes_are_those_of_the_message_and_the_buffers_are_sent_whole():
    plain, _ = half_way_learner(TARGETS)
    assert (plain.model_bits, plain.update_bits, plain.remembers) == (96, 96, False)
    # One of two parameters with a place of one bit, and a buffer of 32.
    small, _ = half_way_learner(TARGETS, compression=TopK(share=0.5))
    assert (small.model_bits, small.update_bits, small.remembers) == (96, 33 + 32, True)
    bigger, _ = half_way_learner(TARGETS, compression=TopK(share=0.5), model_bits=9600)
    assert (bigger.model_bits, bigger.update_bits) == (9600, pytest.approx(6500))
