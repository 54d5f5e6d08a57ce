"""Measurements of delivered updates, `fedsim.measurements.MEASUREMENTS`, and deviations of stale ones from fresh."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, Vector
from fedsim.learning.lineage.computation import Computation, result_of
from fedsim.learning.lineage.handles import UpdateHandle
from fedsim.measurements import check_needs

Updates = Sequence[UpdateHandle]


def measure(results: Computation, updates: Updates, needs: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return each measure asked for, one element (or row) per update."""
    check_needs(needs)
    if needs:
        results.materialize([update.training for update in updates])
    ways: dict[str, Callable[[], NDArray[Any]]] = {
        "loss": lambda: np.array([result_of(update).loss for update in updates], dtype=np.float64),
        "loss_rms": lambda: np.array([result_of(update).loss_rms for update in updates], dtype=np.float64),
        "accuracy_gain": lambda: _accuracy_gain(results, updates),
        "update_norm": lambda: np.sqrt([_square_sum(_parameters_sent(results, update)) for update in updates]),
        "update": lambda: _vectors(results, updates),
    }
    return {need: ways[need]() for need in needs}


def deviations(results: Computation, fresh: Updates, fresh_weights: FloatArray | None, stale: Updates) -> FloatArray:
    """Return REFL's Lambda_s of each stale update, shape (len(stale),).

    The rule ``|(u + n m) / (n + 1) - m|^2 / |m|^2`` is worked out as ``|u - m|^2 / ((n + 1)^2 |m|^2)``, which loses
    no digits where u and m are close.
    """
    weights = np.ones(len(fresh)) if fresh_weights is None else np.asarray(fresh_weights, dtype=np.float64)
    if weights.shape != (len(fresh),) or not np.all(np.isfinite(weights) & (weights >= 0)):
        raise ValueError(f"fresh_weights: {fresh_weights!r}; one finite number >= 0 for each of {len(fresh)} updates")
    if not len(stale) or not weights.sum() > 0:
        return np.zeros(len(stale))
    results.materialize([update.training for update in (*fresh, *stale)])
    mean = np.zeros(results.layout.parameters)
    for update, share in zip(fresh, (weights / weights.sum()).tolist(), strict=True):
        mean += share * _parameters_sent(results, update).astype(np.float64)
    scale = (len(fresh) + 1) ** 2 * _square_sum(mean)
    if scale == 0:
        return np.zeros(len(stale))
    return np.array([_square_sum(_parameters_sent(results, update) - mean) / scale for update in stale])


def _parameters_sent(results: Computation, update: UpdateHandle) -> Vector:
    return results.sent(update)[: results.layout.parameters]


def _square_sum(vector: NDArray[np.floating[Any]]) -> float:
    # Not by a dot product, whose last digits depend on how many threads the library underneath uses.
    return float(np.square(vector, dtype=np.float64).sum())


def _accuracy_gain(results: Computation, updates: Updates) -> FloatArray:
    """Return accuracy after minus before, shape (n,); all that start from one base are evaluated together."""
    client = [update.client for update in updates]
    bases = {update.base.digest: results.vector(update.base) for update in updates}
    before = results.scores([(update.base.digest, bases[update.base.digest]) for update in updates], client)
    own = [(update.training.digest, bases[update.base.digest] + result_of(update).difference) for update in updates]
    after = results.scores(own, client)
    return np.array([later.accuracy - sooner.accuracy for later, sooner in zip(after, before, strict=True)])


def _vectors(results: Computation, updates: Updates) -> NDArray[np.float32]:
    vectors = np.empty((len(updates), results.layout.parameters), dtype=np.float32)
    for row, update in zip(vectors, updates, strict=True):
        row[:] = _parameters_sent(results, update)
    return vectors
