"""When is a round over: the rules of synchronous servers.

A policy is a part with one method, ``wait(env, round_)``: a generator that yields events until the server stops
waiting. Whoever has not delivered by then is late (or dropped; the server cannot tell). What it may look at is a
`fedsim.rounds.round.Round`. The rules of asynchronous servers are in `fedsim.rounds.asynchronous`.

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

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from simpy import Environment, Event

from fedsim.parts import Catalogue, Part

if TYPE_CHECKING:
    from fedsim.rounds.round import Round

TIE_ULPS: Final = 4
_AFTER_ALL_OTHERS: Final = 2
Waiting = Generator[Event, Any, None]
Seconds = Annotated[float, Field(gt=0)]

POLICIES = Catalogue(
    "policy",
    "fedsim.policies",
    ("wait",),
    {
        "adaptive-deadline": "fedsim.rounds.adaptive:QuantileDeadline",
        "deadline": "fedsim.rounds.policies:Deadline",
        "fedasync": "fedsim.rounds.asynchronous:FedAsync",
        "fedbuff": "fedsim.rounds.asynchronous:FedBuff",
        "k-fastest": "fedsim.rounds.counting:KFastest",
        "moving-average": "fedsim.rounds.adaptive:MovingAverage",
        "quorum": "fedsim.rounds.counting:Quorum",
        "safa": "fedsim.rounds.safa:Safa",
        "wait-for-all": "fedsim.rounds.policies:WaitForAll",
    },
    attributes=("ends_without_everyone",),
)


class Policy(Protocol):
    """The rule by which a server closes its rounds.

    A policy may have more than this; each is absent unless its class has it:

    * ``wanted`` (int): how many clients the server asks the selector for, instead of the selector's own number;
    * ``concurrency`` (int): the server is asynchronous and sends clients on their way only when the policy calls
      ``round_.fill``, so that no more than these are at work at any time;
    * ``buffer`` (int): how many updates make a new model, with an asynchronous server;
    * ``give_up_s`` (float): how long an asynchronous server waits for a client before it sends another;
    * ``closes_after_s(memory)``: how long the server waits at most once the coming round's cohort has been sent,
      known when the round begins, or None;
    * ``merger(learner)``: how arrivals become the next model, instead of what the scenario's ``late`` says; then also
      ``cancels`` (bool): whether those that are late are cut off, as the late rules say;
    * ``goes_on`` (bool): a round may begin without a cohort as long as some of those sent before are at work;
    * ``lag`` (int): those that work on a model so many versions old and older are cut off when a round begins;
    * ``at_edges`` (bool): False if it cannot run at an edge server below a cloud.

    Attributes
    ----------
    ends_without_everyone : whether a round also ends if a selected client never delivers
    """

    @property
    def ends_without_everyone(self) -> bool:
        """Whether a round also ends if a selected client never delivers."""
        ...

    def wait(self, env: Environment, round_: "Round") -> Waiting:
        """Yield events until the server stops waiting."""
        ...


class LastOfInstant(Event):
    """An event that comes after every ordinary event of the same instant.

    Parameters
    ----------
    env : Environment
    delay_s : float >= 0
    after_its_like : whether it also comes after every event of its own kind that does not say so
    """

    def __init__(self, env: Environment, delay_s: float, *, after_its_like: bool = False) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        # SimPy types priorities as its own two levels but orders by any integer.
        env.schedule(self, priority=_AFTER_ALL_OTHERS + after_its_like, delay=delay_s)  # type: ignore[arg-type]


def until(env: Environment, enough: Event, delay_s: float) -> Waiting:
    """Wait until an event or the end of a delay, whichever is first; what ends exactly then still happens."""
    yield enough | LastOfInstant(env, delay_s)
    while not enough.triggered and (tied_s := tie_s(env)):
        yield LastOfInstant(env, tied_s)


def rest_of_instant(env: Environment) -> Waiting:
    """Wait for whatever else happens at the present instant."""
    yield LastOfInstant(env, 0.0)
    while tied_s := tie_s(env):
        yield LastOfInstant(env, tied_s)


def tie_s(env: Environment) -> float:
    """Return how long until the next event if that counts as the present instant, though it is later; 0 if not."""
    next_s = env.peek() - env.now
    return float(next_s) if next_s <= TIE_ULPS * np.spacing(env.now) else 0.0


def instants(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each of some times which instant it is, numbered from 0; those within `TIE_ULPS` are one.

    >>> instants(np.array([0.1 + 0.2 + 0.3, 0.7, 0.3 + 0.2 + 0.1])).tolist()
    [0, 1, 0]
    """
    order = np.argsort(times_s, kind="stable")
    in_order_s = times_s[order]
    number = np.zeros(times_s.size, dtype=np.int64)
    number[order[1:]] = np.cumsum(np.diff(in_order_s) > TIE_ULPS * np.spacing(in_order_s[1:]))
    return number


class WaitForAll(Part):
    """The round ends when the slowest selected client has delivered (McMahan et al. 2017, Algorithm 1).

    With clients that drop out such a round never ends, so a scenario with dropout must choose another policy.
    """

    ends_without_everyone: ClassVar[bool] = False

    def wait(self, env: Environment, round_: "Round") -> Waiting:
        """Wait until everybody has delivered."""
        yield round_.everyone


class Deadline(Part):
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
