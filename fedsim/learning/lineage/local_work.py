"""What a local algorithm makes of trainings: their starts, the clients' states, and the server's sum."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, Vector, read_only
from fedsim.errors import ScenarioError
from fedsim.learning.aggregation.combining import Incoming, WeightedSum
from fedsim.learning.algorithms.contracts import (
    ALGORITHM,
    LOCAL_ALGORITHMS,
    Gathered,
    LocalAlgorithm,
    LocalSteps,
    LocalTask,
    Memory,
    Start,
)
from fedsim.learning.algorithms.plain import FedProx, Plain
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.generators import generators_of
from fedsim.learning.lineage.asked import OWN, State, Update, naming
from fedsim.learning.lineage.behaviour import is_own
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.layout import ModelLayout, NarrowModel, Widths, held
from fedsim.learning.schedules import SCHEDULE, ConstantRate
from fedsim.learning.server_optimizers.contracts import ServerOptimizer, ServerState
from fedsim.learning.steps.listed import Steps
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32

_MOST_PARTS: Final = 256
"""Parts of the model that stay in memory."""


class LocalWork:
    def __init__(
        self,
        algorithm: LocalAlgorithm,
        local: LocalTraining,
        layout: ModelLayout,
        narrow: Sequence[NarrowModel],
        samples: IntArray,
        streams: Streams,
    ) -> None:
        self.own: Final = is_own(algorithm) or is_own(local.schedule)
        self.algorithm = ALGORITHM.checked(algorithm, corrects=algorithm.corrects)
        self._local, self._layout, self._narrow, self._samples, self._streams = local, layout, narrow, samples, streams
        self._shared = self.algorithm.part(layout)
        if self._shared is not None and not self._shared[: layout.parameters].any():
            raise ScenarioError(
                f"learning.algorithm: {LOCAL_ALGORITHMS.kind_of(algorithm)!r} leaves all trained numbers of this model "
                "with the clients, so that nothing is shared; allowed: an algorithm or a model of which a part is"
            )
        self._schedule = None if type(local.schedule) is ConstantRate else SCHEDULE.checked(local.schedule)
        self.plain = type(algorithm) in (Plain, FedProx) and self._schedule is None
        self._parts: dict[tuple[int, int], BoolArray] = {}

    def part(self, training: Update) -> BoolArray | None:
        """Return which numbers of the model a client receives, trains and sends, shape (d,); None for all."""
        if not training.level:
            return self._shared
        key = training.level, self.algorithm.shift(training.base.version)
        if key not in self._parts:
            if len(self._parts) >= _MOST_PARTS:
                self._parts.clear()
            self._parts[key] = held(self._layout, self._narrow[training.level].shapes, key[1])
        return self._parts[key]

    def bits(self, steps: Steps) -> tuple[float, float]:
        """Return the bits of a model, and of an update, with what the algorithm sends beside them."""
        more = BITS_PER_FLOAT32 * self.algorithm.numbers_more(self._layout)
        numbers = self._layout.initial.size if self._shared is None else np.count_nonzero(self._shared)
        return float(BITS_PER_FLOAT32 * numbers + more), steps.bits(self._shared) + more

    def widths(self, scale: float, steps: Steps) -> Widths | None:
        """Return the widths among which that of a participation is chosen; None if there is one alone."""
        narrow = self._narrow
        if len(narrow) <= 1:
            return None
        ratios = [one.ratio for one in narrow]
        down = scale * BITS_PER_FLOAT32 * np.array([one.numbers for one in narrow], dtype=np.float64)
        up = scale * np.array([steps.bits(held(self._layout, one.shapes)) for one in narrow])
        given = self.algorithm.given_widths
        places = None if given is None else np.array([ratios.index(ratio) for ratio in given], dtype=np.int64)
        return Widths(np.array(ratios), down, up, np.array([one.flops for one in narrow]), places)

    def starts(self, trainings: Sequence[Update]) -> list[Start]:
        """Return what each training starts from; those of one model and part share an array."""
        cut: dict[tuple[int, int], Vector] = {}
        found = []
        for training in trainings:
            with naming([training]), self._drawing(*training.keys):
                start = self.algorithm.begin(self._task(training))
                part = self.part(training) if training.level else None
            if part is not None:
                key = id(start.model), id(part)
                if key not in cut:
                    cut[key] = np.where(part, start.model, np.float32(0.0))
                start = start._replace(model=cut[key])
            found.append(start)
        return found

    def left(self, training: Update, difference: Vector) -> tuple[Vector, OptimizerState]:
        """Return what a training adds to the model, shape (d,), and the client's state, by name."""
        with self._drawing(*training.keys):
            memory = self.algorithm.end(self._task(training), difference) if self.algorithm.remembers else {}
        part = self.part(training)
        if part is not None:
            difference = read_only(np.where(part, difference, np.float32(0.0)))
        return difference, {OWN + name: values for name, values in memory.items()}

    def own_model(self, model: Vector, state: State, client: int, version: int) -> Vector:
        with self._drawing(client, version):
            return self.algorithm.own_model(self._layout, model, _own(state.value or {}))

    def sum_of(
        self, trainings: Sequence[Update], weights: FloatArray
    ) -> Callable[[ServerOptimizer, Vector], Incoming] | None:
        """Return what begins the sum of updates of trainings, which are added in their order; None for a plain one."""
        if self.algorithm.reweighs:
            steps = np.array([self._steps(one) for one in trainings], dtype=np.int64)
            rates = np.array([self._mean_rate(one) for one in trainings], dtype=np.float64)
            pull = self._local.proximal + self.algorithm.pull
            found = self.algorithm.weights(LocalSteps(weights, steps, rates, self._local.momentum, pull))
            return lambda optimizer, model: ReweighedSum(optimizer, model, found.tolist(), self._layout.parameters)
        if self.algorithm.server_keeps:
            factors = [self._drift_weight(one) for one in trainings]
            return lambda optimizer, model: GatheringSum(
                optimizer, model, self.algorithm, self._layout, factors, self._samples.size
            )
        parts = [self.part(one) for one in trainings]
        if all(part is None for part in parts):
            return None
        return lambda optimizer, model: OverlappingSum(optimizer, model, parts)

    def _task(self, training: Update) -> LocalTask:
        memory = training.memory_of(OWN)
        return LocalTask(
            self._layout,
            training.base.vector,
            _own(training.base.server_state or {}),
            memory,
            self.part(training),
            self._steps(training),
            self._mean_rate(training),
            self._samples.size,
        )

    def rates(self, training: Update) -> FloatArray | None:
        if self._schedule is None:
            return None
        with naming([training]), self._drawing(*training.keys):
            factors = self._schedule.factors(training.base.version, self._steps(training))
        return self._local.learning_rate * factors

    def _drawing(self, *keys: int) -> AbstractContextManager[None]:
        """Let draws of the user's own algorithm and schedule depend on client, version and repeat alone."""
        return generators_of(self._streams.digest("own-training", *keys)) if self.own else nullcontext()

    def _drift_weight(self, training: Update) -> float:
        with naming([training]):
            return self.algorithm.drift_weight(self._steps(training), self._mean_rate(training))

    def _mean_rate(self, training: Update) -> float:
        rates = self.rates(training)
        return self._local.learning_rate if rates is None else float(rates.mean())

    def _steps(self, training: Update) -> int:
        samples = self._samples[training.client] if training.draw is None else training.draw.taken
        return int(self._local.batches(samples, training.work, self._layout.smallest_batch))


