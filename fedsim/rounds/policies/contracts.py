"""fedsim.rounds.policies.contracts."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.clock import Waiting
from fedsim.registry import Registry

if TYPE_CHECKING:
    from fedsim.rounds.policies.round import Round


POLICIES = Registry(
    "policy",
    "fedsim.policies",
    ("wait",),
    {
        "adaptive-deadline": "fedsim.rounds.policies.adaptive:QuantileDeadline",
        "deadline": "fedsim.rounds.policies.deadline:Deadline",
        "fedasync": "fedsim.rounds.policies.asynchronous:FedAsync",
        "fedbuff": "fedsim.rounds.policies.asynchronous:FedBuff",
        "k-fastest": "fedsim.rounds.policies.count_based:KFastest",
        "moving-average": "fedsim.rounds.policies.adaptive:MovingAverage",
        "quorum": "fedsim.rounds.policies.count_based:Quorum",
        "safa": "fedsim.rounds.policies.safa:Safa",
        "wait-for-all": "fedsim.rounds.policies.deadline:WaitForAll",
    },
    attributes=("ends_without_everyone",),
)


class RoundPolicy(Protocol):
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


@dataclass
class PastRounds:
    """What a server remembers of its past rounds.

    Attributes
    ----------
    rounds_s : how long each lasted, from when its cohort was sent (or it began, with an asynchronous server)
    durations_s : what each saw of its cohort's durations, one array a round; inf for those that did not deliver
    deadline_s : longest that the last round could have lasted; inf for no limit
    picked : clients of whom the last round's aggregate took a new update; none if there was no aggregate
    """

    rounds_s: list[float] = field(default_factory=list)
    durations_s: list[NDArray[np.float64]] = field(default_factory=list)
    deadline_s: float = math.inf
    picked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class ServerPort(Protocol):
    """What a round asks of the server that runs it.

    Attributes
    ----------
    env : Environment
    clients : number of clients of the crowd
    memory : of past rounds
    """

    env: Environment
    clients: int
    memory: PastRounds

    @property
    def outstanding(self) -> int:
        """How many clients were sent and have not been heard of."""
        ...

    @property
    def waiting(self) -> int:
        """How many updates wait to be merged."""
        ...

    def waiting_clients(self) -> NDArray[np.int64]:
        """Return the clients whose updates wait to be merged."""
        ...

    def fill(self, number: int, concurrency: int) -> bool:
        """Send clients in a round until so many are at work."""
        ...

    def change(self) -> Event:
        """Return the event of the next thing that happens to the server."""
        ...


def at_least(share: float, size: int) -> int:
    """Return how many are at least a share of so many; rounded to 9 digits first, so that 0.8 of 5 is 4.

    >>> at_least(0.8, 5), at_least(0.81, 5), at_least(0.01, 5)
    (4, 5, 1)
    """
    return max(1, math.ceil(round(share * size, 9)))
