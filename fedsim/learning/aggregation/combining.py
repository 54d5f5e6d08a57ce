"""How a server combines what has arrived: weighted differences, whole models, and the step of its optimiser."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol, get_args

import numpy as np

from fedsim.arrays import FloatArray, Vector, all_of, read_only
from fedsim.errors import ScenarioError
from fedsim.learning.aggregation.contracts import AGGREGATION, AGGREGATIONS, Aggregator
from fedsim.learning.server_optimizers.contracts import SERVER_OPTIMIZER, ServerOptimizer, ServerState, sum_of

Of = Literal["difference", "model"]
"""What an aggregation combines: differences, or whole models."""
_OF: Final = get_args(Of)

_SUM_TOLERANCE: Final = 1e-9
"""By how much the sum of a mean's weights may miss 1."""


class Incoming(Protocol):
    """Takes the updates of one aggregation, one after the other."""

    def add(self, difference: Vector, weight: float) -> None: ...

    def stepped(self, parameters: int, model: Vector, state: ServerState | None) -> tuple[Vector, ServerState | None]:
        """Return the next model and state of the server optimiser."""


def incoming(aggregator: Aggregator, optimizer: ServerOptimizer, model: Vector, count: int) -> Incoming:
    if aggregator.adds_up:
        return WeightedSum(optimizer, model)
    return Gathered(aggregator, optimizer, model.size, count)


class WeightedSum:
    """A weighted sum of updates, in float64 and in the order in which they are added."""

    def __init__(self, optimizer: ServerOptimizer, model: Vector) -> None:
        self._optimizer = optimizer
        self._total = model.astype(np.float64) if optimizer.adds_update else np.zeros(model.size)
        self._weighted = np.empty(model.size)

    def add(self, difference: Vector, weight: float) -> None:
        # Cast first: a product of arrays of two types is worked out in pieces, through a buffer.
        weighted = self._weighted
        weighted[:] = difference
        weighted *= weight
        self._total += weighted

    def add_whole(self, addend: FloatArray) -> None:
        """Add what has no weight, such as the server's noise, shape (d,)."""
        self._total += addend

    def stepped(self, parameters: int, model: Vector, state: ServerState | None) -> tuple[Vector, ServerState | None]:
        total = self._total.astype(np.float32)
        if self._optimizer.adds_update:
            return total, None
        return stepped(self._optimizer, parameters, model, total, state)


class Gathered:
    """The updates of an aggregation for a rule that needs them all at once; those without a weight are left out."""

    def __init__(self, aggregator: Aggregator, optimizer: ServerOptimizer, size: int, count: int) -> None:
        self._aggregator, self._optimizer = aggregator, optimizer
        self._updates = np.empty((count, size), dtype=np.float32)
        self._weights: list[float] = []

    def add(self, difference: Vector, weight: float) -> None:
        if weight > 0:
            self._updates[len(self._weights)] = difference
            self._weights.append(weight)

    def stepped(self, parameters: int, model: Vector, state: ServerState | None) -> tuple[Vector, ServerState | None]:
        weights = np.array(self._weights)
        share = float(weights.sum())
        updates = self._updates[: weights.size]
        rule = AGGREGATION.checked(self._aggregator)
        found = rule.combine(read_only(updates), read_only(weights / share), parameters)
        update = share * found.astype(np.float64)
        if self._optimizer.adds_update:
            return sum_of(model, update), None
        return stepped(self._optimizer, parameters, model, update.astype(np.float32), state)


def has_enough(aggregator: Aggregator, weights: FloatArray) -> bool:
    if aggregator.adds_up:
        return True
    if np.any(weights < 0):
        raise ScenarioError(
            f"learning.aggregation: {AGGREGATIONS.kind_of(aggregator)!r} takes no update with a weight below 0, here "
            f"{float(weights.min()):g}"
        )
    return bool(np.count_nonzero(weights) >= AGGREGATION.checked(aggregator).least_updates)


def stepped(
    optimizer: ServerOptimizer, parameters: int, model: Vector, update: Vector, state: ServerState | None
) -> tuple[Vector, ServerState]:
    """Return the next model and state after one update; only parameters are stepped on, buffers are averaged."""
    rule = SERVER_OPTIMIZER.checked(optimizer)
    before = rule.init(parameters) if state is None else state
    found, after = rule.step(read_only(model[:parameters]), read_only(update[:parameters]), before)
    buffers = sum_of(model[parameters:], update[parameters:])
    # A copy, so that an optimiser that writes on its result later does not change other models.
    kept = {name: read_only(values) for name, values in after.items()}
    return np.concatenate([np.asarray(found, dtype=np.float32), buffers]), kept


def difference_from(current: Vector, base: Vector, sent: Vector) -> Vector:
    """Return ``base + sent - current``, in float64 and rounded to float32 once."""
    if np.array_equal(base, current):
        return sent
    return (sent.astype(np.float64) + base - current).astype(np.float32)


def weighted_mean(vectors: Sequence[Vector], weights: FloatArray) -> Vector:
    total = np.zeros(vectors[0].size)
    for vector, weight in zip(vectors, weights.tolist(), strict=True):
        total += weight * vector.astype(np.float64)
    return total.astype(np.float32)


def checked_weights(weights: FloatArray, count: int, what: str, *, of_a_mean: bool = False) -> FloatArray:
    chosen = np.array(weights, dtype=np.float64)
    if chosen.shape != (count,) or not all_of(np.isfinite(chosen)):
        raise ValueError(f"weights: {weights!r}; one finite number for each of {count} {what}")
    if of_a_mean and (np.any(chosen < 0) or abs(chosen.sum() - 1) > _SUM_TOLERANCE):
        raise ValueError(f"weights: {weights!r}; for a mean of {what} they are at least 0 and sum to 1")
    return chosen


def check_of(of: str) -> None:
    if of not in _OF:
        raise ValueError(f"of: {of!r} is not allowed; it must be one of {', '.join(_OF)}")
