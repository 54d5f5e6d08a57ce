"""The contract check of local algorithms."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fedsim.arrays import Vector
from fedsim.learning import (
    MLP,
    Digits,
    ExecutorChoice,
    Gathered,
    LocalAlgorithm,
    LocalTask,
    LocalTraining,
    Start,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)
from fedsim.learning.algorithms.contracts import ALGORITHM, LocalSteps, Memory
from fedsim.learning.models.layout import ModelLayout
from fedsim.testing.examination import Examination, at_least_two, locked

_FLAGS: Final = ("corrects", "remembers", "server_keeps", "changes_messages", "reweighs", "personal", "has_loss")
_STEPS: Final = 4


def check_local_algorithm(algorithm: LocalAlgorithm, *, clients: int = 3, rounds: int = 3, seed: int = 0) -> None:
    """Check that an algorithm keeps the contract of `fedsim.learning.LocalAlgorithm`; return None if it does.

    Some clients begin and end trainings of a small perceptron in each of some rounds, with differences drawn at random,
    and the server steps. The algorithm must

    * be a `LocalAlgorithm` whose flags are True or False, with a ``pull`` and a ``numbers_more`` of at least 0, and
      with ``ratios`` that fall from 1,
    * return with ``begin`` a `Start` with finite numbers of the model's shape, an offset only if it ``corrects``,
      anchors only if it ``has_loss``, and with ``end`` finite arrays by name, none unless it ``remembers``,
    * return the same again, also as a copy of itself: what it keeps is in memories alone,
    * leave the arrays of a task alone (they are read-only), and draw from no global generator,
    * return with ``own_model`` a finite model, the server's own unless it is ``personal``,
    * say ``changes_messages`` if it has a ``part``, several ``ratios`` or ``numbers_more``,
    * return with ``step`` a finite update of the model's shape, and arrays by name, if its ``server_keeps`` something,
    * return with ``weights`` one of at least 0 for each update, if it ``reweighs``,
    * train with its own ``loss``, if it ``has_loss``, to the same finite numbers each time.

    Parameters
    ----------
    algorithm : with its options
    clients, rounds : of the trial, at least 2
    seed : of the numbers, >= 0

    Raises
    ------
    ContractError
        Naming the algorithm, the fault and the place.
    ValueError
        If ``clients`` or ``rounds`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.learning import FedProx
    >>> check_local_algorithm(FedProx(mu=0.1))
    """
    at_least_two(clients=clients, rounds=rounds)
    part = Examination(algorithm)
    part.derives(algorithm, LocalAlgorithm, "begin", *_FLAGS)
    pull = algorithm.pull
    part.law(math.isfinite(pull) and pull >= 0, f"pull: {pull!r} is not allowed; it must be at least 0")
    ratios = algorithm.ratios
    falls = all(one > other > 0 for one, other in itertools.pairwise(ratios))
    part.law(falls and ratios[:1] == (1.0,), f"ratios: {ratios!r} are not allowed; they fall from 1")
    setup = TrainingSetup(MLP(hidden=(6, 4)), Digits(train_limit=60).load(), LocalTraining(batch_size=10), seed)
    _Trial(algorithm, replace(setup, algorithm=algorithm), clients, seed).check(rounds)


class _Trial(Examination):
    read_only = "the arrays of a task are read-only"

    def __init__(self, algorithm: LocalAlgorithm, setup: TrainingSetup, clients: int, seed: int) -> None:
        super().__init__(algorithm)
        self._algorithm, self._setup, self._clients = algorithm, setup, clients
        self._rng = np.random.default_rng([seed, 1])
        self._layout = _layout(setup)

    def check(self, rounds: int) -> None:
        layout, algorithm = self._layout, self._algorithm
        shared: Memory = {}
        memories: dict[int, Memory] = {}
        model, part = layout.initial, self.ask("part", algorithm.part, layout)
        size = layout.initial.size
        told: object = part
        more = self.ask("numbers_more", algorithm.numbers_more, layout)
        if told is not None:
            self.array("part", told, (size,), np.bool_)
        self.law(more >= 0, f"numbers_more returned {more!r}; at least 0 is needed")
        if part is not None or more or len(algorithm.ratios) > 1:
            self.law(algorithm.changes_messages, "changes_messages is False, though messages are not those of a model")
        for number in range(1, rounds + 1):
            drift = np.zeros(size)
            update = np.zeros(size)
            for client in range(self._clients):
                self.place = f"client {client}, round {number}"
                task = LocalTask(layout, model, shared, memories.get(client, {}), part, _STEPS, 0.1, self._clients)
                difference = self._difference(self._started(task))
                memories[client] = self._left(task, difference)
                self._check_own_model(model, memories[client])
                update += difference / self._clients
                drift += difference * algorithm.drift_weight(_STEPS, 0.1)
            self.place = f"round {number}"
            if algorithm.server_keeps:
                gathered = Gathered(locked(update), locked(drift), self._clients, shared, layout, self._clients)
                update, shared = self._answer("step", gathered, gathered=gathered)
                shared = {name: locked(values) for name, values in shared.items()}
            model = locked((model + update).astype(np.float32))
        if algorithm.reweighs:
            self.place = "weights"
            ones = np.ones(clients := self._clients)
            done = LocalSteps(ones / clients, np.arange(1, clients + 1), 0.1 * ones, 0.0, algorithm.pull)
            self._answer("weights", done, done=done)
        self.place = ""

    def _started(self, task: LocalTask) -> Start:
        start: Start = self._answer("begin", task, corrects=True, task=task)
        self.law(start.offset is None or self._algorithm.corrects, "corrects is False, though begin gave an offset")
        self.law(not start.anchors or self._algorithm.has_loss, "has_loss is False, though begin gave anchors")
        return start

    def _difference(self, start: Start) -> Vector:
        """Return what a training added: drawn, or of a real training where the algorithm has a loss."""
        if not self._algorithm.has_loss:
            drawn: Vector = locked(self._rng.normal(0, 0.1, start.model.size).astype(np.float32))
            return drawn
        first, second = (self._trained(start) for _ in range(2))
        self.same(first, second, "loss differs when it is repeated")
        self.law(bool(np.isfinite(first).all()), "loss led to numbers that are not finite")
        return first

    def _trained(self, start: Start) -> Vector:
        """Return what a training with the algorithm's loss adds to its start, shape (d,)."""
        executor = ExecutorChoice().build(self._setup)

        def train(jobs: Sequence[TrainingJob]) -> list[TrainingResult]:
            return list(executor.train(jobs))

        job = TrainingJob(start.model, np.arange(20), 1.0, np.random.default_rng(0), {}, start.offset, start.anchors)
        return self.ask("loss", train, [job])[0].difference

    def _left(self, task: LocalTask, difference: Vector) -> Memory:
        memory: Memory = self._answer("end", task, difference)
        self.law(not memory or self._algorithm.remembers, "remembers is False, though end returned a memory")
        return {name: locked(values) for name, values in memory.items()}

    def _check_own_model(self, model: Vector, memory: Memory) -> None:
        own: Vector = self._answer("own_model", self._layout, model, memory, model=model)
        theirs = self._algorithm.personal or np.array_equal(own, model)
        self.law(theirs, "personal is False, though own_model returned another model than the server's")

    def _answer(self, member: str, *arguments: object, **given: object) -> Any:
        """Return an answer of the declared kind, of finite numbers, which a copy of the algorithm gives too."""

        def asked(algorithm: LocalAlgorithm) -> Any:
            return self.kept(ALGORITHM, member, self.ask(member, getattr(algorithm, member), *arguments), **given)

        found = self.steady(member, self._algorithm, asked)
        self.law(_finite(found), f"{member} returned numbers that are not finite")
        return found


def _finite(answer: Any) -> bool:
    parts = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, tuple) else None
    return answer is None or (bool(np.isfinite(answer).all()) if parts is None else all(map(_finite, parts)))


def _layout(setup: TrainingSetup) -> ModelLayout:
    from fedsim.learning.models.flat_module import build_flat  # imports torch

    return build_flat(setup.model, setup.data.shape, setup.outputs, setup.seed).layout
