"""Results belong to what made them: whatever an own part reads, in the same process, finds no other part's results."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fedsim import Component, simulate
from fedsim.learning import (
    Aggregator,
    Compressor,
    LocalAlgorithm,
    MemoryStore,
    Metric,
    Schedule,
    ServerOptimizer,
    Start,
)
from fedsim.learning.aggregation.contracts import Mean
from fedsim.learning.algorithms.widths import HeteroFL
from fedsim.learning.steps.contracts import UpdateStep
from fedsim.learning.tasks.of_labels import Classification
from tests.support.families import by_default
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 5)).astype(np.float32), RNG.integers(0, 3, 60)
SCALE = 1.0


class Config:
    scale = 1.0


def linear():
    torch.manual_seed(0)
    return nn.Linear(5, 3)


def of_file():
    net = linear()
    net.load_state_dict(torch.load("w.pt"))
    return net


def of_constant():
    net = linear()
    net.bias.data *= SCALE
    return net


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 3)

    def forward(self, x):
        return self.inner(x) * Config.scale


class Dropped(Scaled):
    def forward(self, x):
        return nn.functional.dropout(self.inner(x), 0.1 * Config.scale, self.training)


class ScaledLoss(Classification):
    def losses(self, scores, targets):
        return super().losses(scores, targets) * Config.scale


class Doubled(Metric):
    def sums(self, scores, targets):
        return Config.scale * scores.amax(1)[:, None]


class Pulled(LocalAlgorithm):
    corrects = True

    def begin(self, task):
        return Start(task.model, 0.1 * Config.scale * task.model[: task.layout.parameters])


class SteppingLate(ServerOptimizer):
    """Looks at the configuration at its fifth step alone."""

    def init(self, parameters):
        return {"count": np.zeros(1)}

    def step(self, model, update, state):
        scale = Config.scale if state["count"][0] == 4 else 1.0
        return model + np.float32(scale) * update, {"count": state["count"] + 1}


class ShrunkWhole(Aggregator):
    """Looks at the configuration where there are as many numbers as a perceptron has."""

    def combine(self, updates, weights, parameters):
        return np.float32(Config.scale if parameters > 12 else 1.0) * np.median(updates, 0)


class CoarseFirst(Compressor):
    """Looks at the configuration for the first array of the model alone."""

    def bits(self, tensors):
        return 16.0 * sum(tensors)

    def compress(self, update, tensors, rng):
        found = update.copy()
        if tensors[0] == 15:
            found[:15] /= np.float32(1 + Config.scale)
        return found


class Weighing(LocalAlgorithm):
    reweighs = True

    def weights(self, done):
        return done.weight * Config.scale


class Rolling(HeteroFL):
    def shift(self, version):
        return int(Config.scale) * version


class Remembering(UpdateStep):
    """Adds a part of what a client has sent before."""

    remembers = True

    def client(self, message):
        sent = message.numbers
        message.numbers = sent + np.float32(0.1 * Config.scale) * message.memory.get("sent", np.float32(0))
        message.memory = {**message.memory, "sent": sent}


class AddingAtServer(UpdateStep):
    def server(self, senders, weights):
        return lambda: 0.01 * Config.scale * np.arange(18)


class WithSteps(Mean):
    named: str

    def update_steps(self, run):
        return [{"client": Remembering, "server": AddingAtServer}[self.named]()]


class FallingOnce(Schedule):
    def factors(self, version, steps):
        return np.full(steps, Config.scale if version == 2 else 1.0)


class Shifted(Component):
    def release(self, update, epsilon, buffers, rng):
        return update + np.float32(0.1 * Config.scale)


def rows():
    return X * Config.scale, Y


def put_weights(value):
    torch.save({"weight": torch.zeros(3, 5), "bias": torch.tensor([value, 0.0, -value])}, "w.pt")


def set_global(value):
    globals()["SCALE"] = value


CASES = {
    "file of weights": {"model": of_file},
    "constant of a module": {"model": of_constant},
    "dropout alone": {"model": Dropped},
    "handed module": {"model": Scaled()},
    "task": {"task": ScaledLoss(), "model": linear},
    "metric": {"task": Classification(metrics=(Doubled(),))},
    "local algorithm": {"algorithm": Pulled()},
    "server, later": {"server": SteppingLate(), "rounds": 6},
    "aggregation of many": {"aggregation": ShrunkWhole()},
    "compression, first array": {"compression": CoarseFirst()},
    "weights": {"algorithm": Weighing()},
    "window": {
        "algorithm": Rolling(widths=(1.0, 0.5), client_widths=(1.0, 0.5, 0.5, 0.5)),
        "model": {"kind": "mlp", "hidden": [8]},
    },
    "step with a memory": {"aggregation": WithSteps(named="client")},
    "step at the server": {"aggregation": WithSteps(named="server")},
    "schedule, once": {"local": {"batch_size": 8, "schedule": FallingOnce()}},
    "mechanism": {"privacy": {"budget": {"kind": "unlimited", "epsilon": 1.0}, "mechanism": Shifted()}},
    "data": {"data": rows},
}
CHANGES = {"file of weights": put_weights, "constant of a module": set_global}


def set_configuration(value):
    Config.scale = value


@pytest.fixture(autouse=True)
def _restored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    set_configuration(1.0)
    set_global(1.0)


def evaluations(store, rounds=3, privacy="none", **learning):
    base = {"data": (X, Y), "model": "logistic-regression", "local": {"batch_size": 8}, **learning}
    scenario = of_learning(base, rounds=rounds, cohort=None, privacy=privacy)
    history = simulate(scenario, store=store, executor="sequential")
    return history.evaluations.select(["loss", "accuracy", "metrics"]).to_pylist(), history


# A file, a task, data and a rule that looks late by default.
FEW = ["file of weights", "task", "data", "server, later"]


@pytest.mark.parametrize("case", by_default(CASES, FEW))
def test_what_a_part_reads_is_part_of_its_identity(case):
    put, learning = CHANGES.get(case, set_configuration), CASES[case]
    store = MemoryStore()
    put(1.0)
    first, _ = evaluations(store, **learning)
    put(3.0)
    right, _ = evaluations(False, **learning)
    assert right != first
    assert evaluations(store, **learning)[0] == right
    put(1.0)
    computed = store.misses
    assert evaluations(store, **learning)[0] == first
    assert store.misses - computed <= 1  # found again


class Counting(Aggregator):
    """Counts in a table of its own, against its contract."""

    counts: dict[str, float]

    def combine(self, updates, weights, parameters):
        self.counts["calls"] = self.counts.get("calls", 0.0) + 1
        return (weights @ updates / 2).astype(np.float32) * np.float32(self.counts["calls"])


def test_a_rule_with_a_state_begins_alike_in_each_run_and_shares_nothing():
    rule, store = Counting(counts={}), MemoryStore()
    (first, history), (again, _) = (evaluations(store, aggregation=rule) for _ in range(2))
    assert first == again
    assert any("gives other numbers for the same arrays" in note for note in history.remarks)


def test_a_file_that_no_number_shows_is_part_of_the_identity():
    def late():
        Path("later.txt").read_text()
        return linear()

    store = MemoryStore()
    Path("later.txt").write_text("1")
    evaluations(store, model=late)
    Path("later.txt").write_text("2")
    hits = store.hits
    evaluations(store, model=late)
    assert store.hits == hits


def test_a_part_that_asks_another_program_shares_nothing_and_says_so():
    def asking():
        subprocess.run([sys.executable, "-c", ""], check=True)
        return linear()

    store = MemoryStore()
    _, history = evaluations(store, model=asking)
    assert any("has asked for more than files (subprocess.Popen)" in note for note in history.notes)
    hits = store.hits
    evaluations(store, model=asking)
    assert store.hits == hits
