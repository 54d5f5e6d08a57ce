"""Recorded steps have the bits of eager ones, in any slot and any company; without a GPU the same steps unrecorded."""

import itertools
import os

import numpy as np
import pytest
import torch

from fedsim.errors import FedsimError
from fedsim.learning import CNN3, MLP, EvaluationJob, LocalTraining, Scaffold, TrainingJob, TrainingSetup
from fedsim.learning.executors.graphs import GraphsExecutor
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.testing import check_executor
from tests.support.families import by_default
from tests.support.plain_loop import BRANCHING, Convolutions, Dropping, bits
from tests.support.tiny_images import Tiny

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=gpu)]
SIZES = (20, 7, 33, 2, 14, 9)
LOCALS = {
    "sgd": LocalTraining(learning_rate=0.1, batch_size=8, epochs=2),
    "momentum": LocalTraining(learning_rate=0.1, momentum=0.7, batch_size=8, epochs=2, keep_optimizer_state=True),
    "adam": LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=8, keep_optimizer_state=True),
    "all": LocalTraining(learning_rate=0.1, batch_size=8, proximal=0.3, clip_norm=0.5, weight_decay=0.1),
}

MODELS = {"mlp": MLP(hidden=(9,)), "norms": Convolutions(), "dropout": Dropping()}
STEPS = list(itertools.product(MODELS, LOCALS, ("float32", "bfloat16")))
FEW = {*(("mlp", one, "float32") for one in LOCALS), ("norms", "all", "float32"), ("dropout", "momentum", "float32")}


def jobs(base, offset=None, states=None):
    ends = np.cumsum([0, *SIZES])
    return [
        TrainingJob(
            base, np.arange(*ends[i : i + 2]), 1.0, np.random.default_rng(i), states[i] if states else {}, offset
        )
        for i in range(len(SIZES))
    ]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("model", "local", "precision"), by_default(STEPS, FEW))
def test_bits_are_those_of_eager_steps(device, model, local, precision):
    model, local = MODELS[model], LOCALS[local]
    setup = TrainingSetup(model, Tiny().load(), local, 2, precision, algorithm=Scaffold())
    graphs, eager = GraphsExecutor(setup, device), SequentialExecutor(setup, device)
    assert graphs.fingerprint == eager.fingerprint
    base = eager.flat.layout.initial
    offset = np.linspace(-0.01, 0.01, eager.flat.layout.parameters, dtype=np.float32)
    wanted = list(eager.train(jobs(base, offset)))
    assert bits(graphs.train(jobs(base, offset))) == bits(wanted)
    assert bits(graphs.train(jobs(base, offset)[::-1])[::-1]) == bits(wanted)
    assert bits(graphs.train(jobs(base, offset)[2:3])) == bits(wanted[2:3])
    if local.keep_optimizer_state:
        states = [one.state for one in wanted]
        assert bits(graphs.train(jobs(base, None, states))) == bits(eager.train(jobs(base, None, states)))
    assert graphs.evaluate([EvaluationJob(base)]) == eager.evaluate([EvaluationJob(base)])


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("tpu", "device: 'tpu' is not allowed; it must be 'cpu', 'cuda' or 'cuda:N'"),
        ("cuda:99", "torch finds [0-9]+ CUDA devices here"),
    ],
)
def test_what_cannot_be_recorded_is_refused(device, words):
    with pytest.raises(FedsimError, match=words):
        GraphsExecutor(TrainingSetup(MLP(), Tiny().load(), LocalTraining(), 0), device)


@gpu
def test_a_step_that_reads_a_value_cannot_be_recorded():
    setup = TrainingSetup(BRANCHING, Tiny().load(), LocalTraining(), 0)
    with pytest.raises(FedsimError, match="CUDA cannot record a step of this module"):
        GraphsExecutor(setup, "cuda")


def test_the_contract_holds_where_nothing_is_recorded():
    check_executor("graphs", model=Dropping())


@gpu
@pytest.mark.skipif("FEDSIM_GPU_CHECKS" not in os.environ, reason="minutes; tests/benchmarks/gpu_checks.sh runs it")
@pytest.mark.parametrize("model", [None, CNN3(), Dropping()], ids=["perceptron", "cnn3", "dropout"])
def test_the_contract_holds_on_a_gpu(model):
    check_executor("graphs", device="cuda", model=model, tolerance=10.0 if isinstance(model, Dropping) else 1e-2)
