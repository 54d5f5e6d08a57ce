"""Rounds that end when enough clients have delivered."""

import math
from typing import Annotated, Self

from pydantic import Field, model_validator
from simpy import Environment

from fedsim.arrays import Seconds
from fedsim.clock import LastOfInstant, Waiting, rest_of_instant, until
from fedsim.registry import Component, refusal
from fedsim.rounds.policies.contracts import at_least
from fedsim.rounds.policies.round import Round


class KFastest(Component):
    """The server asks for more clients than it needs and takes the k fastest (Bonawitz et al., MLSys 2019, section 9).

    The round ends with the k-th delivery, or with the last one where fewer than k could be selected. Deliveries at
    that very instant count too, so that a tie makes them more than k.

    Attributes
    ----------
    k : int >= 1, updates that end the round
    over_selection : float >= 1
        The server asks the selector for ``ceil(k * over_selection)`` clients; by default 1.3, as Bonawitz et al. and
        FedScale have it (which rounds down).
    max_wait_s : float or None
        The round ends at the latest after this; needed where clients may be lost.
    """

    k: Annotated[int, Field(ge=1)]
    over_selection: Annotated[float, Field(ge=1)] = 1.3
    max_wait_s: Seconds | None = None

    @property
    def wanted(self) -> int:
        """How many clients the server asks for; the product is rounded to 9 digits first, so that 10 * 1.1 is 11."""
        return math.ceil(round(self.k * self.over_selection, 9))

    @property
    def ends_without_everyone(self) -> bool:
        """Whether there is a longest wait."""
        return self.max_wait_s is not None

    def closes_after_s(self, memory: object) -> float | None:
        """Return the longest wait."""
        return self.max_wait_s

    def wait(self, env: Environment, round_: Round) -> Waiting:
        """Wait for the k-th delivery."""
        enough = round_.delivered(min(self.k, round_.size))
        if self.max_wait_s is None:
            yield enough
        else:
            yield from until(env, enough, self.max_wait_s)
        yield from rest_of_instant(env)


class Quorum(Component):
    """The round ends when enough of the cohort have delivered and the least wait is over, at the latest at the longest.

    Attributes
    ----------
    share : float in (0, 1], part of the cohort that makes a quorum (rounded up)
    min_wait_s : float >= 0, the round lasts at least so long unless everybody has delivered
    max_wait_s : float > 0, and at most so long
    """

    share: Annotated[float, Field(gt=0, le=1)]
    min_wait_s: Annotated[float, Field(ge=0)] = 0.0
    max_wait_s: Seconds

    @property
    def ends_without_everyone(self) -> bool:
        """It does: there is a longest wait."""
        return True

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

    def closes_after_s(self, memory: object) -> float:
        """Return the longest wait."""
        return self.max_wait_s

    def wait(self, env: Environment, round_: Round) -> Waiting:
        """Wait for everybody, or for the quorum and the least wait, or for the longest wait."""
        quorum = round_.delivered(at_least(self.share, round_.size))
        enough = round_.everyone | (quorum & LastOfInstant(env, self.min_wait_s))
        yield from until(env, enough, self.max_wait_s)
        yield from rest_of_instant(env)
