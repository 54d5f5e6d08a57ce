"""Probes of a model on clients' own data: what they depend on and cost; `test_literal_rounds.py` has their numbers."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.learning import MLP, LocalTraining, MemoryStore
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.registry import Component
from tests.support.plain_learner import learner_of
from tests.support.tiny_images import Tiny

ROWS = [np.arange(0, 30), np.array([80, 40, 31]), np.arange(50, 57)]
CLIENTS = np.array([2, 0, 1])


class Dropped(Component):
    """Softmax regression behind dropout, which evaluation must not feel."""

    def build(self, shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(int(np.prod(shape)), classes))


def make(data, model=None, store=None, rows=None):
    setup = TrainingSetup(model or MLP(hidden=()), data, LocalTraining(learning_rate=0.3), seed=1)
    layout = build_flat(setup.model, data.shape, data.classes, 1).layout
    return learner_of(setup, SequentialExecutor(setup), rows or ROWS, layout, store=store or False, seed=3)


def trained(learner):
    start = learner.initial()
    return learner.aggregate(start, learner.updates(start, np.array([0, 1])), np.array([0.5, 0.5]))


def test_mini_batch_is_drawn_for_client_and_round(tiny):
    learner = make(tiny)
    start = learner.initial()
    found = learner.probe_losses(start, CLIENTS, 4, 9)
    np.testing.assert_array_equal(learner.probe_losses(start, CLIENTS[1:], 4, 9), found[1:])
    later = learner.probe_losses(start, CLIENTS, 4, 10)
    assert (later == found).tolist() == [False, False, True]  # all three of client 1


def test_probes_do_not_depend_on_company_or_threads(one_thread):
    data = Tiny(samples=900).load()
    rows = [np.arange(0, 450), np.arange(450, 900)]  # three chunks each
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        learner = make(data, rows=rows, store=MemoryStore(limit_bytes=0))
        start = learner.initial()
        both = learner.probe_losses(start, np.array([0, 1]), None, 1)
        alone = [learner.probe_losses(start, np.array([c]), None, 1)[0] for c in (1, 0)]
        found += [both.tolist(), alone[::-1]]
        assert torch.get_num_threads() == threads
    assert found == [found[0]] * 4


def test_probing_leaves_trainings_alone(tiny):
    probed, plain = make(tiny, Dropped()), make(tiny, Dropped())
    model = trained(probed)
    probed.probe_losses(probed.initial(), CLIENTS, 2, 1)
    np.testing.assert_array_equal(probed.vector(model), plain.vector(trained(plain)))


def counted(learner, monkeypatch):
    """Return a list that grows by the number of parts of every call of the executor's `evaluate`."""
    calls = []
    executor = learner._computation.executor
    evaluate = executor.evaluate

    def counting(jobs):
        calls.append(len(jobs))
        return evaluate(jobs)

    monkeypatch.setattr(executor, "evaluate", counting)
    return calls


def test_a_probe_is_paid_for_once(tiny, monkeypatch):
    store = MemoryStore()
    learner, again = make(tiny, store=store), make(tiny, store=store)
    calls, others = counted(learner, monkeypatch), counted(again, monkeypatch)
    start = learner.initial()
    first = learner.probe_losses(start, CLIENTS, None, 1)
    np.testing.assert_array_equal(learner.probe_losses(start, CLIENTS, None, 2), first)
    assert calls == [3]
    learner.probe_losses(start, CLIENTS, 2, 1)
    learner.probe_losses(start, CLIENTS, 2, 2)
    learner.probe_losses(start, CLIENTS, 1, 2)
    learner.probe_losses(trained(learner), CLIENTS[:1], None, 1)
    assert calls == [3, 3, 3, 3, 1]
    np.testing.assert_array_equal(again.probe_losses(again.initial(), CLIENTS, None, 1), first)
    other = make(Tiny(salt=1).load(), store=store)
    assert np.all(other.probe_losses(other.initial(), CLIENTS, None, 1) != first)
    assert others == []


def test_work_of_a_probe_is_a_third_of_training(tiny):
    learner = make(tiny)
    np.testing.assert_allclose(learner.probe_samples(CLIENTS, None), [7 / 3, 10, 1])
    np.testing.assert_allclose(learner.probe_samples(CLIENTS, 6), [2, 2, 1])
    for probe in (
        lambda: learner.probe_samples(CLIENTS, 0),
        lambda: learner.probe_losses(learner.initial(), CLIENTS, 0, 1),
    ):
        with pytest.raises(ValueError, match="samples: 0"):
            probe()


def test_bases_and_the_clients_own_models_are_evaluated_together_and_once(tiny, monkeypatch):
    learner = make(tiny)
    calls = counted(learner, monkeypatch)
    start, model = learner.initial(), trained(learner)
    cohort = [*learner.updates(start, np.array([0, 2])), *learner.updates(model, np.array([1, 0]))]
    assert learner.measure(cohort, ("accuracy_gain",))["accuracy_gain"][0] > 0.1
    learner.measure(cohort, ("accuracy_gain",))
    assert calls == [8]
