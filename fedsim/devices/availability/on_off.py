"""Alternating on and off sojourns of clients, looked up by bisection, and the two-state Markov law.

A client's sojourns are numbered from 0, the one that covers time 0, and each is a function of (client, number) and of
the instant at which it begins. Only a window of `WIDTH` switching instants per client is stored. The window moves along
with time, and a call about the past starts it anew, so that results never depend on earlier calls. Memory is about 170
bytes a client; over a run each sojourn is drawn once.

Streams of `Markov`: ``availability-start`` by client; ``availability-sojourn`` by (client, number). Other users of
`MarkovSojourns` name their own streams.
"""

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Protocol

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray, FloatArray, IntArray, count_until
from fedsim.devices.contracts import Availability, Kind
from fedsim.devices.tracking import AvailabilityTracker, OnOffTracker
from fedsim.errors import ScenarioError
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import Seconds

WIDTH: Final = 16
MOST_SOJOURNS: Final = 3_200_000
"""Of a client between two looks at it; they are drawn one after the other, which takes minutes."""
_MOST_STEPS: Final = 64
Sojourn = Annotated[Seconds, Field(ge=1e-3)]


class OnOffProcess(Availability):
    """An availability that follows from a state, on or off, and the instant at which it changes."""

    kind: Kind = "timed"

    def __init__(self, clients: int) -> None:
        self._client = np.arange(clients)
        self._on = np.zeros(clients, dtype=np.bool_)
        self._from_s, self._until_s = np.full(clients, np.inf), np.full(clients, -np.inf)

    @abstractmethod
    def look_up(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        """Return whether each client is on at an instant, and the later instant (or `inf`) of the next change."""

    def state(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        """Return whether each client is on, and the seconds until that changes, >= 0 and perhaps `inf`."""
        unknown = client[(self._from_s[client] > time_s) | (self._until_s[client] <= time_s)]
        if unknown.size:
            self._on[unknown], self._until_s[unknown] = self.look_up(unknown, time_s)
            self._from_s[unknown] = time_s
        return self._on[client], np.maximum(self._until_s[client] - time_s, 0.0)

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        return self.state(client, time_s)[0]

    def leaves_after_s(self, client: IntArray, time_s: float, draw: int, task_s: FloatArray) -> FloatArray:
        """Return the seconds until each client goes off, for any duration of its task; 0 if it is off."""
        on, left_s = self.state(client, time_s)
        return np.where(on, left_s, 0.0)

    def earliest_s(self, client: IntArray, time_s: float, draw: int) -> FloatArray:
        """Return the first instant from ``time_s`` on at which each client is on, up to rounding."""
        on, left_s = self.state(client, time_s)
        return np.where(on, time_s, time_s + left_s)

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        looked_at = self._client if client is None else client
        now_s = float(self.earliest_s(looked_at, time_s, draw).min(initial=np.inf))
        # The sum may round to just before the arrival; the next number is then at or after it.
        for _ in range(_MOST_STEPS):
            if not np.isfinite(now_s) or self.state(looked_at, now_s)[0].any():
                return now_s, draw
            now_s = float(np.nextafter(now_s, np.inf))
        raise ScenarioError(
            f"devices.availability: after {now_s:.6g} s a clock of 64 bits does not tell the times at which clients "
            "come and leave apart; allowed: longer times, or a run that ends earlier (rounds.until_s)"
        )

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return OnOffTracker(self.look_up, client)

    def part(self, client: IntArray) -> "OnOffProcess":
        """Return the availability of some of the clients; all parts share the states that were looked up."""
        some = copy.copy(self)
        some._client = client
        return some


@dataclass(frozen=True)
class Sessions:
    """Sessions of some clients, in which they are on; the owner of each is a position among the clients asked for."""

    owner: IntArray
    start_s: FloatArray
    end_s: FloatArray


class SojournLaw(Protocol):
    def starts_on(self, client: IntArray) -> BoolArray: ...

    def end_s(self, client: IntArray, number: IntArray, on: BoolArray, from_s: FloatArray) -> FloatArray: ...


class Renewal(OnOffProcess):
    def __init__(self, clients: int, law: SojournLaw, begins_s: float = 0.0) -> None:
        super().__init__(clients)
        self._law, self._begins_s = law, begins_s
        ids = np.arange(clients)
        self._starts_on = law.starts_on(ids)
        self._first = np.zeros(clients, dtype=np.int64)
        self._origin_s = np.full(clients, begins_s)
        self._ends_s = np.zeros((clients, WIDTH))
        self._draw(ids)

    def look_up(self, client: IntArray, time_s: float) -> tuple[BoolArray, FloatArray]:
        self._move_to(client, time_s)
        place = count_until(self._ends_s.ravel(), client * WIDTH, (client + 1) * WIDTH, time_s)
        return self._has(client, self._first[client] + place), self._ends_s[client, place]

    def sessions(self, client: IntArray, from_s: FloatArray, until_s: FloatArray) -> Sessions:
        """Return the sessions of each client between two instants of its own, cut at both."""
        row, now_s = np.arange(client.size), np.full(client.size, self._begins_s)
        on, number = self._starts_on[client], 0
        owner, start_s, end_s = [row[:0]], [now_s[:0]], [now_s[:0]]
        while row.size:
            ends_s = np.maximum(now_s, self._law.end_s(client[row], np.full(row.size, number), on, now_s))
            seen = on & (ends_s > from_s[row])
            owner.append(row[seen])
            start_s.append(np.maximum(now_s, from_s[row])[seen])
            end_s.append(np.minimum(ends_s, until_s[row])[seen])
            going = ends_s < until_s[row]
            row, now_s, on, number = row[going], ends_s[going], ~on[going], number + 1
        owners = np.concatenate(owner)
        order = np.argsort(owners, kind="stable")
        return Sessions(owners[order], np.concatenate(start_s)[order], np.concatenate(end_s)[order])

    def _has(self, client: IntArray, number: IntArray) -> BoolArray:
        return np.asarray(self._starts_on[client] ^ (number % 2 == 1))

    def _move_to(self, client: IntArray, time_s: float) -> None:
        """Move the window of each client to the sojourn that covers an instant."""
        past = client[self._origin_s[client] > time_s]
        if past.size:
            self._first[past], self._origin_s[past] = 0, self._begins_s
            self._draw(past)
        behind, drawn = client[self._ends_s[client, -1] <= time_s], 0
        while behind.size:
            drawn = self._counted(drawn, int(behind[0]), float(self._origin_s[behind[0]]), time_s)
            self._origin_s[behind] = self._ends_s[behind, -1]
            self._first[behind] += WIDTH
            self._draw(behind)
            behind = behind[self._ends_s[behind, -1] <= time_s]

    def _counted(self, drawn: int, client: int, now_s: float, until_s: float) -> int:
        """Return the number of sojourns with another window; refuse more than can be drawn."""
        if drawn >= MOST_SOJOURNS:
            raise ScenarioError(
                f"devices: client {client} would go on and off more than {drawn} times before it is looked at again at "
                f"{until_s:.6g} s (its state at {now_s:.6g} s is drawn); allowed: longer times of availability, of "
                "crashes and of outages (mean_on_s, mean_up_s ...), or other settings with which the run waits less"
            )
        return drawn + WIDTH

    def _draw(self, client: IntArray) -> None:
        from_s = self._origin_s[client]
        for column in range(WIDTH):
            number = self._first[client] + column
            from_s = np.maximum(from_s, self._law.end_s(client, number, self._has(client, number), from_s))
            self._ends_s[client, column] = from_s


class Markov(Component):
    """Alternating exponential on and off times: a two-state Markov chain in continuous time, stationary from time 0.

    A client is available for the share ``mean_on_s / (mean_on_s + mean_off_s)`` of the time. The law has no memory,
    so the sojourn that covers time 0 ends as if it had begun then.

    Attributes
    ----------
    mean_on_s, mean_off_s : mean sojourns in the two states
    """

    may_leave: ClassVar[bool] = True

    mean_on_s: Sojourn
    mean_off_s: Sojourn

    def build(self, run: RunSetup) -> Renewal:
        return Renewal(run.clients, MarkovSojourns(self.mean_on_s, self.mean_off_s, run.streams))


class MarkovSojourns:
    """Exponential sojourns, drawn from the streams ``<name>-start`` and ``<name>-sojourn``."""

    def __init__(self, mean_on_s: float, mean_off_s: float, streams: Streams, name: str = "availability") -> None:
        self.mean_on_s, self.mean_off_s, self._streams = mean_on_s, mean_off_s, streams
        self._start, self._sojourn = f"{name}-start", f"{name}-sojourn"

    def starts_on(self, client: IntArray) -> BoolArray:
        share = self.mean_on_s / (self.mean_on_s + self.mean_off_s)
        return self._streams.uniform(self._start, client) < share

    def end_s(self, client: IntArray, number: IntArray, on: BoolArray, from_s: FloatArray) -> FloatArray:
        mean_s = np.where(on, self.mean_on_s, self.mean_off_s)
        return np.asarray(from_s - mean_s * np.log1p(-self._streams.uniform(self._sojourn, client, number)))
