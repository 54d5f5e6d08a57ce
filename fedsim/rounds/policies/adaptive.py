"""Deadlines that follow the durations of past rounds."""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator
from simpy import Event

from fedsim.registry import refusal
from fedsim.rounds.policies.contracts import SynchronousPolicy, WholeCohort
from fedsim.rounds.policies.round import PastRounds, Round, at_least
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.units import Bound, NonNegative, Positive, Seconds


class QuantileDeadline(WholeCohort):
    """The deadline is a quantile of the durations seen in past rounds, times a margin.

    With n durations it is the ``ceil(quantile * n)``-th smallest. A client that did not deliver in time counts as
    slower than every other: its duration is unknown, and without it the deadline would shrink round after round. If the
    quantile falls among such clients, the deadline is the last one times ``growth``, but no longer than ``reach`` times
    the slowest delivery so far: clients that are lost never deliver, however long the server waits.

    Attributes
    ----------
    quantile : float in (0, 1], share of the clients that the deadline is meant for
    margin : float > 0, factor on the quantile
    window : int >= 1, how many past rounds count
    initial_s : deadline of the first round
    growth : float >= 1
    reach : float >= 1, factor on the slowest delivery that bounds growth; before any delivery nothing does
    shortest_s, longest_s : bounds of the deadline; ``longest_s = None`` for no upper bound
    """

    quantile: Annotated[float, Field(gt=0, le=1)] = 0.8
    margin: Annotated[float, Field(gt=0)] = 1.0
    window: Annotated[int, Field(ge=1)] = 10
    initial_s: Positive[Seconds]
    growth: Annotated[float, Field(ge=1), Bound(0.0, 1e3)] = 1.5
    reach: Annotated[float, Field(ge=1), Bound(0.0, 1e6)] = 2.0
    shortest_s: NonNegative[Seconds] = 0.0
    longest_s: Positive[Seconds] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        longest_s = np.inf if self.longest_s is None else self.longest_s
        if not self.shortest_s <= self.initial_s <= longest_s:
            raise refusal(
                "deadlines_out_of_order",
                "initial_s = {first} does not lie between shortest_s = {least} and longest_s = {most}; "
                "allowed: shortest_s <= initial_s <= longest_s",
                first=self.initial_s,
                least=self.shortest_s,
                most=longest_s,
            )
        return self

    @property
    def traits(self) -> ServerTraits:
        return ServerTraits(remembered_rounds=self.window if type(self) is QuantileDeadline else None)

    def time_limit_s(self, past: PastRounds) -> float:
        if not past.durations_s:
            return self.initial_s
        seen_s = np.sort(np.concatenate(past.durations_s[-self.window :]))
        wished_s = float(seen_s[at_least(self.quantile, seen_s.size) - 1]) * self.margin
        if np.isinf(wished_s):
            most_s = self.reach * past.slowest_s if past.slowest_s > 0 else np.inf
            wished_s = min(past.deadline_s * self.growth, most_s)
        return max(self.shortest_s, wished_s if self.longest_s is None else min(wished_s, self.longest_s))


class MovingAverage(SynchronousPolicy):
    """REFL's deadline: a moving average of the durations of past rounds.

    ``mu <- (1 - alpha) * duration of the last round + alpha * mu`` (Abdelmoniem et al., "REFL: Resource-Efficient
    Federated Learning", EuroSys 2023, section 4.1), which the reference code makes the deadline where none is set. The
    round ends as soon as ``target_share`` of the cohort has delivered, at the latest after mu. Since no round
    outlasts its mu, mu can only fall; ``growth`` above 1 lets it rise again after a round that did not reach its
    target share. The reference code has no such rule.

    Attributes
    ----------
    initial_s : mu of the first round, the reference code's 1000 s
    alpha : float in [0, 1), the paper's 0.25
    target_share : float in (0, 1], share of the cohort that ends the round; the whole cohort by default
    growth : float >= 1, factor on mu after a round in which too few delivered; 1 in the paper
    """

    _reads: ClassVar[int | None] = 1

    initial_s: Positive[Seconds] = 1000.0
    alpha: Annotated[float, Field(ge=0, lt=1)] = 0.25
    target_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    growth: Annotated[float, Field(ge=1), Bound(0.0, 1e3)] = 1.0

    def time_limit_s(self, past: PastRounds) -> float:
        if not past.rounds_s:
            return self.initial_s
        mu_s = (1 - self.alpha) * past.rounds_s[-1] + self.alpha * past.deadline_s
        seen_s = past.durations_s[-1]
        reached = np.count_nonzero(np.isfinite(seen_s)) >= at_least(self.target_share, seen_s.size)
        return mu_s if reached else mu_s * self.growth

    def enough(self, round_: Round) -> Event:
        return round_.delivered(at_least(self.target_share, round_.size))
