"""Rules of the user's own that draw from the process's generators, or keep a state: equal runs are equal."""

import random

import numpy as np
import pytest
import torch

from fedsim import Component, simulate
from fedsim.learning import Aggregator, Compressor, LocalAlgorithm, Metric, Schedule, ServerOptimizer, Start
from fedsim.learning.algorithms.personal import PersonalPart
from fedsim.learning.tasks.of_labels import Classification
from tests.support.families import by_default
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 5)).astype(np.float32), RNG.integers(0, 3, 60)


def noised(numbers):
    """Return numbers with noise of NumPy's generator of the process."""
    return (numbers + 0.01 * np.random.normal(size=numbers.shape)).astype(np.float32)  # noqa: NPY002


class NoisyAggregation(Aggregator):
    def combine(self, updates, weights, parameters):
        return noised(weights @ updates)


class NoisyServer(ServerOptimizer):
    def step(self, model, update, state):
        return noised(model + update), {}


class NoisyCompression(Compressor):
    def bits(self, tensors):
        return 32.0 * sum(tensors)

    def compress(self, update, tensors, rng):
        return update + 0.01 * torch.randn(update.size).numpy()


class NoisyOffset(LocalAlgorithm):
    corrects = True

    def begin(self, task):
        return Start(task.model, noised(np.zeros(task.layout.parameters)))


class Guessed(Metric):
    def sums(self, scores, targets):
        return scores.amax(1)[:, None]

    def value(self, sums, samples):
        return random.random()  # noqa: S311


class Shuffled(Component):
    """Divides by a permutation of NumPy's generator of the process."""

    def assign(self, labels, classes, clients, streams):
        order = np.random.permutation(labels.size)  # noqa: NPY002
        return [np.sort(order[client::clients]) for client in range(clients)]


class GuessedPart(PersonalPart):
    def part(self, layout):
        return np.arange(layout.initial.size) % 2 == 0

    def own_model(self, layout, model, memory):
        return noised(super().own_model(layout, model, memory))


class Slower(Schedule):
    """Counts its calls, against its contract."""

    seen: dict[str, int]

    def factors(self, version, steps):
        self.seen["calls"] = self.seen.get("calls", 0) + 1
        return np.full(steps, random.random() / self.seen["calls"])  # noqa: S311


class Weaker(Component):
    seen: dict[str, int]

    def release(self, update, epsilon, buffers, rng):
        self.seen["calls"] = self.seen.get("calls", 0) + 1
        return noised(update / self.seen["calls"])


BUDGET = {"kind": "unlimited", "epsilon": 1.0}
CASES = {
    "aggregation": {"aggregation": NoisyAggregation()},
    "server": {"server": NoisyServer()},
    "compression": {"compression": NoisyCompression()},
    "algorithm": {"algorithm": NoisyOffset()},
    "split": {"split": Shuffled()},
    "personal model": {"algorithm": GuessedPart()},
    "metric": {"task": Classification(metrics=(Guessed(),))},
    "schedule with a state": {"local": {"schedule": Slower(seen={})}},
    "mechanism with a state": {"privacy": {"budget": BUDGET, "mechanism": Weaker(seen={})}},
}


@pytest.mark.parametrize("case", by_default(CASES, ["aggregation", "compression", "split", "schedule with a state"]))
def test_equal_runs_are_equal_whatever_generators_have_given(case):
    learning = {"data": (X, Y), "model": "logistic-regression", **CASES[case]}
    scenario = of_learning(learning, rounds=3, cohort=None, privacy=learning.pop("privacy", "none"))
    found = []
    for seed, executor in ((1, "sequential"), (2, "sequential"), (3, "stacked")):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        found.append(simulate(scenario, store=False, executor=executor).evaluations)
    assert found[0].equals(found[1])
    losses = [one["loss"].to_numpy() for one in found]
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-5)
