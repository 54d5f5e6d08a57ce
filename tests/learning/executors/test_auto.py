"""The executor that is chosen by rule, worked by hand, and the run that it computes."""

from dataclasses import replace

import numpy as np
import pytest

from fedsim.errors import FedsimError
from fedsim.learning import CNN3, MLP, Digits, ExecutorChoice, LocalTraining, Supervised, TrainingRun, TrainingSetup
from fedsim.learning.executors import auto, sequential
from fedsim.learning.executors.contracts import Expected
from tests.support.plain_loop import Convolutions
from tests.support.tiny_images import Tiny

LONG = Expected(samples=np.full(100, 20), cohort=20, rounds=10**4)
SHORT = replace(LONG, rounds=2)


def setup(model=None, local=None, expected=LONG, **options):
    local = local or LocalTraining(learning_rate=0.05, batch_size=7, epochs=5)
    return TrainingSetup(
        model or MLP(hidden=(4,)), Digits(train_limit=120).load(), local, 0, expected=expected, **options
    )


def chosen(monkeypatch, made, cores=2, threads=1, device="cpu"):
    monkeypatch.setattr(auto, "worker_count", lambda: cores)
    monkeypatch.setattr(sequential, "training_threads", lambda _: threads)
    monkeypatch.setattr(auto, "_has_gpu", lambda: False)
    return auto.AutoExecutor(made, device).kind


def test_estimates_are_those_of_steps_and_operations():
    # Per client 5 epochs of 3 batches: 20 clients x 10,000 rounds x 15 = 3,000,000 steps, each of 2 layers and 4 more.
    # A sample costs 1,000 operations; a client passes 100 of them: 2e10 in all.
    found = auto.estimates(setup(), 2, auto.Step(2, 1000.0))
    calls_s, flops = 3_000_000 * 6 * 25e-6, 2e10
    alone_s = calls_s + flops / 4e10
    assert found["sequential"] == pytest.approx(alone_s)
    assert found["processes"] == pytest.approx((alone_s * 1.05 + 2.5) / 2)
    # Calls of two threads take turns; with 4e14 operations arithmetic takes longer, which they share.
    for flops_each, least_s in ((1e5, calls_s), (2e7, (calls_s + 4e14 / 4e10) * 1.05 / 2)):
        shared = auto.estimates(setup(), 2, auto.Step(2, flops_each, threads=2))["sequential"]
        assert shared == pytest.approx(least_s)
    assert found["stacked"] == pytest.approx(0.4 + 1.5 * calls_s / 20 + flops / 1e10)


def test_small_models_are_stacked_large_ones_shared_and_short_runs_neither(monkeypatch):
    assert chosen(monkeypatch, setup()) == "stacked"
    assert chosen(monkeypatch, setup(expected=SHORT)) == "sequential"
    assert chosen(monkeypatch, setup(expected=None)) == "sequential"
    large = replace(setup(CNN3()), data=Tiny(side=22).load())
    assert chosen(monkeypatch, large) == "processes"
    assert chosen(monkeypatch, large, cores=1) == "sequential"
    assert chosen(monkeypatch, large, threads=2) == "sequential"


def test_where_rounding_is_amplified_the_bits_are_those_of_the_sequential_executor(monkeypatch):
    adam = LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=7, epochs=5)
    assert chosen(monkeypatch, setup(local=adam)) == "stacked"
    assert chosen(monkeypatch, setup(Convolutions(), adam)) == "processes"
    assert chosen(monkeypatch, setup(amplified=True)) == "processes"


@pytest.mark.parametrize(
    ("settings", "amplified"),
    [
        ({}, False),
        ({"compression": "top-k"}, True),
        ({"aggregation": {"kind": "krum", "byzantine": 1}}, True),
        ({"aggregation": "median"}, True),
    ],
)
def test_lossy_steps_amplify_rounding(settings, amplified, monkeypatch):
    from fedsim.learning import blueprint
    from fedsim.streams import Streams

    class FoundError(Exception):
        pass

    def prepare(setup, *_):
        raise FoundError(setup.amplified)

    monkeypatch.setattr(blueprint, "prepare", prepare)
    with pytest.raises(FoundError, match=str(amplified)):
        Supervised.model_validate({"data": Tiny(), **settings}).build(TrainingRun(6, Streams(0)))


def test_no_executor_for_a_device_names_what_each_of_them_says():
    with pytest.raises(FedsimError, match=r"(?s)device 'abacus'.*sequential: .*'abacus' is not allowed"):
        auto.AutoExecutor(setup(), "abacus")


def test_it_is_the_default_and_the_environment_names_another(monkeypatch):
    monkeypatch.delenv("FEDSIM_EXECUTOR", raising=False)
    assert (ExecutorChoice.of().kind, ExecutorChoice.of().device) == ("auto", "auto")
    monkeypatch.setenv("FEDSIM_EXECUTOR", "sequential")
    assert (ExecutorChoice.of().kind, ExecutorChoice.of().device) == ("sequential", "cpu")
