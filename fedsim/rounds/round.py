"""What a policy sees of the round that it waits for."""

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.rounds.policies import TIE_ULPS

if TYPE_CHECKING:
    from fedsim.rounds.flight import Flight


class RoundEnd(IntEnum):
    """What ended a round."""

    ENOUGH = 0
    """Its policy had what it waited for."""
    DEADLINE = 1
    """It had lasted as long as its policy allows, and clients were missing."""
    RESTART = 2
    """The server crashed."""


@dataclass
class Memory:
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


class Desk(Protocol):
    """What a round asks of the server that runs it.

    Attributes
    ----------
    env : Environment
    clients : number of clients of the crowd
    memory : of past rounds
    """

    env: Environment
    clients: int
    memory: Memory

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


class Round:
    """A round on its way, as its policy sees it.

    Attributes
    ----------
    number : from 1
    start_s : when it began
    waits_since_s : when it began to wait, after the question of a selector that asks clients first
    closes_after_s : how long the server waits at most, by its policy; inf for no limit
    flight : its cohort on its way; None where clients are sent one by one, by `fill`
    clients : number of clients of the crowd
    memory : of past rounds
    """

    def __init__(self, desk: Desk, number: int, closes_after_s: float | None) -> None:
        self.env, self.clients, self.memory = desk.env, desk.clients, desk.memory
        self.number = number
        self.start_s = self.waits_since_s = desk.env.now
        self.closes_after_s = math.inf if closes_after_s is None else closes_after_s
        self.flight: Flight | None = None
        self._desk = desk

    @property
    def outstanding(self) -> int:
        """How many clients were sent and have not been heard of, whenever that was; lost ones are among them."""
        return self._desk.outstanding

    @property
    def waiting(self) -> int:
        """How many updates have arrived and wait to be merged, whenever their clients started.

        It counts updates that arrive where late clients are not cut off; elsewhere use `delivered`.
        """
        return self._desk.waiting

    def waiting_clients(self) -> NDArray[np.int64]:
        """Return the clients of these updates."""
        return self._desk.waiting_clients()

    def change(self) -> Event:
        """Return the event that is triggered when an update arrives, a client is given up or somebody comes.

        Updates that arrive call it where late clients are not cut off; elsewhere use `delivered`.
        """
        return self._desk.change()

    def fill(self, concurrency: int) -> bool:
        """Send clients until so many are at work or nobody is free; return whether anybody is or will be there."""
        return self._desk.fill(self.number, concurrency)

    @property
    def ended_by(self) -> RoundEnd:
        """What has ended it, if it ends now."""
        there = None if self.flight is None else self.flight.participations
        now_s, tie_s = self.env.now, TIE_ULPS * np.spacing(self.env.now)
        if self.closes_after_s - (now_s - self.waits_since_s) > tie_s:
            return RoundEnd.ENOUGH
        # Who was there before has not ended it: it went on waiting, for others than its own cohort.
        last_s = -math.inf if there is None else float(there.ended_s.max(initial=-math.inf))
        everyone = there is not None and there.arrived.all() and now_s - last_s <= tie_s
        return RoundEnd.ENOUGH if everyone else RoundEnd.DEADLINE

    @property
    def size(self) -> int:
        """Number of clients in the round's cohort."""
        return 0 if self.flight is None else self.flight.cohort.client.size

    @property
    def everyone(self) -> Event:
        """Event that is triggered when the whole cohort has delivered."""
        return self.delivered(self.size)

    def delivered(self, count: int) -> Event:
        """Return the event that is triggered when so many of the cohort have delivered."""
        if self.flight is None:
            return self.env.event().succeed()
        return self.flight.participations.delivered(count)


def at_least(share: float, size: int) -> int:
    """Return how many are at least a share of so many; rounded to 9 digits first, so that 0.8 of 5 is 4.

    >>> at_least(0.8, 5), at_least(0.81, 5), at_least(0.01, 5)
    (4, 5, 1)
    """
    return max(1, math.ceil(round(share * size, 9)))
