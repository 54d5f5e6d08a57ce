"""When is a round over: the rules of synchronous servers.

A policy is a part with one method, ``wait(env, round_)``: a generator that yields events until the server stops
waiting. Whoever has not delivered by then is late (or dropped; the server cannot tell). What it may look at is a
`fedsim.rounds.policies.round.Round`. The rules of asynchronous servers are in `fedsim.rounds.policies.asynchronous`.

Equal times
-----------
What happens at the instant at which a round ends still belongs to it, whatever order the events were created in: an
upload that ends exactly at a deadline counts as delivered, and so does one that ends together with the k-th fastest.
The event that ends a round has the lowest priority of all events of its instant, and since the same instant reached
by different sums may differ in the last digits (0.1 + 0.2 + 0.3 is not 0.6 in binary), instants within `TIE_ULPS`
units in the last place count as one. Updates that arrive at the same instant are taken in the order in which their
clients were sent, and of one cohort in the order in which the selector named them. Whoever is sent in the place of
another is sent after all arrivals of that instant.
"""

from typing import TYPE_CHECKING, ClassVar

from simpy import Environment

from fedsim.arrays import Seconds
from fedsim.clock import Waiting, until
from fedsim.registry import Component

if TYPE_CHECKING:
    from fedsim.rounds.policies.round import Round


class WaitForAll(Component):
    """The round ends when the slowest selected client has delivered (McMahan et al. 2017, Algorithm 1).

    With clients that drop out such a round never ends, so a scenario with dropout must choose another policy.
    """

    ends_without_everyone: ClassVar[bool] = False

    def wait(self, env: Environment, round_: "Round") -> Waiting:
        """Wait until everybody has delivered."""
        yield round_.everyone


class Deadline(Component):
    """The round ends when everybody has delivered, and at the latest ``deadline_s`` after its cohort was sent.

    Attributes
    ----------
    deadline_s : float > 0
        Seconds from the start of the round, or from the end of the probe where the selector asks clients first; an
        upload that ends exactly then counts as delivered.
    """

    ends_without_everyone: ClassVar[bool] = True
    deadline_s: Seconds

    def closes_after_s(self, memory: object) -> float:
        """Return the deadline."""
        return self.deadline_s

    def wait(self, env: Environment, round_: "Round") -> Waiting:
        """Wait until everybody has delivered or the deadline has passed."""
        yield from until(env, round_.everyone, self.deadline_s)
