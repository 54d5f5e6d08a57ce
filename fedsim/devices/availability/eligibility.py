"""Who can take part: clients that are there and meet conditions, such as a charged battery or a link that works."""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.batteries import Batteries
from fedsim.devices.contracts import Availability, DrawnAvailability, TimedAvailability

_NEXT_TOSS: Final = 2**40


class EligibilityCriterion(Protocol):
    """What a client must meet beside being there."""

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client meets it at an instant, shape (n,)."""
        ...

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        """Return between which instants each client may meet it next if it takes no part, both of shape (n,).

        The first is not before ``time_s``, and is later for clients that do not meet it then; `inf` for never. Before
        it a client surely does not meet it, and after the second it never will.
        """
        ...


class Charge:
    """A battery that holds enough.

    Parameters
    ----------
    batteries : Batteries
    """

    def __init__(self, batteries: Batteries) -> None:
        self._batteries = batteries

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client is charged enough."""
        return self._batteries.able(client, time_s)

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        """Return from when until when each client is charged enough."""
        from_s, until_s = (bound[client] for bound in self._batteries.able_s())
        return np.maximum(from_s, time_s), until_s


class EligibleClients:
    """A presence of which only those are available who meet some conditions; itself a presence.

    When nobody who is there meets them all, a round opens at the first instant at which somebody does. Where presence
    changes with time (`TimedAvailability`) that instant is found from change to change; where it is tossed
    (`DrawnAvailability`), by
    tossing again, each toss with luck of its own; and where it holds for a whole round, it is the instant at which the
    first of those who are there meets the conditions.

    Parameters
    ----------
    presence : Presence
    conditions : what clients must meet
    client : ids of those whose presence it is
    """

    def __init__(self, presence: Availability, conditions: Sequence[EligibilityCriterion], client: IntArray) -> None:
        self._presence, self._conditions, self._everyone = presence, conditions, client
        self._toss = (0, 0)

    def available(self, client: IntArray, time_s: float, round_: int) -> BoolArray:
        """Return whether each client is there and meets the conditions."""
        there = self._presence.available(client, time_s, self._key(round_))
        for condition in self._conditions:
            there = there & condition.holds(client, time_s)
        return np.asarray(there)

    def leaves_after_s(self, client: IntArray, time_s: float, round_: int, task_s: FloatArray) -> FloatArray:
        """Return how long after an instant each client leaves; a condition that breaks is not its matter."""
        return self._presence.leaves_after_s(client, time_s, self._key(round_), task_s)

    def opens_s(self, time_s: float, round_: int, client: IntArray | None = None) -> float:
        """Return the first instant from ``time_s`` on at which anybody, or one of some clients, will do.

        Of some clients only, presence is not tossed again.
        """
        looked_at = self._everyone if client is None else client
        if client is None:
            self._toss = (round_, round_)
        now_s = self._presence.opens_s(time_s, self._key(round_), client)
        while math.isfinite(now_s) and not self.available(looked_at, now_s, round_).any():
            later_s = self._look_again_s(now_s, round_, looked_at, toss=client is None)
            if math.isinf(later_s):
                return math.inf
            # Sums may round to the present instant; time must go on.
            later_s = max(later_s, math.nextafter(now_s, math.inf))
            now_s = self._presence.opens_s(later_s, self._key(round_), client)
        return now_s

    def part(self, client: IntArray) -> "EligibleClients":
        """Return the presence of some of the clients, who meet the same conditions."""
        return EligibleClients(self._presence.part(client), self._conditions, client)

    def _key(self, round_: int) -> int:
        """Return what the presence is asked for in the place of the round: later tosses have numbers of their own."""
        return self._toss[1] if self._toss[0] == round_ else round_

    def _look_again_s(self, now_s: float, round_: int, client: IntArray, *, toss: bool) -> float:
        """Return an instant before which none of some clients will do who does not now."""
        if isinstance(self._presence, TimedAvailability):
            there, left_s = self._presence.state(client, now_s)
            return self._first_s(client, now_s, np.where(there, now_s, now_s + left_s))
        if toss and isinstance(self._presence, DrawnAvailability):
            retry_s = self._presence.retry_s
            wait_s = self._first_s(client, now_s, np.full(client.size, now_s)) - now_s
            self._toss = (round_, self._toss[1] + _NEXT_TOSS)
            return now_s + retry_s * max(1.0, math.ceil(wait_s / retry_s)) if math.isfinite(wait_s) else math.inf
        present = client[self._presence.available(client, now_s, self._key(round_))]
        return self._first_s(present, now_s, np.full(present.size, now_s))

    def _first_s(self, client: IntArray, now_s: float, comes_s: FloatArray) -> float:
        """Return when the first of clients that come at some instants may meet the conditions; `inf` for never."""
        last_s = np.full(client.size, np.inf)
        for condition in self._conditions:
            from_s, until_s = condition.window_s(client, now_s)
            comes_s, last_s = np.maximum(comes_s, from_s), np.minimum(last_s, until_s)
        return float(comes_s[comes_s <= last_s].min(initial=np.inf))
