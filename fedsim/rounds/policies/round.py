"""What a policy sees: the round that it waits for, and the rounds before."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import TIE_ULPS, LastOfInstant, call_when
from fedsim.history.outcomes import RoundEnd

if TYPE_CHECKING:
    from fedsim.rounds.clients.cohort import CohortRun


@dataclass
class PastRounds:
    """What a server remembers of its past rounds.

    A policy that states ``remembered_rounds`` among its traits sees the last ones only, and memory does not grow.
    ``rounds_s`` counts from when a cohort was sent, or from the start of a round with an asynchronous server.
    ``durations_s`` holds one array a round, inf for clients that did not deliver. ``picked`` are the clients whose new
    updates the last aggregation used. ``slowest_s`` is the longest duration of a client that has delivered, in all
    rounds; 0 before the first.
    """

    rounds_s: list[float] = field(default_factory=list)
    durations_s: list[FloatArray] = field(default_factory=list)
    deadline_s: float = math.inf
    slowest_s: float = 0.0
    picked: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def keep(self, rounds: int | None) -> None:
        """Forget the lengths and durations of rounds before the last ones; None forgets nothing."""
        if rounds is not None:
            for memory in (self.rounds_s, self.durations_s):
                del memory[: max(len(memory) - rounds, 0)]


class Round:
    """A round that is running, as its policy sees it.

    ``number`` counts from 1, and ``clients`` are all of the crowd. ``time_limit_s`` is the longest wait after the
    cohort was sent. ``cohort_run`` is None before a cohort was sent and where clients are sent one by one.
    """

    def __init__(self, env: Environment, number: int, clients: int, past: PastRounds, time_limit_s: float) -> None:
        self.env, self.number, self.clients, self.past, self.time_limit_s = env, number, clients, past, time_limit_s
        self.start_s: float = env.now
        self.cohort_run: CohortRun | None = None
        self._limit_has_passed = False

    @property
    def size(self) -> int:
        return 0 if self.cohort_run is None else self.cohort_run.cohort.client.size

    @property
    def everyone(self) -> Event:
        """Event that is triggered when the whole cohort has delivered."""
        return self.delivered(self.size)

    def delivered(self, count: int) -> Event:
        """Return the event that is triggered when this many clients of the cohort, at least 1, have delivered."""
        if self.cohort_run is None:
            return self.env.event().succeed()
        return self.cohort_run.participations.delivered(count)

    def limit(self, delay_s: float) -> LastOfInstant:
        """Return the event of a deadline in ``delay_s`` seconds; it comes after all other events of its instant."""
        limit = LastOfInstant(self.env, delay_s)
        call_when(limit, self._pass_limit)
        return limit

    def _pass_limit(self, _: Event) -> None:
        self._limit_has_passed = True

    def ended_by(self) -> RoundEnd:
        """Return what ends the round now: a deadline that has passed with clients missing, or enough deliveries.

        A cohort whose last update arrives at the instant of the deadline is complete.
        """
        if not self._limit_has_passed or self._completed_now():
            return RoundEnd.ENOUGH
        return RoundEnd.DEADLINE

    def _completed_now(self) -> bool:
        if self.cohort_run is None:
            return False
        members = self.cohort_run.participations
        if not members.all_delivered:
            return False
        last_s = float(members.ended_s.max(initial=-math.inf))
        return bool(self.env.now - last_s <= TIE_ULPS * np.spacing(self.env.now))


def at_least(share: float, size: int) -> int:
    """Return the smallest count that is at least a share of a size; rounded to 9 digits first, so 0.8 of 5 is 4.

    >>> at_least(0.8, 5), at_least(0.81, 5), at_least(0.01, 5), at_least(0.8, 0)
    (4, 5, 1, 0)
    """
    return min(size, max(1, math.ceil(round(share * size, 9))))
