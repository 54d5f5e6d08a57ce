"""How the updates that have arrived become the next model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.learning import Learner, Model, Update
from fedsim.rounds.aggregation.staleness import StalenessLaw


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """Updates that wait to be merged, in the order of their clients' starts and places in the cohort.

    Attributes
    ----------
    client : ids, shape (n,)
    updates : one for each
    base : the model that each client started from
    weight : of each before staleness and scaling, >= 0, shape (n,)
    total : what the weights of a whole cohort add up to
    staleness : aggregations since each client started, shape (n,)
    arrived_s : when each arrived, shape (n,)
    picked_before : whether the last aggregation used a new update of the same client, shape (n,)
    held : whether it was kept back by the last merge, shape (n,)
    """

    client: IntArray
    updates: Sequence[Update]
    base: Sequence[Model]
    weight: FloatArray
    total: float
    staleness: IntArray
    arrived_s: FloatArray
    picked_before: BoolArray
    held: BoolArray


@dataclass(frozen=True)
class Aggregated:
    """What has become of arrivals.

    Attributes
    ----------
    model : the next one
    weight : with which each update was merged, shape (n,); NaN for those that went into no model
    held : which are kept back for the next merge, shape (n,); None for none
    """

    model: Model
    weight: FloatArray
    held: BoolArray | None = None


class AggregationRule(Protocol):
    """Turns arrivals into the next model; may have memory, and lives as long as one run.

    It may have two more methods: ``sent(client, model)`` is told who starts from which model, and
    ``deprecate(model)`` is called at the beginning of every round, when the policy has a ``lag``, before those that
    are too far behind are cut off.
    """

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return which updates shall wait to be merged; the others are thrown away as they arrive.

        Parameters
        ----------
        staleness : aggregations since each client started, shape (n,)
        late : whose round was over before it delivered, shape (n,)
        """
        ...

    def merge(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return the next model; called only if enough has arrived."""
        ...


@dataclass(frozen=True)
class FedAvgRule:
    """FedAvg over fresh updates and, discounted, stale ones.

    An update of weight w and staleness s counts ``w * law(s)``; the counts are scaled to add up to the cohort's
    weight (1 for an average).

    Attributes
    ----------
    law : how much stale updates count; None throws away what is late
    max_staleness : those staler than this are thrown away; None for no limit
    """

    learner: Learner
    law: StalenessLaw | None = None
    max_staleness: int | None = None

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return which updates come in time, or are to be discounted and not too stale."""
        return ~late if self.law is None else fresh_enough(staleness, self.max_staleness)

    def merge(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return the next model and the weights."""
        counts = arrivals.weight
        if self.law is not None:
            counts = counts * discount(self.learner, self.law, arrivals)
        share = counts.sum()
        weight = counts / share * arrivals.total if share > 0 else np.zeros(counts.size)
        return Aggregated(self.learner.aggregate(model, arrivals.updates, weight), weight)


@dataclass(frozen=True)
class FedBuffRule:
    """FedBuff's step; see `fedsim.rounds.policies.asynchronous.FedBuff`."""

    learner: Learner
    buffer: int
    server_rate: float
    law: StalenessLaw
    max_staleness: int | None

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return which updates are not too stale."""
        return fresh_enough(staleness, self.max_staleness)

    def merge(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return ``model + server_rate / buffer * sum of law(staleness) * delta``."""
        weight = self.server_rate / self.buffer * discount(self.learner, self.law, arrivals)
        return Aggregated(self.learner.aggregate(model, arrivals.updates, weight), weight)


@dataclass(frozen=True)
class FedAsyncRule:
    """FedAsync's step; see `fedsim.rounds.policies.asynchronous.FedAsync`."""

    learner: Learner
    mixing: float
    law: StalenessLaw
    max_staleness: int | None

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return which updates are not too stale."""
        return fresh_enough(staleness, self.max_staleness)

    def merge(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return ``(1 - a) model + a (what the client trained)``, ``a = mixing * law(staleness)``; there is one."""
        weight = self.mixing * discount(self.learner, self.law, arrivals)
        return Aggregated(self.learner.aggregate(model, arrivals.updates, weight, of="model"), weight)


def fresh_enough(staleness: IntArray, max_staleness: int | None) -> BoolArray:
    """Return which are not staler than allowed."""
    return np.ones(staleness.size, dtype=bool) if max_staleness is None else staleness <= max_staleness


def discount(learner: Learner, law: StalenessLaw, arrivals: Arrivals) -> FloatArray:
    """Return the law's factor for each arrival, asking the learner how far they lie apart only if it matters."""
    staleness = arrivals.staleness
    deviation = np.zeros(staleness.size)
    fresh, stale = np.flatnonzero(staleness == 0), np.flatnonzero(staleness > 0)
    if law.uses_deviation and stale.size:
        of_fresh, of_stale = ([arrivals.updates[i] for i in places.tolist()] for places in (fresh, stale))
        deviation[stale] = learner.deviations(of_fresh, None, of_stale)
    return law.factor(staleness.astype(np.float64), deviation)
