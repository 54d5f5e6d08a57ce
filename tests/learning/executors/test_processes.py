"""The executor of worker processes gives the sequential executor's bits, and leaves nothing behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from fedsim.errors import FedsimError, PartError
from fedsim.learning import MLP, EvaluationJob, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.executors.processes import ProcessesExecutor
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.registry import Component
from fedsim.testing import check_executor
from tests.support.interrupts import heard
from tests.support.plain_loop import bits
from tests.support.tiny_images import Tiny

ROOT = Path(__file__).parents[3]
WIDTHS = {"inner": 4}
MOMENTUM = LocalTraining(learning_rate=0.1, momentum=0.5, batch_size=8, epochs=2, keep_optimizer_state=True)
ADAM = LocalTraining(optimizer="adam", learning_rate=0.01, batch_size=8, keep_optimizer_state=True)


class Drawn(Component):
    """A class in a function, which no other process can import, with dropout and batch normalisation."""

    def build(self, shape, classes):
        class Net(nn.Sequential):
            pass

        inputs = int(np.prod(shape))
        return Net(
            nn.Flatten(), nn.Linear(inputs, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(), nn.Linear(20, classes)
        )


def jobs(base, states=None):
    """Return 9 jobs of different lengths; the last starts from a model of its own."""
    bases = [base] * 8 + [base * np.float32(0.5)]
    rows = [np.arange(5 * i, 5 * i + 3 + 9 * (i % 3)) for i in range(9)]
    return [
        TrainingJob(bases[i], rows[i], (1.0, 0.4)[i % 2], np.random.default_rng(i), states[i] if states else {})
        for i in range(9)
    ]


def compare(data, model, local, numbers, patch, precision="float32"):
    setup = TrainingSetup(model, data, local, 4, precision)
    reference = SequentialExecutor(setup)
    base = reference.flat.layout.initial
    first = list(reference.train(jobs(base)))
    second = list(reference.train(jobs(base, [one.state for one in first])))
    probes = [EvaluationJob(base), EvaluationJob(base + first[0].difference, np.arange(450)), EvaluationJob(base)]
    for number in numbers:
        patch.setenv("FEDSIM_WORKERS", str(number))
        executor = ProcessesExecutor(setup)
        assert executor.workers == number
        assert executor.fingerprint == reference.fingerprint
        found = list(executor.train(jobs(base)))
        assert bits(found) == bits(first)
        assert not any(one.difference.flags.writeable for one in found)
        assert bits(executor.train(jobs(base, [one.state for one in found]))) == bits(second)
        assert executor.evaluate(probes) == reference.evaluate(probes)
        assert executor.evaluate([]) == []
        assert list(executor.train([])) == []


def overlap(data):
    """Evaluate in one thread while another trains, and leave a training half read."""
    setup = TrainingSetup(MLP(hidden=(9,)), data, LocalTraining(epochs=3), seed=4)
    executor, reference = ProcessesExecutor(setup), SequentialExecutor(setup)
    base = reference.flat.layout.initial
    many = [job for _ in range(5) for job in jobs(base)]
    trained = []
    thread = threading.Thread(target=lambda: trained.extend(executor.train(many)))
    thread.start()
    scores = [executor.evaluate([EvaluationJob(base)]) for _ in range(4)]
    thread.join()
    next(iter(executor.train(jobs(base))))
    assert scores == [reference.evaluate([EvaluationJob(base)])] * 4
    assert bits(trained) == bits(reference.train([job for _ in range(5) for job in jobs(base)]))


def test_bits_are_those_of_the_sequential_executor(monkeypatch):
    """One test, since every process that tests pays two seconds for each worker."""
    data = Tiny(samples=500).load()
    compare(data, Drawn(), MOMENTUM, (2, 1), monkeypatch)
    monkeypatch.setenv("FEDSIM_WORKERS", "2")
    compare(data, MLP(hidden=(30,)), ADAM, (2,), monkeypatch, "bfloat16")
    overlap(data)
    monkeypatch.setitem(WIDTHS, "inner", 6)  # set here alone, after the workers have begun
    compare(data, OfAVariable(), MOMENTUM, (2,), monkeypatch)
    executor = ProcessesExecutor(TrainingSetup(Broken(), data, ADAM, 1))
    with pytest.raises(PartError, match=r"Broken.build failed with ValueError: not here"):
        executor.train(jobs(SequentialExecutor(TrainingSetup(Broken(), data, ADAM, 1)).flat.layout.initial))


class OfAVariable(Component):
    def build(self, shape, classes):
        width = WIDTHS["inner"]
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), width), nn.Linear(width, classes))


class Broken(Component):
    """Fails in every process but the first."""

    def build(self, shape, classes):
        if multiprocessing.parent_process() is not None:
            raise ValueError("not here")
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, Drawn()])
def test_the_contract_is_kept(model):
    check_executor("processes", model=model)


class Held(Component):
    """A model that cannot be sent, since it holds a lock."""

    held: Any = None

    def build(self, shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))


def test_what_cannot_be_done_is_refused_in_words(tiny, monkeypatch):
    setup = TrainingSetup(MLP(), tiny, LocalTraining(), seed=0)
    with pytest.raises(FedsimError, match="device: 'cuda' is not allowed with the executor 'processes'"):
        ProcessesExecutor(setup, "cuda")
    with pytest.raises(FedsimError, match=r"learning\.model: .*\.Held cannot be sent to worker processes \(.*lock"):
        ProcessesExecutor(replace(setup, model=Held(held=threading.Lock())))
    for wrong in ("0", "-1", "two"):
        monkeypatch.setenv("FEDSIM_WORKERS", wrong)
        with pytest.raises(FedsimError, match=f"FEDSIM_WORKERS: '{wrong}' is not allowed; it must be a whole number"):
            ProcessesExecutor(setup)


SCRIPT = """
import os, sys, time
import numpy as np
from torch import nn
from fedsim import Component, Scenario, simulate

