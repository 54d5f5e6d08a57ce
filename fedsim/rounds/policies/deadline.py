"""Rounds that end when the whole cohort has delivered, or after a fixed time."""

from dataclasses import replace
from typing import ClassVar

from fedsim.rounds.policies.contracts import WholeCohort
from fedsim.rounds.policies.round import PastRounds
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.units import Positive, Seconds


class WaitForAll(WholeCohort):
    """The round ends when the slowest selected client has delivered (McMahan et al. 2017, Algorithm 1).

    With clients that drop out such a round never ends, so a scenario with dropout must choose another policy.
    """

    _reads: ClassVar[int | None] = 0

    @property
    def traits(self) -> ServerTraits:
        return replace(super().traits, tolerates_losses=False)


class Deadline(WholeCohort):
    """The round ends when the whole cohort has delivered, at the latest ``deadline_s`` after the cohort was sent.

    Attributes
    ----------
    deadline_s : float > 0
        Seconds from the start of the round, or from the end of the question where the selector asks clients first; an
        upload that ends exactly then counts as delivered.
    """

    _reads: ClassVar[int | None] = 0

    deadline_s: Positive[Seconds]

    def time_limit_s(self, past: PastRounds) -> float:
        return self.deadline_s
