"""Cost of evaluations: of the one at time 0 in a run, and of a model on the samples of each client.

    python tests/benchmarks/client_evaluations.py                          # under a minute
    python tests/benchmarks/client_evaluations.py --turns 1 --rounds 5

Prints ratios of processor times, medians over turns in which all ways come one after another:

- a run of `scenarios/quickstart.toml` with the evaluation at time 0 over one without it,
- a perceptron on 20 samples of each of 1,000 clients by the learner with each executor, over a plain loop of PyTorch
  that calls the module once for each client; and one pass over all samples in batches of 200, over the same. The time
  of worker processes is not counted.

Not a test: it asserts nothing.
"""

import argparse
from pathlib import Path
from statistics import median

import numpy as np
import torch
from crowds import seconds
from torch.nn import functional

from fedsim import Component, Scenario
from fedsim.learning import Dataset
from fedsim.learning.executors.choice import ExecutorChoice
from fedsim.learning.models.trained import TrainedModel
from fedsim.learning.settings import Supervised
from fedsim.learning.supervised import SupervisedLearner
from fedsim.simulation import Simulation
from fedsim.streams import Streams

CLIENTS, EACH, FEATURES, CLASSES, AT_ONCE = 1000, 20, 60, 10, 200
QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


class Drawn(Component):
    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the samples of all clients, and a few more as a test set."""
        rng, count = np.random.default_rng(0), CLIENTS * EACH
        x = rng.normal(size=(count + AT_ONCE, FEATURES)).astype(np.float32)
        y = rng.integers(0, CLASSES, count + AT_ONCE)
        return Dataset(x[:count], y[:count], x[count:], y[count:], classes=CLASSES)


def learner_with(executor: str) -> SupervisedLearner:
    """Return a learner of a perceptron with 64 hidden units, whose clients have equal shares."""
    settings = Supervised.model_validate({"data": Drawn(), "split": "equal", "model": {"hidden": [64]}})
    learner = settings.build(CLIENTS, Streams(0), executor=ExecutorChoice.of(executor))
    assert isinstance(learner, SupervisedLearner)
    return learner


def of_clients(executor: str) -> float:
    """Return the processor time of one evaluation on all clients' samples, after one that has warmed up."""
    learner = learner_with(executor)
    first = learner.initial()
    learner.evaluate_clients(first)
    model = learner.aggregate(first, learner.updates(first, np.arange(2)), np.full(2, 0.5))
    learner.vector(model)
    return seconds(lambda: learner.evaluate_clients(model))


def plain(size: int) -> float:
    """Return the processor time of a plain loop over all samples, a number of them at a time."""
    learner, data = learner_with("sequential"), Drawn().load()
    module = TrainedModel(learner.architecture, learner.export(learner.initial())).module()
    x, y = torch.from_numpy(data.train_x.copy()), torch.from_numpy(data.train_y.copy())

    def passes() -> None:
        with torch.inference_mode():
            for first in range(0, len(y), size):
                scores = module(x[first : first + size])
                labels = y[first : first + size]
                float((scores.argmax(1) == labels).sum())
                float(functional.cross_entropy(scores, labels, reduction="sum"))

    passes()
    return seconds(passes)


def run(rounds: int, *, start: bool) -> float:
    """Return the processor time of a run without figures and store."""
    changes = {"rounds.count": rounds, "results.evaluate_start": start}
    return seconds(Simulation(Scenario.load(QUICKSTART).replace(changes), store=False, executor="sequential").run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20, help="of the quick start")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    run(2, start=True)
    starts, ways = [], {name: [] for name in ("sequential", "stacked", "processes", "one pass")}
    for _ in range(chosen.turns):
        starts.append(run(chosen.rounds, start=True) / run(chosen.rounds, start=False))
        loop = plain(EACH)
        for name, ratios in ways.items():
            ratios.append((plain(AT_ONCE) if name == "one pass" else of_clients(name)) / loop)
    print(f"evaluation at time 0, run of {chosen.rounds} rounds: {median(starts):.3f} of a run without it")
    print(f"{CLIENTS} clients of {EACH} samples, plain loop over the clients = 1:")
    for name, ratios in ways.items():
        print(f"  {name}: {median(ratios):.2f}")


if __name__ == "__main__":
    main()
