"""Which clients are available now, updated by what has changed since the last look."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray

_NOTHING: Final[IntArray] = np.zeros(0, dtype=np.int64)
_NEVER: Final[FloatArray] = np.zeros(0)
_LEAST_AGENDA: Final = 256


class AvailabilityTracker(ABC):
    """The availability of n clients at the last look; positions are places among these clients."""

    def __init__(self, clients: int) -> None:
        self.available: BoolArray = np.zeros(clients, dtype=np.bool_)
        self.count = 0

    @abstractmethod
    def update(self, time_s: float, draw: int) -> IntArray:
        """Look at an instant of a draw, and return the positions of clients that have come or gone."""

    def _set(self, place: IntArray, available: BoolArray) -> IntArray:
        """Take the present state of some clients, and return the positions of those that have come or gone."""
        changed = available != self.available[place]
        place, available = place[changed], available[changed]
        self.available[place] = available
        self.count += 2 * int(np.count_nonzero(available)) - place.size
        return place


class PlainTracker(AvailabilityTracker):
    """Looks at each client again when its availability may have changed: O(n) then, and nothing otherwise."""

    def __init__(
        self,
        available: Callable[[IntArray, float, int], BoolArray],
        client: IntArray,
        holds_for: Literal["run", "draw", "instant", "look"],
    ) -> None:
        super().__init__(client.size)
        self._ask, self._client, self._holds_for = available, client, holds_for
        self._seen: tuple[float, int] | None = None

    def update(self, time_s: float, draw: int) -> IntArray:
        if self._seen is not None and self._holds(self._seen, time_s, draw):
            return _NOTHING
        self._seen = time_s, draw
        new = np.asarray(self._ask(self._client, time_s, draw))
        changed = np.flatnonzero(new != self.available)
        return self._set(changed, new[changed])

    def _holds(self, seen: tuple[float, int], time_s: float, draw: int) -> bool:
        holds = {"run": True, "draw": seen[1] == draw, "instant": seen[0] == time_s, "look": False}
        return holds[self._holds_for]


class OnOffTracker(AvailabilityTracker):
    """Clients whose states hold until known instants, unless something else happens to them (`look_again`).

    The agenda holds all changes before its horizon, about ``4 sqrt(n)`` of them. When it is over, one pass over all
    clients makes the next one. Where so much changes between two looks that an agenda would not last, each look is a
    pass over the instants of all clients.
    """

    def __init__(self, look_up: Callable[[IntArray, float], tuple[BoolArray, FloatArray]], client: IntArray) -> None:
        super().__init__(client.size)
        self._look_up, self._client = look_up, client
        self._until_s = np.full(client.size, -np.inf)
        self._again: list[IntArray] = []
        self._now_s = -math.inf
        self._agenda: list[tuple[float, int]] = []
        self._horizon_s = -math.inf
        self._length = max(_LEAST_AGENDA, 4 * math.isqrt(client.size))

    def look_again(self, client: IntArray) -> None:
        """Look at these clients again at the next look, of this instant too; others than the tracker's are left out."""
        place = np.searchsorted(self._client, client)
        place[place == self._client.size] = 0
        self._again.append(place[self._client[place] == client])

    def update(self, time_s: float, draw: int) -> IntArray:
        if time_s == self._now_s and not self._again:
            return _NOTHING
        if time_s < self._now_s:
            self._until_s[:] = -np.inf
            self._horizon_s = -math.inf
        self._now_s = time_s
        planned = time_s < self._horizon_s
        due = self._take_due(time_s) if planned else np.flatnonzero(self._until_s <= time_s)
        if self._again:
            due = np.unique(np.concatenate([due, *self._again]))
            self._again = []
        available, until_s = self._look_up(self._client[due], time_s) if due.size else (self.available[:0], _NEVER)
        self._until_s[due] = until_s
        if planned:
            for change in zip(until_s.tolist(), due.tolist(), strict=True):
                if change[0] < self._horizon_s:
                    heappush(self._agenda, change)
        else:
            self._plan(due.size)
        return self._set(due, available)

    def _take_due(self, time_s: float) -> IntArray:
        due = []
        while self._agenda and self._agenda[0][0] <= time_s:
            due.append(heappop(self._agenda)[1])
        # A client that was looked at again has two changes in the agenda.
        return np.unique(np.array(due, dtype=np.int64))

    def _plan(self, due: int) -> None:
        """Make the next agenda, unless it would hold the changes of few looks only."""
        self._agenda, self._horizon_s = [], -math.inf
        if 4 * due > self._length:
            return
        self._horizon_s = math.inf
        if self._length < self._until_s.size:
            self._horizon_s = float(np.partition(self._until_s, self._length)[self._length])
        soon = np.flatnonzero(self._until_s < self._horizon_s)
        self._agenda = list(zip(self._until_s[soon].tolist(), soon.tolist(), strict=True))
        heapify(self._agenda)


class JointTracker(AvailabilityTracker):
    def __init__(self, parts: Sequence[AvailabilityTracker]) -> None:
        super().__init__(parts[0].available.size)
        self._parts = parts

    def update(self, time_s: float, draw: int) -> IntArray:
        changes = [changed for part in self._parts if (changed := part.update(time_s, draw)).size]
        if not changes:
            return _NOTHING
        place = changes[0] if len(changes) == 1 else np.unique(np.concatenate(changes))
        return self._set(place, np.logical_and.reduce([part.available[place] for part in self._parts]))
