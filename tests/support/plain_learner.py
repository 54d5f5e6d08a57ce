"""A learner whose every number can be worked out by hand: two parameters and a buffer, no torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedsim.learning import Evaluation, MemoryStore, Model, Supervised
from fedsim.learning.lineage.handles import TrainingResult, TrainingTask
from fedsim.learning.supervised import SupervisedLearner
from fedsim.registry import Component
from fedsim.streams import Streams
from tests.support.tiny_images import Tiny


class Doubling(Component):
    """A mechanism that sends twice the update, buffers in clear."""

    def release(self, update: np.ndarray, epsilon: float, buffers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where(buffers, update, 2 * update).astype(np.float32)


class Halving(Component):
    """A server's rule that goes half the way of federated averaging."""

    def aggregate(self, base: np.ndarray, differences: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        total = sum((w * h.astype(float) for w, h in zip(weights, differences, strict=True)), np.zeros(base.size))
        return (base + 0.5 * total).astype(np.float32)


class HalfWay:
    """An executor: a training goes half the way from its base to the client's target, and the buffer counts it.

    Attributes
    ----------
    batches : clients of every batch of trainings
    luck : first number of every training's stream, by client and base
    scored : how many parts of the training set were scored
    """

    def __init__(self, targets: Sequence[Sequence[float]]) -> None:
        self.targets = np.array(targets, dtype=np.float64)
        self.initial = np.zeros(3, dtype=np.float32)
        self.parameters, self.smallest_batch = 2, 1
        self.exempt_mask = np.array([False, False, True])
        self.batches: list[list[int]] = []
        self.luck: dict[tuple[int, bytes], int] = {}
        self.scored = 0

    def train(self, tasks: Sequence[TrainingTask]) -> list[TrainingResult]:
        clients = [int(task.rows[0]) for task in tasks]
        self.batches.append(clients)
        results = []
        for client, task in zip(clients, tasks, strict=True):
            self.luck[client, task.base.tobytes()] = int(task.rng.integers(2**60))
            way = task.work * (self.targets[client] - task.base[:2]) / 2
            results.append(TrainingResult(np.array([*way, 1], np.float32), client + 0.5, client + 0.75, {}))
        return results

    def evaluate(self, vector: np.ndarray) -> Evaluation:
        return Evaluation(0.5, float(vector.sum()))

    def score(self, vector: np.ndarray, rows: Sequence[np.ndarray]) -> list[Evaluation]:
        self.scored += len(rows)
        return [Evaluation(0.5, float(np.sum((vector[:2] - self.targets[part[0]]) ** 2))) for part in rows]


def half_way_learner(targets: Sequence[Sequence[float]], **options: Any) -> tuple[SupervisedLearner, HalfWay]:
    """Return a learner over a HalfWay executor; options are the settings' ``server`` and the learner's others."""
    executor = HalfWay(targets)
    settings = Supervised(data=Tiny(), server=options.pop("server", Supervised().server))
    learner = SupervisedLearner(
        data=Tiny().load(),
        rows=[np.array([client]) for client in range(len(targets))],
        executor=executor,
        settings=settings,
        seed=0,
        streams=Streams(0),
        **{"store": MemoryStore(), **options},
    )
    return learner, executor


def updates(learner: SupervisedLearner, model: Model, *clients: int) -> list[Any]:
    return list(learner.updates(model, np.array(clients)))
