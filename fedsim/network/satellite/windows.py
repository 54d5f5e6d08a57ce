"""Windows of contact that repeat: when a transfer has had enough seconds of contact, exactly and on average."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.per_client import Values


@dataclass(frozen=True)
class Windows:
    """The windows of each of K clients within one period, after which they repeat."""

    start_s: FloatArray
    length_s: FloatArray
    period_s: float

    @cached_property
    def before_s(self) -> FloatArray:
        """Contact before each window within the period, shape (K, M)."""
        return np.asarray(np.cumsum(self.length_s, axis=1) - self.length_s)

    @cached_property
    def total_s(self) -> FloatArray:
        return np.asarray(self.length_s.sum(axis=1))

    def contact_s(self, client: IntArray, time_s: FloatArray) -> FloatArray:
        """Return the contact of clients from the begin of a period to a time within it."""
        inside_s = np.clip(time_s[:, None] - self.start_s[client], 0.0, self.length_s[client])
        return np.asarray(inside_s.sum(axis=1))

    def reached_s(self, client: IntArray, contact_s: FloatArray) -> FloatArray:
        """Return when clients have had some seconds of contact since the begin of a period."""
        total_s = self.total_s[client]
        periods = np.zeros(client.size)
        np.divide(contact_s, total_s, out=periods, where=total_s > 0)
        periods = np.maximum(np.ceil(periods) - 1.0, 0.0)
        left_s = contact_s - periods * total_s
        before_s, length_s, own = self.before_s[client], self.length_s[client], np.arange(client.size)
        # The first window at whose end the contact is enough; at the last one rounding may ask for a little more.
        window = np.minimum((before_s + length_s < left_s[:, None]).sum(axis=1), (length_s > 0).sum(axis=1) - 1)
        end_s = self.start_s[client][own, window] + np.minimum(left_s - before_s[own, window], length_s[own, window])
        return np.where(total_s > 0, periods * self.period_s + end_s, np.inf)

    def until_s(self, client: IntArray, time_s: FloatArray, contact_s: Values) -> FloatArray:
        """Return how long clients take from an instant to have some seconds of contact."""
        phase_s = np.mod(time_s, self.period_s)
        reached_s = self.reached_s(client, self.contact_s(client, phase_s) + contact_s)
        return np.maximum(reached_s - phase_s, contact_s)

    def mean_until_s(self, contact_s: Values) -> FloatArray:
        """Return the mean of `until_s` over all instants of a period, shape (K,).

        With F(x) the instant at which x seconds of contact are reached and T the contact of a period P, a start within
        a window runs through the integral of F from s to s + T, which is that from 0 to T plus P s; a start within a
        gap after contact u ends at F(u + s).
        """
        clients, windows = self.start_s.shape
        ids = np.arange(clients)
        inside = (self.start_s * self.length_s + self.length_s**2 / 2).sum(axis=1) + self.period_s * contact_s
        # The gap before each window, and that after the last one, which ends in the next period.
        ends_s = np.column_stack([np.zeros(clients), self.start_s + self.length_s])
        gaps_s = np.column_stack([self.start_s, np.full(clients, self.period_s)]) - ends_s
        had_s = np.column_stack([self.before_s, self.total_s])
        for gap in range(windows + 1):
            end_s = self.reached_s(ids, had_s[:, gap] + contact_s)
            inside += gaps_s[:, gap] * np.where(self.total_s > 0, end_s, 0.0)
        mean_s = inside / self.period_s - self.period_s / 2
        return np.where(self.total_s > 0, mean_s, np.inf)
