"""Eligibility of clients: online, and besides with a charged battery, a running device and a link that is up."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.devices.batteries import Batteries
from fedsim.devices.contracts import Availability
from fedsim.devices.tracking import AvailabilityTracker, JointTracker, PlainTracker


class EligibilityCriterion(Protocol):
    """A requirement of a client beside being online."""

    def tracker(self, client: IntArray) -> AvailabilityTracker: ...

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        """Return whether each client meets the criterion at an instant."""
        ...

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the time in which each client may meet the criterion next, both of shape (n,).

        They hold for clients that take no part until then. Before the first bound a client surely does not meet the
        criterion, and after the second it never will.
        """
        ...


class Charge:
    """A battery above the threshold."""

    def __init__(self, batteries: Batteries) -> None:
        self._batteries = batteries

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        """Return what looks at each battery anew, since participations begin and end between looks."""
        return PlainTracker(lambda ids, time_s, _: self.holds(ids, time_s), client, "look")

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        return self._batteries.charged(client, time_s)

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        from_s, until_s = (bound[client] for bound in self._batteries.charged_s())
        return np.maximum(from_s, time_s), until_s


class Working:
    """A device that runs, or a link that is up."""

    def __init__(self, process: OnOffProcess) -> None:
        self._process = process

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return self._process.tracker(client)

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        return self._process.state(client, time_s)[0]

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        """Return when each device or link works next, without an end, since it always comes back."""
        works, left_s = self._process.state(client, time_s)
        return np.where(works, time_s, time_s + left_s), np.full(client.size, np.inf)


class Busy:
    """Work to do: a client without samples has none, for the whole run."""

    def __init__(self, works: BoolArray) -> None:
        self._works = works

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return PlainTracker(lambda ids, time_s, _: self.holds(ids, time_s), client, "run")

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        return np.asarray(self._works[client])

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        return np.where(self._works[client], time_s, np.inf), np.full(client.size, np.inf)


class EligibleClients(Availability):
    """The run's availability: online, device and link up, battery above threshold.

    Where no online client meets all criteria, `next_s` searches for the first instant at which one does. Clients that
    come and go with time are looked up from change to change. A draw without an eligible client is repeated every
    `retry_s`, with random numbers of its own, unless only some clients count.
    """

    def __init__(self, online: Availability, criteria: Sequence[EligibilityCriterion], client: IntArray) -> None:
        self.kind, self.retry_s = online.kind, online.retry_s
        self._online, self._criteria, self._client = online, criteria, client

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        eligible = self._online.available(client, time_s, draw)
        for criterion in self._criteria:
            eligible = eligible & criterion.holds(client, time_s)
        return np.asarray(eligible)

    def leaves_after_s(self, client: IntArray, time_s: float, draw: int, task_s: FloatArray) -> FloatArray:
        """Return the seconds until each client goes offline; crashes and empty batteries are events."""
        return self._online.leaves_after_s(client, time_s, draw, task_s)

    def next_s(self, time_s: float, draw: int, client: IntArray | None = None) -> tuple[float, int]:
        looked_at = self._client if client is None else client
        repeats = client is None and self.kind == "per-draw"
        now_s, draw = self._online.next_s(time_s, draw, client)
        while math.isfinite(now_s) and not self.available(looked_at, now_s, draw).any():
            if repeats:
                wait_s = (
                    float(self._possible_s(looked_at, now_s, np.full(looked_at.size, now_s)).min(initial=np.inf))
                    - now_s
                )
                tries = max(1.0, math.ceil(wait_s / self.retry_s)) if math.isfinite(wait_s) else math.inf
                later_s, draw = now_s + self.retry_s * tries, self.redraw(draw)
            else:
                later_s = float(self.earliest_s(looked_at, now_s, draw).min(initial=np.inf))
            if math.isinf(later_s):
                return math.inf, draw
            # Sums may round to the present instant; time must go on.
            now_s, draw = self._online.next_s(max(later_s, math.nextafter(now_s, math.inf)), draw, client)
        return now_s, draw

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return JointTracker([self._online.tracker(client), *(part.tracker(client) for part in self._criteria)])

    def redraw(self, draw: int) -> int:
        return self._online.redraw(draw)

    def earliest_s(self, client: IntArray, time_s: float, draw: int) -> FloatArray:
        return self._possible_s(client, time_s, self._online.earliest_s(client, time_s, draw))

    def part(self, client: IntArray) -> "EligibleClients":
        return EligibleClients(self._online.part(client), self._criteria, client)

    def _possible_s(self, client: IntArray, time_s: float, from_s: FloatArray) -> FloatArray:
        """Return the first instant from given ones on at which each client may meet the criteria; `inf`: never."""
        until_s = np.full(client.size, np.inf)
        for criterion in self._criteria:
            opens_s, closes_s = criterion.window_s(client, time_s)
            from_s, until_s = np.maximum(from_s, opens_s), np.minimum(until_s, closes_s)
        return np.where(from_s <= until_s, from_s, np.inf)
