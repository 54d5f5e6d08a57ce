"""TiFL's profiler: mean latency of each client, and tiers of equal numbers of clients."""

from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.sampling import grown

NO_TIER: Final = -1
"""Tier of a client that is in none."""


class Profile:
    """Latencies and tiers of all clients, over client ids; tier 0 is the fastest."""

    def __init__(self, tiers: int, tries: int, timeout_s: float | None) -> None:
        self.tiers, self.tries, self.timeout_s = tiers, tries, timeout_s
        self._done: IntArray = np.zeros(0, dtype=np.int64)
        self._counted: IntArray = np.zeros(0, dtype=np.int64)
        self._total_s: FloatArray = np.zeros(0)
        self._answered: BoolArray = np.zeros(0, dtype=bool)
        self._changed = False
        self.tier: IntArray = np.zeros(0, dtype=np.int64)

    def make_room(self, clients: int) -> None:
        self._done, self._counted = grown(self._done, clients), grown(self._counted, clients)
        self._total_s, self._answered = grown(self._total_s, clients), grown(self._answered, clients)
        self.tier = grown(self.tier, clients, NO_TIER)

    def open(self, client: IntArray) -> BoolArray:
        """Return the mask of clients with fewer than ``tries`` profiling rounds, shape of ``client``."""
        return np.asarray(self._done[client] < self.tries)

    def tries_of(self, client: IntArray) -> IntArray:
        """Return the number of profiling rounds of each client, shape of ``client``."""
        return self._done[client]

    def learn(self, client: IntArray, latency_s: FloatArray) -> None:
        """Add one try of each client: its latency in seconds, NaN without an answer; shapes (n,)."""
        answered = np.isfinite(latency_s) & (latency_s <= (np.inf if self.timeout_s is None else self.timeout_s))
        counts = answered | (self.timeout_s is not None)
        self._done[client] += 1
        self._answered[client] |= answered
        self._counted[client] += counts
        self._total_s[client] += np.where(answered, latency_s, (self.timeout_s or 0.0) * counts)
        self._changed |= bool(client.size)

    def sort(self) -> None:
        """Assign tiers by mean latency, ties by id, if there are new tries."""
        if not self._changed:
            return
        known = np.flatnonzero(self._answered)
        order = known[np.argsort(self._total_s[known] / self._counted[known], kind="stable")]
        self.tier[:] = NO_TIER
        self.tier[order] = np.arange(order.size) * self.tiers // max(order.size, 1)
        self._changed = False
