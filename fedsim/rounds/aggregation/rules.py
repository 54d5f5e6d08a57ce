"""The rules by which updates that have arrived become the next model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, Self

import numpy as np

from fedsim.answers import AnswerError, Contract, Free, Given, Mask, Numbers, in_words, same_shape, shaped
from fedsim.arrays import BoolArray, FloatArray, IntArray, same
from fedsim.learning import Learner, Model, Of, Update
from fedsim.rounds.aggregation.staleness import STALENESS_LAW, StalenessLaw


class Arrivals(Protocol):
    """Updates that wait for an aggregation, ordered by the dispatch of their cohort and the place in it.

    All arrays have shape (n,). ``weight`` is that before staleness and scaling. ``total`` is the sum of the weights of
    a whole cohort, None for weights that are used as they are. ``held`` are updates that the last aggregation held
    back.
    """

    client: IntArray
    updates: Sequence[Update]
    weight: FloatArray
    total: float | None
    held: BoolArray

    @property
    def base(self) -> Sequence[Model]:
        """Model that each client started from."""
        ...

    @property
    def staleness(self) -> IntArray:
        """Aggregations since each client started."""
        ...

    @property
    def arrived_s(self) -> FloatArray:
        """Instant of each arrival, shape (n,)."""
        ...

    @property
    def picked_before(self) -> BoolArray:
        """Whether the last aggregation used a new update of the same client."""
        ...


class Aggregated(NamedTuple):
    """The next model, and what became of the arrivals.

    ``weight`` is the weight of each update in the model, shape (n,), NaN for updates that no model used; ``held`` are
    those that wait for the next aggregation.
    """

    model: Model
    weight: FloatArray
    held: BoolArray

    @classmethod
    def of_all(cls, model: Model, weight: FloatArray) -> Self:
        """Return the result of an aggregation that holds no update back."""
        return cls(model, weight, same(False, weight.size))


class AggregationRule(ABC):
    """How arrivals become the next model; one object lives as long as one run, and may have memory."""

    @abstractmethod
    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return which updates wait for an aggregation, shape (n,); the others are discarded as they arrive.

        Parameters
        ----------
        staleness : aggregations since each client started, shape (n,)
        late : clients whose round was over before they delivered, shape (n,)
        """

    @abstractmethod
    def aggregate(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return the next model; called only when enough updates have arrived.

        Parameters
        ----------
        model : the present model
        arrivals : n updates that wait
        """

    def on_dispatch(self, client: IntArray, model: Model) -> None:
        """Note that clients start from the newest model.

        Parameters
        ----------
        client : ids, shape (n,)
        model : the newest model
        """
        return

    def on_round_start(self, model: Model) -> None:
        """Note the newest model at the start of a round, before clients are selected."""
        return


@dataclass(frozen=True)
class _AggregatedOf:
    """The next model with the weights of the arrivals; NaN is the weight of an update that no model used."""

    def __call__(self, answer: object, given: Given) -> Aggregated:
        if type(answer) is not Aggregated:
            raise AnswerError(in_words(answer), "an Aggregated")
        each = shaped(given["arrivals"].client.size)
        weight = Numbers(each, least=-_LARGEST_WEIGHT, most=_LARGEST_WEIGHT, nan=True)(answer.weight, given)
        return Aggregated(answer.model, weight, Mask(each)(answer.held, given))


_LARGEST_WEIGHT: Final = 1e300
AGGREGATION_RULE: Final = Contract(
    "aggregation rule",
    AggregationRule,
    {
        "accepts": Mask(same_shape("staleness")),
        "aggregate": _AggregatedOf(),
        "on_dispatch": Free(),
        "on_round_start": Free(),
    },
)


@dataclass(frozen=True)
class FedAvgRule(AggregationRule):
    """FedAvg over fresh updates and, discounted by a law, stale ones; without a law late updates are discarded.

    An update of weight w and staleness s counts ``w * law(s)``; the counts are scaled to add up to the cohort's weight
    (1 for an average), unless they are those of a sum.
    """

    learner: Learner
    law: StalenessLaw | None = None
    max_staleness: int | None = None

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        return ~late if self.law is None else fresh_enough(staleness, self.max_staleness)

    def aggregate(self, model: Model, arrivals: Arrivals) -> Aggregated:
        counts = arrivals.weight
        if self.law is not None:
            counts = counts * discount(self.learner, self.law, arrivals)
        weight, total = counts, arrivals.total
        if total is not None:
            share = np.add.reduce(counts)
            weight = counts / np.asarray(share) if share > 0 else np.zeros(counts.size)
            if total != 1.0:
                weight = weight * total
        return Aggregated.of_all(self.learner.aggregate(model, arrivals.updates, weight), weight)


@dataclass(frozen=True)
class FixedScaleRule(AggregationRule):
    """FedBuff's and FedAsync's steps: an update of staleness s weighs ``scale * law(s)``, whatever the others weigh.

    Differences are added to the present model, whole models are mixed in.
    """

    learner: Learner
    scale: float
    law: StalenessLaw
    max_staleness: int | None
    of: Of

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        return fresh_enough(staleness, self.max_staleness)

    def aggregate(self, model: Model, arrivals: Arrivals) -> Aggregated:
        weight = self.scale * discount(self.learner, self.law, arrivals)
        return Aggregated.of_all(self.learner.aggregate(model, arrivals.updates, weight, of=self.of), weight)


def fresh_enough(staleness: IntArray, max_staleness: int | None) -> BoolArray:
    return np.ones(staleness.size, dtype=bool) if max_staleness is None else staleness <= max_staleness


def discount(learner: Learner, law: StalenessLaw, arrivals: Arrivals) -> FloatArray:
    staleness = arrivals.staleness
    deviation = np.zeros(staleness.size)
    fresh, stale = np.flatnonzero(staleness == 0), np.flatnonzero(staleness > 0)
    if law.uses_deviation and stale.size:
        of_fresh, of_stale = ([arrivals.updates[i] for i in places.tolist()] for places in (fresh, stale))
        deviation[stale] = learner.deviations(of_fresh, None, of_stale)
    return STALENESS_LAW.checked(law).factor(staleness.astype(np.float64), deviation)
