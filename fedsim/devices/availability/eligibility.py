"""Eligibility of clients: online, and besides free, which effects of a run say: charged, running, with a link."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.contracts import Availability
from fedsim.devices.tracking import AvailabilityTracker, JointTracker


class Freedom(Protocol):
    """What besides being online a client needs to be selected; an effect of a run, for example."""

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        """Return what tells at each look which clients may be selected."""
        ...

    def free_s(self, client: IntArray, time_s: float) -> FloatArray | None:
        """Return from which instant on each client may be selected if it takes no part until then; None for always."""
        ...


class EligibleClients(Availability):
    """The run's availability: online, and free by all that has a say."""

    def __init__(self, online: Availability, freedoms: Sequence[Freedom], client: IntArray) -> None:
        self.kind, self.retry_s = online.kind, online.retry_s
        self._online, self._freedoms, self._client = online, freedoms, client

    def available(self, client: IntArray, time_s: float, draw: int) -> BoolArray:
        eligible = self._online.available(client, time_s, draw)
        for freedom in self._freedoms:
            if (free_s := freedom.free_s(client, time_s)) is not None:
                eligible = eligible & (free_s <= time_s)
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
                free_s = self._possible_s(looked_at, now_s, np.full(looked_at.size, now_s))
                wait_s = float(free_s.min(initial=np.inf)) - now_s
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
        return JointTracker([self._online.tracker(client), *(part.tracker(client) for part in self._freedoms)])

    def redraw(self, draw: int) -> int:
        return self._online.redraw(draw)

    def earliest_s(self, client: IntArray, time_s: float, draw: int) -> FloatArray:
        return self._possible_s(client, time_s, self._online.earliest_s(client, time_s, draw))

    def part(self, client: IntArray) -> "EligibleClients":
        return EligibleClients(self._online.part(client), self._freedoms, client)

    def _possible_s(self, client: IntArray, time_s: float, from_s: FloatArray) -> FloatArray:
        """Return the first instant from given ones on at which each client may be free; `inf`: never."""
        for freedom in self._freedoms:
            if (free_s := freedom.free_s(client, time_s)) is not None:
                from_s = np.maximum(from_s, free_s)
        return from_s
