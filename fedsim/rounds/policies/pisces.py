"""Pisces' pace: an asynchronous server that aggregates at intervals which bound the staleness of updates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsim.arrays import BoolArray, IntArray, Whole
from fedsim.history.outcomes import RoundEnd
from fedsim.learning import Learner, Model
from fedsim.rounds.aggregation.rules import Aggregated, AggregationRule, Arrivals, discount, fresh_enough
from fedsim.rounds.aggregation.staleness import StalenessLaw
from fedsim.rounds.policies.contracts import ReplacingPolicy, Running
from fedsim.rounds.policies.round import PastRounds, Round
from fedsim.rounds.policies.server_port import ServerPort


class Pisces(ReplacingPolicy):
    """An aggregation at every interval ``L / bound`` with all updates that have arrived.

    Jiang, Wang, Li and Li, "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022, its pace
    control. L is the duration of the slowest client: while that client is in flight the server makes about ``bound``
    new models, so that no update is much staler. Without an update at the end of the interval the server waits for the
    next one. The next model is ``x + sum of n_i / n * s(staleness_i) * delta_i`` over the updates of the interval, with
    n_i the samples of client i and n those of all of them. The selector ``"pisces"`` belongs to it.

    L is the longest duration of an update that has arrived in the last 50 rounds; the paper's is the profiled latency
    of the clients that are in flight. Before the first arrival there is no interval: the first update makes a model.
    The paper's text was not at hand; the default of `bound` is fedsim's.

    Attributes
    ----------
    concurrency : clients in flight at the same time
    bound : b, about the largest staleness
    staleness : law s; ``(staleness + 1) ** -1/2`` by default, where the published code takes the mean staleness of a
        client's last five updates
    max_staleness : updates that are staler are discarded when they arrive; None for no limit
    give_up_s : a client that has not delivered by then is cancelled and replaced; needed where clients may be lost
    """

    _reads: ClassVar[int | None] = 50

    bound: Whole = 5

    def aggregation(self, learner: Learner) -> AggregationRule:
        return IntervalRule(learner, self.staleness, self.max_staleness)

    def interval_s(self, past: PastRounds) -> float:
        """Return the interval of the coming round; 0 before the first arrival."""
        seen_s = np.concatenate([np.zeros(1), *past.durations_s])
        return float(seen_s[np.isfinite(seen_s)].max()) / self.bound

    def wait(self, server: ServerPort, round_: Round) -> Running:
        interval = round_.limit(self.interval_s(round_.past))
        while not (interval.processed and server.buffered):
            yield server.next_arrival() if interval.processed else server.next_arrival() | interval
        return RoundEnd.ENOUGH


@dataclass(frozen=True)
class IntervalRule(AggregationRule):
    """An update's share of the samples times its discount; stale updates make the step shorter."""

    learner: Learner
    law: StalenessLaw
    max_staleness: int | None

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        return fresh_enough(staleness, self.max_staleness)

    def aggregate(self, model: Model, arrivals: Arrivals) -> Aggregated:
        total = np.add.reduce(arrivals.weight)
        share = arrivals.weight / total if total > 0 else np.zeros(arrivals.weight.size)
        weight = share * discount(self.learner, self.law, arrivals)
        return Aggregated.of_all(self.learner.aggregate(model, arrivals.updates, weight), weight)
