"""The step of the sequential executor against plain PyTorch, in both precisions, and from several threads."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from fedsim.errors import FedsimError
from fedsim.learning import MLP, EvaluationJob, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.trainer import Trainer
from tests.support.plain_loop import Centred, Convolutions, Dropping, trained
from tests.support.tiny_images import Tiny


@pytest.mark.parametrize(
    ("model", "local"),
    [
        (Dropping(), LocalTraining(learning_rate=0.1, batch_size=8, epochs=2)),
        (Convolutions(), LocalTraining(learning_rate=0.1, momentum=0.7, batch_size=8, keep_optimizer_state=True)),
        (Convolutions(), LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=8, keep_optimizer_state=True)),
    ],
    ids=["dropout", "momentum", "adam"],
)
def test_convolutions_agree_with_an_ordinary_loop(model, local):
    """Weights that lie with their channels last come back in the order of the model, and so do states.

    Of 41 samples the last one is no batch where there is normalisation.
    """
    data, rows = Tiny(samples=60, side=9).load(), np.arange(3, 44)
    setup = TrainingSetup(model, data, local, seed=2)
    executor = SequentialExecutor(setup)
    base = executor.flat.layout.initial
    state = {}
    for _ in range(2):  # the second training goes on from the state of the first one
        found = next(executor.train([TrainingJob(base, rows, 1.0, np.random.default_rng(5), state)]))
        difference, loss, loss_rms, wanted = trained(
            setup, TrainingJob(base, rows, 1.0, np.random.default_rng(5), state)
        )
        np.testing.assert_allclose(found.difference, difference, atol=2e-5)
        assert (found.loss, found.loss_rms) == pytest.approx((loss, loss_rms), rel=1e-5)
        assert found.state.keys() == (wanted.keys() if local.keep_optimizer_state else set())
        for name, values in found.state.items():
            np.testing.assert_allclose(values, wanted[name], rtol=1e-3, atol=2e-5)
        state = found.state


@pytest.mark.parametrize("model", [Convolutions(), MLP(hidden=(20,))])
def test_bfloat16_is_near_float32_under_a_name_of_its_own(model):
    """bfloat16 keeps 8 bits: products miss by up to 2**-8, and a few steps by little more, seen from the change."""
    data, rows = Tiny(samples=60, side=9).load(), np.arange(40)
    local = LocalTraining(learning_rate=0.05, momentum=0.5, batch_size=8, keep_optimizer_state=True)
    found = []
    for precision in ("float32", "bfloat16", "bfloat16"):
        executor = SequentialExecutor(TrainingSetup(model, data, local, 2, precision))
        base = executor.flat.layout.initial
        (result,) = executor.train([TrainingJob(base, rows, 1.0, np.random.default_rng(5))])
        assert result.difference.dtype == np.float32
        assert {part.dtype for part in result.state.values()} == {np.dtype(np.float32)}
        found.append((executor.fingerprint, result, executor.evaluate([EvaluationJob(base + result.difference)])[0]))
    (name, exact, score), (other, near, near_score), (_, again, same_score) = found
    assert (name, other) == ("sequential", "sequential-bfloat16")
    np.testing.assert_array_equal(near.difference, again.difference)
    assert near_score == same_score
    apart = np.linalg.norm(near.difference - exact.difference)
    assert 0 < apart < 0.05 * np.linalg.norm(exact.difference)
    assert near.loss == pytest.approx(exact.loss, rel=0.02)
    assert near_score.loss == pytest.approx(score.loss, rel=0.02)


def test_calls_from_several_threads_do_not_mix(tiny):
    executor = SequentialExecutor(TrainingSetup(MLP(hidden=(8,)), tiny, LocalTraining(epochs=4), seed=1))
    base, threads = executor.flat.layout.initial, torch.get_num_threads()

    def train():
        (result,) = executor.train([TrainingJob(base, np.arange(90), 1.0, np.random.default_rng(0))])
        return result.difference.tobytes()

    alone, score, seen = train(), executor.evaluate([EvaluationJob(base)]), []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(lambda: seen.extend(train() for _ in range(10)))
        scores = [executor.evaluate([EvaluationJob(base)]) for _ in range(10)]
    assert seen == [alone] * 20
    assert scores == [score] * 10
    assert torch.get_num_threads() == threads


def test_fast_lets_threads_draw_in_turn_and_names_its_results(monkeypatch):
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    data, before = Tiny(samples=60, side=9).load(), torch.get_rng_state()
    executor = SequentialExecutor(TrainingSetup(Dropping(), data, LocalTraining(batch_size=8), 1, fast=True))
    assert (executor.fingerprint, executor.threads) == ("sequential-fast", 2)
    base = executor.flat.layout.initial
    jobs = [TrainingJob(base, np.arange(30), 1.0, np.random.default_rng(i)) for i in range(4)]
    assert len({one.difference.tobytes() for one in executor.train(jobs)}) == 4
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("model", "local", "at_a_time"),
    [
        (Convolutions(), LocalTraining(batch_size=8, momentum=0.5, keep_optimizer_state=True), 3),
        (Convolutions(), LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=8), 3),
        (Dropping(), LocalTraining(batch_size=8), 1),  # draws come from the generator of the process
        (Centred(), LocalTraining(batch_size=8), 1),  # code of a user's
    ],
)
def test_bits_are_the_same_on_any_number_of_threads(model, local, at_a_time, monkeypatch):
    monkeypatch.setenv("FEDSIM_WORKERS", "3")
    data, threads = Tiny(samples=60, side=9).load(), torch.get_num_threads()
    found, before = [], torch.get_rng_state()
    for count in (1, 4):
        torch.set_num_threads(count)
        try:
            executor = SequentialExecutor(TrainingSetup(model, data, local, 1))
            base = executor.flat.layout.initial
            jobs = [TrainingJob(base, np.arange(i, 30 + 3 * i), 1.0, np.random.default_rng(i)) for i in range(8)]
            trained = [(one.difference.tobytes(), one.loss, one.loss_rms) for one in executor.train(jobs)]
            found.append((trained, executor.evaluate([EvaluationJob(base, np.arange(60).repeat(9))])))
            assert torch.get_num_threads() == count
        finally:
            torch.set_num_threads(threads)
        assert executor.threads == min(count, at_a_time)
    assert found[0] == found[1]
    assert torch.equal(torch.get_rng_state(), before)


def test_after_a_failure_no_thread_begins_another_training(monkeypatch, tiny):
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    executor, begun = SequentialExecutor(TrainingSetup(MLP(hidden=(8,)), tiny, LocalTraining(), seed=1)), []

    def compute(_, job, place, **__):
        begun.append(place)
        time.sleep(0.02)
        if place == 0:
            raise FedsimError("it fails")

    monkeypatch.setattr(Trainer, "compute", compute)
    job = TrainingJob(executor.flat.layout.initial, np.arange(9), 1.0, np.random.default_rng(0))
    with pytest.raises(FedsimError, match="it fails"):
        executor.train([job] * 40)
    assert len(begun) <= 4


def test_a_look_at_what_a_model_draws_leaves_its_buffers(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    setup = TrainingSetup(Convolutions(), Tiny(side=9).load(), LocalTraining(), seed=0)
    norm = SequentialExecutor(setup).flat.module[1]
    assert norm.running_mean.tolist() == [0.0] * 3
    assert norm.num_batches_tracked == 0
