"""What a policy sees of the round that it waits for."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from simpy import Event

from fedsim.clock import TIE_ULPS
from fedsim.history.outcomes import RoundEnd
from fedsim.rounds.policies.contracts import ServerPort

if TYPE_CHECKING:
    from fedsim.rounds.clients.cohort import CohortRun


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

    def __init__(self, desk: ServerPort, number: int, closes_after_s: float | None) -> None:
        self.env, self.clients, self.memory = desk.env, desk.clients, desk.memory
        self.number = number
        self.start_s = self.waits_since_s = desk.env.now
        self.closes_after_s = math.inf if closes_after_s is None else closes_after_s
        self.flight: CohortRun | None = None
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
