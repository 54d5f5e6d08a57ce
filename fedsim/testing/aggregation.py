"""The contract check of aggregations."""

from collections.abc import Callable

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Vector
from fedsim.learning import Aggregator
from fedsim.learning.aggregation.contracts import Updates
from fedsim.testing.examination import Examination, at_least_two

_ROUNDING = 1e-4


def check_aggregation(aggregator: Aggregator, *, parameters: int = 40, more: int = 7, seed: int = 0) -> None:
    """Check that an aggregation keeps the contract of `fedsim.learning.Aggregator`; return None if it does.

    It is asked with as many updates as it needs and with more, with and without buffers, and for one parameter. It must

    * be an `Aggregator` whose ``adds_up`` is True or False and whose ``least_updates`` is a whole number from 1,
    * return with ``combine`` one finite floating-point number for each of an update,
    * return the same again for the same arguments, whatever it was asked in between, and as a copy of itself: it keeps
      nothing, and draws no random numbers,
    * leave updates and weights alone (they are read-only), and not write later on what it has returned,
    * give the same, but for rounding, for the same updates in another order,
    * give one update, but for rounding, if all are this one,
    * with ``adds_up`` give the weighted mean, but for rounding.

    Parameters
    ----------
    aggregator : with its options
    parameters : of the usual model, at least 2
    more : updates beyond those that it needs, at least 2
    seed : of updates and weights, >= 0

    Raises
    ------
    ContractError
        Naming the aggregation, the fault and the trial.
    ValueError
        If ``parameters`` or ``more`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.learning import AGGREGATIONS
    >>> check_aggregation(AGGREGATIONS.make('median'))
    """
    at_least_two(parameters=parameters, more=more)
    part = Examination(aggregator)
    part.derives(aggregator, Aggregator, "combine", "adds_up")
    least = aggregator.least_updates
    given: object = least
    whole = isinstance(given, int) and not isinstance(given, bool) and given >= 1
    part.law(whole, f"least_updates: {least!r} is not allowed; it must be a whole number of at least 1")
    for title, count, buffers, size in (
        ("as many updates as it needs", least, 0, parameters),
        ("more updates", least + more, 0, parameters),
        ("buffers", least + more, 3, parameters),
        ("one parameter", least + more, 0, 1),
    ):
        rng = np.random.default_rng([seed, count, size])
        updates = rng.standard_normal((count, size + buffers)).astype(np.float32)
        weights = rng.uniform(0.5, 1.0, count)
        _Trial(aggregator, title, updates, weights / weights.sum(), size).check(rng.permutation(count))


class _Trial(Examination):
    read_only = "updates and weights are read-only"

    def __init__(self, aggregator: Aggregator, title: str, updates: Updates, weights: FloatArray, size: int) -> None:
        super().__init__(aggregator, f"in the trial with {title}")
        self.aggregator, self.updates, self.weights, self.size = aggregator, updates, weights, size

    def check(self, order: IntArray) -> None:
        """Ask again and again, for the same and for changed updates."""
        kept = self.steady("combine", self.aggregator, lambda one: self._ask(one.combine))
        self._near(self._ask(self.aggregator.combine, order), kept, "differs for the same updates in another order")
        alike = np.repeat(self.updates[:1], len(self.updates), axis=0)
        again = self._combined(self.aggregator.combine, alike, self.weights)
        self._near(again, self.updates[0], "is another update than the one that all are")
        if self.aggregator.adds_up:
            mean = self.weights @ self.updates.astype(np.float64)
            self._near(kept, mean, "is not the weighted mean, which it must be with adds_up = True")

    def _ask(self, combine: Callable[..., object], order: IntArray | None = None) -> Vector:
        places = np.arange(len(self.updates)) if order is None else order
        return self._combined(combine, self.updates[places], self.weights[places])

    def _combined(self, combine: Callable[..., object], updates: Updates, weights: FloatArray) -> Vector:
        answer = self.ask("combine", combine, updates, weights, self.size)
        floating = answer.dtype if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" else np.float32
        return self.array("combine", answer, updates.shape[1:], floating, least=-np.inf)

    def _near(self, found: Vector, wanted: FloatArray | Vector, fault: str) -> None:
        self.law(np.allclose(found, wanted, rtol=_ROUNDING, atol=_ROUNDING), f"combine: the answer {fault}")
