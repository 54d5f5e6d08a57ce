"""TiFL's profiler: how long clients take, and which tier that puts them into."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray


class Profile:
    """Latencies of all clients, by id, and tiers of equal numbers of clients, the fastest first.

    Parameters
    ----------
    tiers : int >= 1
    tries : int >= 1
        How often each client is profiled, the paper's sync_rounds.
    timeout_s : float or None
        Latency of a try that was not answered, the paper's T_max; None to leave such tries out of the mean.

    Attributes
    ----------
    tier : array of shape (K,), tier of each client from 0; -1 before it is profiled, and for dropouts: those that did
        not answer once
    """

    def __init__(self, tiers: int, tries: int, timeout_s: float | None) -> None:
        self.tiers, self.tries, self.timeout_s = tiers, tries, timeout_s
        self._done: IntArray = np.zeros(0, dtype=np.int64)
        self._counted: IntArray = np.zeros(0, dtype=np.int64)
        self._total_s: FloatArray = np.zeros(0)
        self._answered: BoolArray = np.zeros(0, dtype=bool)
        self._changed = False
        self.tier: IntArray = np.zeros(0, dtype=np.int64)

    def make_room(self, clients: int) -> None:
        """Make room for so many clients."""
        missing = clients - self._done.size
        if missing > 0:
            self._done, self._counted = np.pad(self._done, (0, missing)), np.pad(self._counted, (0, missing))
            self._total_s, self._answered = np.pad(self._total_s, (0, missing)), np.pad(self._answered, (0, missing))
            self.tier = np.pad(self.tier, (0, missing), constant_values=-1)

    def open(self, client: IntArray) -> BoolArray:
        """Return which of some clients have not been profiled often enough."""
        return np.asarray(self._done[client] < self.tries)

    def tries_of(self, client: IntArray) -> IntArray:
        """Return how often some clients have been profiled."""
        return self._done[client]

    def learn(self, client: IntArray, latency_s: FloatArray) -> None:
        """Take in a try of each of some clients, NaN for those that did not answer."""
        answered = np.isfinite(latency_s)
        counts = answered | (self.timeout_s is not None)
        self._done[client] += 1
        self._answered[client] |= answered
        self._counted[client] += counts
        self._total_s[client] += np.where(answered, latency_s, (self.timeout_s or 0.0) * counts)
        self._changed |= bool(client.size)

    def sort(self) -> None:
        """Put clients into tiers by their mean latency, if anything has changed; equal ones by id."""
        if not self._changed:
            return
        known = np.flatnonzero(self._answered)
        order = known[np.argsort(self._total_s[known] / self._counted[known], kind="stable")]
        self.tier[:] = -1
        self.tier[order] = np.arange(order.size) * self.tiers // max(order.size, 1)
        self._changed = False