class Softmax(Component):
    def build(self, shape, classes):
        return Net(int(np.prod(shape)), classes)

class Net(nn.Sequential):
    def __init__(self, inputs, classes):
        super().__init__(nn.Flatten(), nn.Linear(inputs, classes))

print("once", os.getpid(), flush=True)
tables = {
    "name": "script", "crowd": {"clients": 6}, "network": "pause-two-speed", "rounds": {"count": int(sys.argv[1])},
    "learning": {"data": {"kind": "digits", "train_limit": 240}, "model": Softmax(), "local": {"epochs": 50}},
    "selector": {"kind": "uniform", "cohort": 3},
}
losses = [
    simulate(Scenario(**tables), executor=kind).evaluations.column("loss").to_pylist()
    for kind in ("processes", "sequential")
]
assert losses[0] == losses[1]
print("same", flush=True)
"""


def started(tmp_path, rounds):
    """Start a script without a guard that defines its model itself."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "FEDSIM_WORKERS": "2", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, str(script), str(rounds)],
        preexec_fn=heard,  # noqa: PLW1509
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


PATIENCE_S = 600.0
"""Longest wait for another process, on a machine with much else to do; a test that passes waits some seconds."""


def workers_of(parent):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"spawn_main" in command:
            found.append(int(folder.name))
    return found


def busy_workers(parent):
    """Wait for a worker that has computed for a while, and return it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = workers_of(parent)
        if len(found) == 1 and all(cpu_s(one) > 4 for one in found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"one busy worker expected, {found} found")


def cpu_s(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gone(processes):
    end = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{one}").exists() for one in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def shared_memory():
    return set(Path("/dev/shm").glob("*"))  # noqa: S108


@pytest.mark.slow
def test_a_script_without_a_guard_may_define_the_model(tmp_path):
    before = shared_memory()
    script = started(tmp_path, 3)
    out, error = script.communicate(timeout=PATIENCE_S)
    assert (script.returncode, error) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["once", "same"]
    assert shared_memory() <= before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, number):
    script = started(tmp_path, 10**6)
    workers = busy_workers(script.pid)
    script.send_signal(number)
    _, error = script.communicate(timeout=PATIENCE_S)
    assert gone(workers)
    assert script.returncode == -number
    assert "KeyboardInterrupt" in error if number == signal.SIGINT else error == ""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_worker_that_is_killed_is_an_error_that_says_so(tmp_path):
    script = started(tmp_path, 10**6)
    workers = busy_workers(script.pid)
    os.kill(workers[0], signal.SIGKILL)
    _, error = script.communicate(timeout=PATIENCE_S)
    assert script.returncode == 1
    assert "a worker process of the executor 'processes' was ended by SIGKILL, which the system sends when" in error
    assert gone(workers)
