"""A run that finds all results in the store needs no torch; what it is told of its model is what a build says."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedsim
from fedsim import Scenario
from fedsim.errors import FedsimError
from fedsim.learning import CNN3, MLP, ExecutorChoice, LocalTraining, MemoryStore, TrainingSetup, Work
from fedsim.learning.blueprint import Blueprint, DeferredExecutor, _built, _digest, prepare
from fedsim.learning.data.images.digits import Digits
from fedsim.learning.executors import sequential
from fedsim.simulation import Simulation

TABLES = {
    "name": "blueprint",
    "crowd": {"clients": 8},
    "learning": {"data": {"kind": "digits", "train_limit": 160}, "model": {"kind": "mlp", "hidden": [4]}},
    "network": "pause-two-speed",
    "rounds": {"count": 2},
    "selector": {"kind": "uniform", "cohort": 3},
}
SAMPLES = np.full(8, 20)
CHOICE = ExecutorChoice("sequential", rounds=2, cohort=3)


def setup(**changes):
    return replace(TrainingSetup(MLP(hidden=(4,)), Digits().load(), LocalTraining(), 7), **changes)


def scenario(**changes):
    return Scenario(**{**TABLES, **changes})


@pytest.mark.slow
def test_a_what_if_in_another_process_imports_neither_torch_nor_scikit_learn(tmp_path):
    fast, slow = ({"compute": {"kind": "flops", "flops_per_s": rate}} for rate in (1e6, 1e3))
    first = Simulation(scenario(devices=fast), store=tmp_path)
    first.run()
    assert first.context.learner.work == Work(trained=6, evaluated=3)
    script = (
        "import json, sys; from fedsim import Scenario; from fedsim.simulation import Simulation\n"
        f"run = Simulation(Scenario(**{TABLES!r}, devices={slow!r}), store={str(tmp_path)!r})\n"
        "print([f'{x:.17g}' for x in run.run().evaluations['accuracy'].to_pylist()])\n"
        "print(run.context.learner.work, run.executor_used.kind)\n"
        "print([name for name in ('torch', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 - own text
    accuracy, work, imported = done.stdout.splitlines()
    plain = Simulation(scenario(devices=slow), store=False).run()
    assert accuracy == str([f"{x:.17g}" for x in plain.evaluations["accuracy"].to_pylist()])
    assert work == f"{Work(trainings_found=6, evaluations_found=3)} sequential"
    assert imported == "[]"


def test_results_of_other_kernels_are_others(monkeypatch):
    store, found = MemoryStore(), []
    for kernels in ("", "", "COMPATIBLE"):
        monkeypatch.setenv("MKL_CBWR", kernels)
        run = Simulation(scenario(), store=store)
        run.run()
        found.append(run.context.learner.work.trained)
    assert found == [6, 0, 6]


@pytest.mark.slow
def test_two_checkouts_share_a_store_and_neither_refuses_what_the_other_left(tmp_path):
    other, package = tmp_path / "other", Path(fedsim.__file__).parent
    shutil.copytree(package, other / "fedsim", ignore=shutil.ignore_patterns("__pycache__"))
    stacked = other / "fedsim" / "learning" / "executors" / "stacked" / "executor.py"
    stacked.write_text(stacked.read_text().replace('f"stacked:', 'f"another:'))
    script = (
        "from fedsim import Scenario; from fedsim.simulation import Simulation\n"
        f"run = Simulation(Scenario(**{TABLES!r}), store={str(tmp_path / 'store')!r}, executor='stacked')\n"
        "run.run(); print(run.context.learner.work.trained, run.executor_used.fingerprint.partition(':')[0])"
    )

    def trained(root):
        own = {"cwd": root, "env": {**os.environ, "PYTHONPATH": str(root)}}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, capture_output=True, text=True, check=True, **own).stdout.split()  # noqa: S603 - own text

    places = [package.parent, other, package.parent, other]
    assert [trained(place) for place in places] == [
        ["6", "stacked"],
        ["6", "another"],
        ["0", "stacked"],
        ["0", "another"],
    ]


def test_what_is_not_in_the_store_is_computed_as_without_one(tmp_path):
    Simulation(scenario(), store=tmp_path).run()
    longer = scenario(rounds={"count": 4})
    found, plain = (Simulation(longer, store=store) for store in (tmp_path, False))
    assert found.run().evaluations.equals(plain.run().evaluations)
    assert found.context.learner.work == Work(trained=6, trainings_found=6, evaluated=2, evaluations_found=3)
    assert found.executor_used == plain.executor_used


@pytest.mark.parametrize("model", [MLP(hidden=(4,)), CNN3()], ids=["mlp", "batch-normalisation"])
def test_what_is_kept_is_what_a_build_says(model):
    from fedsim.learning.models.flat_module import build_flat

    data = Digits().load()
    train_x, test_x = (np.repeat(np.repeat(images, 4, axis=1), 4, axis=2) for images in (data.train_x, data.test_x))
    data = replace(data, train_x=train_x, test_x=test_x)
    chosen = setup(model=model, data=data)
    made, _ = _built(chosen, CHOICE, SAMPLES)
    kept = Blueprint.from_arrays(made.to_arrays())
    layout = build_flat(model, data.shape, data.classes, 7).layout
    vector = np.arange(layout.initial.size, dtype=np.float32)
    assert (kept.numerics, kept.used, kept.max_batch) == (made.numerics, made.used, 256)
    assert kept.layout.entries == layout.entries
    assert (kept.layout.parameters, kept.layout.smallest_batch) == (layout.parameters, layout.smallest_batch)
    np.testing.assert_array_equal(kept.layout.initial, layout.initial)
    np.testing.assert_array_equal(kept.layout.exempt, layout.exempt)
    for name, values in layout.named(vector).items():
        np.testing.assert_array_equal(kept.layout.named(vector)[name], values)


def test_all_that_a_model_and_an_executor_are_built_of_is_told_apart(monkeypatch):
    digests = [
        _digest(setup(**changes), replace(CHOICE, **choice), samples)
        for changes, choice, samples in [
            ({}, {}, SAMPLES),
            ({"seed": 8}, {}, SAMPLES),
            ({"model": MLP(hidden=(5,))}, {}, SAMPLES),
            ({"local": LocalTraining(epochs=2)}, {}, SAMPLES),
            ({}, {"executor": "stacked"}, SAMPLES),
            ({}, {"precision": "bfloat16"}, SAMPLES),
            ({}, {"rounds": 3}, SAMPLES),
            ({}, {}, SAMPLES + 1),
        ]
    ]
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    digests.append(_digest(setup(), CHOICE, SAMPLES))
    assert len(set(digests)) == len(digests)


def test_an_executor_whose_word_has_changed_is_refused_once(monkeypatch):
    store = MemoryStore()
    prepare(setup(), CHOICE, SAMPLES, store)
    monkeypatch.setattr(sequential.SequentialExecutor, "fingerprint", "another")
    _, executor = prepare(setup(), CHOICE, SAMPLES, store)
    with pytest.raises(FedsimError, match="executor: 'sequential' on this machine has changed"):
        executor.train([])
    again, executor = prepare(setup(), CHOICE, SAMPLES, store)
    assert again.used.fingerprint == "another"
    assert list(executor.train([])) == []


def test_an_executor_of_ones_own_is_built_at_once():
    made = []

    def make(chosen, device):
        made.append(device)
        return sequential.SequentialExecutor(chosen, device)

    store = MemoryStore()
    for _ in range(2):
        _, executor = prepare(setup(), replace(CHOICE, executor=make), SAMPLES, store)
        assert isinstance(executor, sequential.SequentialExecutor)
    assert made == ["cpu", "cpu"]


class Named:
    fingerprint, max_batch = "named", 3

    def train(self, jobs):
        return [f"trained {job}" for job in jobs]

    def evaluate(self, jobs):
        return [f"evaluated {job}" for job in jobs]


def test_nothing_is_built_before_a_job_comes_and_then_once():
    built = []
    executor = DeferredExecutor("named", 3, lambda: built.append(1) or Named())
    assert (executor.fingerprint, executor.max_batch, built) == ("named", 3, [])
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(executor.train, [i]) for i in range(8)] + [pool.submit(executor.evaluate, [9])]
    assert [list(one.result()) for one in found] == [*([f"trained {i}"] for i in range(8)), ["evaluated 9"]]
    assert built == [1]
