"""Random modules of users under every executor: a training gives the same numbers in any company, or is refused."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsim import simulate
from fedsim.errors import FedsimError
from fedsim.learning import Dataset, EvaluationJob, ExecutorChoice, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.algorithms.moon import Moon
from fedsim.learning.models.flat_module import build_flat
from tests.support.odd_modules import REFUSED, OddModel, odd_models
from tests.support.plain_loop import bits
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(96, 6)).astype(np.float32), RNG.integers(0, 3, 96)
DATA = Dataset(X, Y, X[:20], Y[:20], classes=3)


def setup_of(habits, momentum=0.0):
    local = LocalTraining(learning_rate=0.1, epochs=2, batch_size=7, momentum=momentum)
    return TrainingSetup(OddModel(habits=habits), DATA, local, 0)


def jobs(setup, clients):
    base = build_flat(setup.model, DATA.shape, 3, 0).layout.initial
    return [TrainingJob(base, np.arange(16 * i, 16 * i + 16), 1.0, np.random.default_rng(i)) for i in clients]


def check(kind, setup):
    """Return the results of clients 3, 0, 5, 1 together, as they are alone, or None where the executor refuses."""
    try:
        executor = ExecutorChoice(kind).build(setup)
        base = jobs(setup, [0])[0].base
        scored = executor.evaluate([EvaluationJob(base), EvaluationJob(base, np.arange(30))])
        together = bits(executor.train(jobs(setup, [3, 0, 5, 1])))
    except FedsimError:
        return None
    alone = {i: bits(executor.train(jobs(setup, [i])))[0] for i in (0, 1, 3, 5)}
    assert together == [alone[i] for i in (3, 0, 5, 1)]
    assert executor.evaluate([EvaluationJob(base), EvaluationJob(base, np.arange(30))]) == scored
    return together


def generators():
    return random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().tolist()  # noqa: NPY002


@pytest.mark.parametrize("kind", ["stacked", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.cases(4, 100)
def test_a_training_is_alone_or_refused(kind, cases, monkeypatch):
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    refused, before = 0, generators()
    for number, habits in [*enumerate(odd_models(cases[-1] + 1))][cases[0] :]:
        setup = setup_of(habits, momentum=0.9 * (number % 2))
        found = check("sequential", setup)
        assert (found is None) == bool(REFUSED.intersection(habits)), habits
        other = check(kind, setup)
        refused += other is None
        if found is None or other is None:
            assert other is None, habits
        elif kind == "processes":
            assert other == found, habits
        else:
            near = [np.frombuffer(one[0], np.float32) for one in (*found, *other)]
            for one, wanted in zip(near[len(found) :], near, strict=False):
                np.testing.assert_allclose(one, wanted, atol=1e-5, err_msg=str(habits))
        assert generators() == before
    assert refused < len(cases)


@pytest.mark.parametrize("habit", ["calls", "list"])
def test_the_model_that_a_loss_compares_with_is_alone_too(habit):
    setup = replace(setup_of((habit,)), algorithm=Moon(mu=5.0))
    executor = ExecutorChoice("sequential").build(setup)
    anchors = {name: jobs(setup, [0])[0].base * scale for name, scale in (("server", 1.0), ("last", 0.5))}
    first, second = ([one._replace(anchors=anchors) for one in jobs(setup, [0])] for _ in range(2))
    assert bits(executor.train(first)) == bits(executor.train(second))


@pytest.mark.parametrize("kind", ["sequential", pytest.param("processes", marks=pytest.mark.slow)])
def test_equal_runs_are_equal_with_evaluations_beside_trainings(kind, monkeypatch):
    """A module whose passes change one another's numbers, were it shared with the thread that evaluates."""
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    learning = {"data": DATA, "model": OddModel(habits=("calls", "hidden", "numpy-global")), "split": "equal"}
    scenario = of_learning(learning, clients=6, rounds=6, cohort=3)
    losses = [simulate(scenario, executor=kind, store=False).evaluations["loss"].to_pylist() for _ in range(3)]
    assert losses[0] == losses[1] == losses[2]
