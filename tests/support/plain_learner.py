"""A learner whose every number can be worked out by hand: two parameters and a buffer, no torch."""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fedsim.arrays import Vector
from fedsim.learning import (
    MLP,
    Evaluation,
    ExecutorUsed,
    LocalAlgorithm,
    LocalTraining,
    MemoryStore,
    Model,
    Plain,
    Supervised,
    TrainingRun,
)
from fedsim.learning.blueprint import Blueprint
from fedsim.learning.executors.contracts import SEQUENTIAL, EvaluationJob, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.models.layout import ModelLayout, NarrowModel
from fedsim.learning.server_optimizers.contracts import ServerOptimizer, ServerState
from fedsim.learning.steps.release import Releases
from fedsim.learning.supervised import SupervisedLearner
from fedsim.registry import Component
from fedsim.streams import Streams
from tests.support.tiny_images import Tiny


def releasing(mechanism: Any) -> dict[str, Any]:
    return {} if mechanism is None else {"privacy": Releases(mechanism)}


class Doubling(Component):
    """A mechanism that sends twice the update, buffers in clear."""

    def release(self, update: np.ndarray, epsilon: float, buffers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where(buffers, update, 2 * update).astype(np.float32)


class Halving(ServerOptimizer):
    def step(self, model: Vector, update: Vector, state: ServerState) -> tuple[Vector, ServerState]:
        return (model + 0.5 * update.astype(float)).astype(np.float32), state


class HalfWay:
    """An executor: a training goes half the way from its base to the client's target, and the buffer counts it.

    That is one step of rate 1 on half the squared distance over 2; an offset is added to its gradient. It notes the
    clients of every batch of trainings, the first number of every training's stream by client and base, how many
    parts of the training set were scored, and at each training how many earlier differences and bases are in memory.
    """

    fingerprint = SEQUENTIAL

    def __init__(self, targets: Sequence[Sequence[float]]) -> None:
        self.targets = np.array(targets, dtype=np.float64)
        self.max_batch = 256
        self.batches: list[list[int]] = []
        self.draws: dict[tuple[int, bytes], int] = {}
        self.scored = 0
        self.alive: list[int] = []
        self.bases_alive: list[int] = []
        self._given: list[weakref.ref[np.ndarray]] = []
        self._bases: dict[int, weakref.ref[np.ndarray]] = {}

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingResult]:
        clients = [int(job.rows[0]) for job in jobs]
        self.batches.append(clients)
        for client, job in zip(clients, jobs, strict=True):
            self._bases[id(job.base)] = weakref.ref(job.base)
            self.alive.append(sum(given() is not None for given in self._given))
            self.bases_alive.append(sum(base() is not None for base in self._bases.values()))
            self.draws[client, job.base.tobytes()] = int(job.rng.integers(2**60))
            way = job.work * (self.targets[client] - job.base[:2]) / 2
            if job.offset is not None:  # one step of rate 1 down a gradient of -way + offset
                way = way - job.offset
            difference = np.array([*way, 1], np.float32)
            self._given.append(weakref.ref(difference))
            yield TrainingResult(difference, client + 0.5, client + 0.75, {})
            del difference

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        return [self._evaluate(job) for job in jobs]

    def _evaluate(self, job: EvaluationJob) -> Evaluation:
        if job.rows is None:
            return Evaluation(0.5, float(job.model.sum()))
        self.scored += 1
        return Evaluation(0.5, float(np.sum((job.model[:2] - self.targets[job.rows[0]]) ** 2)))


LAYOUT = ModelLayout(np.zeros(3, dtype=np.float32), 2, np.array([False, False, True]), 1)
USED = ExecutorUsed("half-way", "cpu", "float32", SEQUENTIAL)


def learner_of(
    setup: TrainingSetup,
    executor: Any,
    rows: Sequence[Any],
    layout: ModelLayout = LAYOUT,
    *,
    narrow: tuple[NarrowModel, ...] = (),
    mechanism: Any = None,
    store: Any = False,
    keeping: Any = None,
    seed: int = 0,
    **settings: Any,
) -> SupervisedLearner:
    run = TrainingRun(len(rows), Streams(seed), parts=releasing(mechanism), store=store, keeping=keeping)
    blueprint = Blueprint(layout, "", USED, executor.max_batch, narrow)
    return SupervisedLearner(Supervised(**settings), run, setup, blueprint, executor, rows)


def half_way_learner(
    targets: Sequence[Sequence[float]],
    local: LocalTraining | None = None,
    algorithm: LocalAlgorithm | None = None,
    executor: HalfWay | None = None,
    layout: ModelLayout = LAYOUT,
    **options: Any,
) -> tuple[SupervisedLearner, HalfWay]:
    """Return a learner over a HalfWay executor; options are those of `learner_of`, with a store by default."""
    executor = executor or HalfWay(targets)
    setup = TrainingSetup(MLP(), Tiny().load(), local or LocalTraining(), seed=0, algorithm=algorithm or Plain())
    rows = [np.array([client]) for client in range(len(targets))]
    return learner_of(setup, executor, rows, layout, **{"store": MemoryStore(), **options}), executor


def updates(learner: SupervisedLearner, model: Model, *clients: int) -> list[Any]:
    return list(learner.updates(model, np.array(clients)))