class OverlappingSum(WeightedSum):
    """A sum of updates of parts of the model: each number is averaged over the clients that hold it.

    With W the sum of all weights and W_j that of the clients that hold number j, it gains ``W / W_j`` times the
    weighted sum; a number that none holds stays as it is (Diao et al., "HeteroFL", ICLR 2021, equation 2).
    """

    def __init__(self, optimizer: ServerOptimizer, model: Vector, parts: Sequence[BoolArray | None]) -> None:
        super().__init__(optimizer, model)
        self._parts, self._added = parts, 0
        self._differences, self._held, self._weight = np.zeros(model.size), np.zeros(model.size), 0.0

    def add(self, difference: Vector, weight: float) -> None:
        part = self._parts[self._added]
        self._added += 1
        self._weight += weight
        held = weight if part is None else part * weight
        self._held += held
        self._differences += difference.astype(np.float64) * held

    def stepped(self, parameters: int, model: Vector, state: ServerState | None) -> tuple[Vector, ServerState | None]:
        scale = np.divide(self._weight, self._held, out=np.zeros(model.size), where=self._held != 0)
        self.add_whole(self._differences * scale)
        return super().stepped(parameters, model, state)


class ReweighedSum(WeightedSum):
    """A sum of updates whose trained numbers have weights of their own."""

    def __init__(self, optimizer: ServerOptimizer, model: Vector, weights: Sequence[float], parameters: int) -> None:
        super().__init__(optimizer, model)
        self._weights, self._parameters, self._added = weights, parameters, 0

    def add(self, difference: Vector, weight: float) -> None:
        weighted: FloatArray = difference.astype(np.float64)
        weighted[: self._parameters] *= self._weights[self._added]
        weighted[self._parameters :] *= weight
        self.add_whole(weighted)
        self._added += 1


class GatheringSum(WeightedSum):
    """A sum of updates from which the server's part of a local algorithm makes its step."""

    def __init__(
        self,
        optimizer: ServerOptimizer,
        model: Vector,
        algorithm: LocalAlgorithm,
        layout: ModelLayout,
        factors: Sequence[float],
        clients: int,
    ) -> None:
        super().__init__(optimizer, model)
        self._algorithm, self._layout, self._factors, self._clients = algorithm, layout, factors, clients
        self._update, self._drift, self._added = np.zeros(model.size), np.zeros(model.size), 0

    def add(self, difference: Vector, weight: float) -> None:
        super().add(difference, weight)
        whole: FloatArray = difference.astype(np.float64)
        self._update += whole * weight
        self._drift += whole * self._factors[self._added]
        self._added += 1

    def stepped(self, parameters: int, model: Vector, state: ServerState | None) -> tuple[Vector, ServerState | None]:
        before = state or {}
        rest = {name: values for name, values in before.items() if not name.startswith(OWN)}
        gathered = Gathered(self._update, self._drift, self._added, _own(before), self._layout, self._clients)
        step = self._algorithm.step(gathered)
        if step.update is not gathered.update:
            self.add_whole(step.update - gathered.update)
        found, after = super().stepped(parameters, model, rest or None)
        return found, {**(after or {}), **{OWN + name: values for name, values in step.shared.items()}}


def _own(state: OptimizerState | ServerState) -> Memory:
    return {name.removeprefix(OWN): values for name, values in state.items() if name.startswith(OWN)}
