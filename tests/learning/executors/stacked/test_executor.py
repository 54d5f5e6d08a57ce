"""The stacked executor against a plain loop over torch's own optimisers, and a client alone against a cohort."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from fedsim.errors import FedsimError
from fedsim.learning import MLP, EvaluationJob, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.stacked.executor import StackedExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.testing import check_executor
from tests.support.plain_loop import BRANCHING, Centred, Convolutions, Dropping, Ending, bits, trained
from tests.support.tiny_images import Tiny

SIZES = (5, 9, 4, 1, 13, 8)
SGD = LocalTraining(learning_rate=0.1, batch_size=4, epochs=2)
MOMENTUM = LocalTraining(learning_rate=0.05, momentum=0.9, batch_size=4, epochs=2, keep_optimizer_state=True)
ADAM = LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=4, epochs=2, keep_optimizer_state=True)


def shown(layer, scores):
    layer.kept = scores
    return scores.tanh()


BY_SIZE = Ending(function=lambda _, scores: scores * (1.5 if len(scores) % 2 else 1.0))
DRAWING = Ending(function=lambda _, scores: scores + torch.randn(scores.shape, generator=torch.Generator()))


def setup_of(model=None, local=SGD, **options):
    return TrainingSetup(model or MLP(hidden=(5,)), Tiny(side=6).load(), local, 0, **options)


def jobs_of(setup, sizes=SIZES, work=1.0, after=()):
    base = build_flat(setup.model, setup.data.shape, setup.data.classes, 0).layout.initial
    ends = np.cumsum([0, *sizes])
    states = [one.state for one in after] or [{}] * len(sizes)
    return [
        TrainingJob(base, np.arange(ends[i], ends[i + 1]), work, np.random.default_rng([7, i]), states[i])
        for i in range(len(sizes))
    ]


def compare(setup, jobs, found):
    """Compare with the loop; the tolerance is some hundred roundings of float32 over some ten steps."""
    for job, one in zip(jobs, found, strict=True):
        difference, loss, loss_rms, state = trained(setup, job)
        np.testing.assert_allclose(one.difference, difference, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose([one.loss, one.loss_rms], [loss, loss_rms], rtol=1e-5)
        assert one.state.keys() == state.keys()
        for name, values in state.items():
            assert (one.state[name].shape, one.state[name].dtype) == (values.shape, values.dtype)
            np.testing.assert_allclose(one.state[name], values, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "local",
    [
        pytest.param(SGD, id="sgd", marks=pytest.mark.slow),
        pytest.param(MOMENTUM, id="momentum", marks=pytest.mark.slow),
        pytest.param(ADAM, id="adam"),
        pytest.param(SGD.model_copy(update={"proximal": 0.5}), id="proximal"),
        pytest.param(SGD.model_copy(update={"max_batches": 3, "epochs": 4}), id="max_batches", marks=pytest.mark.slow),
        pytest.param(SGD.model_copy(update={"short_batch": "skip"}), id="skip", marks=pytest.mark.slow),
    ],
)
def test_a_perceptron_is_trained_as_by_the_loop(local):
    setup = setup_of(local=local)
    executor = StackedExecutor(setup)
    first = executor.train(jobs_of(setup))
    compare(setup, jobs_of(setup), first)
    more = {"work": 0.6, "after": first} if local.keep_optimizer_state else {"work": 0.3}
    compare(setup, jobs_of(setup, **more), executor.train(jobs_of(setup, **more)))


@pytest.mark.parametrize(
    ("model", "local"),
    [
        pytest.param(Convolutions(), MOMENTUM, id="norms"),
        pytest.param(Dropping(), ADAM, id="dropout", marks=pytest.mark.slow),
        pytest.param(Centred(), MOMENTUM, id="own-mean", marks=pytest.mark.slow),
        pytest.param(BY_SIZE, MOMENTUM, id="by-size"),
        pytest.param(Ending(function=shown), SGD, id="shown"),
    ],
)
def test_norms_see_real_samples_only_and_draws_are_those_of_the_client(model, local):
    setup = setup_of(model, local)
    sizes = [size for size in SIZES if size > 1]
    executor = StackedExecutor(setup)
    together = executor.train(jobs_of(setup, sizes))
    compare(setup, jobs_of(setup, sizes), together)
    for job, one in list(zip(jobs_of(setup, sizes), together, strict=True))[1:3]:
        assert bits(executor.train([job])) == bits([one])


SMALL_SETUP = TrainingSetup(MLP(hidden=(3,)), Tiny(samples=480).load(), MOMENTUM, 0)


@functools.cache
def small():
    return StackedExecutor(SMALL_SETUP)


@given(data=st.data())
def test_a_client_gets_the_same_bits_alone_and_in_any_cohort(data):
    sizes = data.draw(st.lists(st.integers(1, 11), min_size=1, max_size=70))
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True))
    together = small().train(jobs_of(SMALL_SETUP, sizes))
    alone = [small().train([jobs_of(SMALL_SETUP, sizes)[one]])[0] for one in chosen]
    assert bits(alone) == bits(together[one] for one in chosen)
    reference = SequentialExecutor(SMALL_SETUP).train([jobs_of(SMALL_SETUP, sizes)[one] for one in chosen])
    for found, wanted in zip(alone, reference, strict=True):
        np.testing.assert_allclose(found.difference, wanted.difference, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose([found.loss, found.loss_rms], [wanted.loss, wanted.loss_rms], rtol=1e-5)


@pytest.mark.parametrize(
    "model",
    [pytest.param(MLP(hidden=(5,)), id="perceptron"), pytest.param(Convolutions(), id="norms", marks=pytest.mark.slow)],
)
def test_evaluations_are_those_of_the_sequential_executor_alone_and_together(model):
    setup = setup_of(model)
    base = build_flat(model, setup.data.shape, setup.data.classes, 0).layout.initial
    models = [base, base * np.float32(0.5), base * np.float32(2.0)]
    rows = [None, np.arange(3), np.arange(40, 90), np.array([95])]
    jobs = [EvaluationJob(models[i % 3], rows[i % 4]) for i in range(50)]
    executor = StackedExecutor(setup)
    found = executor.evaluate(jobs)
    for one, other in zip(found, SequentialExecutor(setup).evaluate(jobs), strict=True):
        assert one.accuracy == pytest.approx(other.accuracy, abs=1e-12)
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
    assert [executor.evaluate([job])[0] for job in jobs[:5]] == found[:5]
    assert executor.evaluate([]) == []


def test_bfloat16_is_near_float32_and_says_so():
    exact, short = setup_of(), setup_of(precision="bfloat16")
    wanted, executor = StackedExecutor(exact), StackedExecutor(short)
    assert wanted.fingerprint != executor.fingerprint
    for one, other in zip(executor.train(jobs_of(short)), wanted.train(jobs_of(exact)), strict=True):
        assert not np.array_equal(one.difference, other.difference)
        # bfloat16 has 8 bits: a rounding is 0.4 %, and a gradient is a sum of some roundings.
        assert np.abs(one.difference - other.difference).max() < 0.1 * np.abs(other.difference).max()


# Slots have room for 32 MiB each, and a number of a sample takes 4 bytes: 233,016 samples of 6 x 6.
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"local": LocalTraining(batch_size=10**6)}, r"batch_size: 1000000 is not allowed.*at most 233016 of these"),
        ({"model": BRANCHING}, r"learning\.model: torch cannot map this module over clients"),
        ({"model": DRAWING}, r"learning\.model: torch cannot map this module over clients \(invalid syntax"),
    ],
)
def test_batches_without_end_and_models_with_branches_are_refused(options, message):
    with pytest.raises(FedsimError, match=message):
        StackedExecutor(setup_of(**options))


HALF = {"precision": "bfloat16", "tolerance": 0.2}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"model": Convolutions()}, {"model": Dropping()}, HALF])
def test_the_contract_holds(options):
    check_executor("stacked", **options)
