"""Rounds that end when enough clients have delivered."""

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator
from simpy import Event

from fedsim.clock import LastOfInstant
from fedsim.registry import refusal
from fedsim.rounds.policies.contracts import SynchronousPolicy
from fedsim.rounds.policies.round import PastRounds, Round, at_least
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.units import NonNegative, Positive, Seconds


class KFastest(SynchronousPolicy):
    """The server asks for more clients than it needs and takes the k fastest (Bonawitz et al., MLSys 2019, section 9).

    The round ends with the k-th delivery, or with the last one of a cohort smaller than k. Deliveries at the same
    instant count too, so a tie makes them more than k.

    Attributes
    ----------
    k : int >= 1, updates that end the round
    over_selection : float >= 1
        The server asks the selector for ``ceil(k * over_selection)`` clients; by default 1.3, as Bonawitz et al. and
        FedScale have it (which rounds down).
    max_wait_s : float or None
        The round ends at the latest after this; needed where clients may be lost.
    """

    _reads: ClassVar[int | None] = 0

    k: Annotated[int, Field(ge=1)]
    over_selection: Annotated[float, Field(ge=1)] = 1.3
    max_wait_s: Positive[Seconds] | None = None

    @property
    def traits(self) -> ServerTraits:
        """Rounded to 9 digits, 10 * 1.1 clients are 11."""
        size = math.ceil(round(self.k * self.over_selection, 9))
        return replace(super().traits, cohort_size=size, tolerates_losses=self.max_wait_s is not None)

    def time_limit_s(self, past: PastRounds) -> float:
        return math.inf if self.max_wait_s is None else self.max_wait_s

    def enough(self, round_: Round) -> Event:
        return round_.delivered(min(self.k, round_.size))


class Quorum(SynchronousPolicy):
    """The round ends when a share of the cohort has delivered and the shortest wait is over, or after the longest wait.

    Attributes
    ----------
    share : float in (0, 1], part of the cohort that makes a quorum (rounded up)
    min_wait_s : float >= 0, shortest wait unless the whole cohort has delivered
    max_wait_s : float > 0, longest wait
    """

    _reads: ClassVar[int | None] = 0

    share: Annotated[float, Field(gt=0, le=1)]
    min_wait_s: NonNegative[Seconds] = 0.0
    max_wait_s: Positive[Seconds]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_wait_s > self.max_wait_s:
            raise refusal(
                "waits_out_of_order",
                "min_wait_s = {least} is longer than max_wait_s = {most}; allowed: 0 to max_wait_s",
                least=self.min_wait_s,
                most=self.max_wait_s,
            )
        return self

    def time_limit_s(self, past: PastRounds) -> float:
        return self.max_wait_s

    def enough(self, round_: Round) -> Event:
        """Return the event at which the whole cohort, or the quorum after the least wait, has delivered."""
        quorum = round_.delivered(at_least(self.share, round_.size))
        return round_.everyone | (quorum & LastOfInstant(round_.env, self.min_wait_s))
