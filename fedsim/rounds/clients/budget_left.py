"""Clients whose privacy accounts are open, so that they may be selected."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, filled
from fedsim.devices.tracking import AvailabilityTracker
from fedsim.privacy import PrivacyAccountant


class BudgetLeft:
    """An eligibility criterion: a client whose account has closed is no candidate.

    Epsilon is never given back, so that such a client never becomes a candidate again.
    """

    def __init__(self, accountant: PrivacyAccountant) -> None:
        self._accountant = accountant

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return _ClosedAccounts(self._accountant, client)

    def holds(self, client: IntArray, time_s: float) -> BoolArray:
        return self._accountant.is_open(client)

    def window_s(self, client: IntArray, time_s: float) -> tuple[FloatArray, FloatArray]:
        never = filled(client.size, float("inf"))
        from_s = never.copy()
        from_s[self.holds(client, time_s)] = time_s
        return from_s, never


class _ClosedAccounts(AvailabilityTracker):
    """Clients with open accounts: one look at each client, then one at each account that closes."""

    def __init__(self, accountant: PrivacyAccountant, client: IntArray) -> None:
        super().__init__(client.size)
        self._accountant, self._client = accountant, client
        self._seen: int | None = None

    def update(self, time_s: float, draw: int) -> IntArray:
        closed = self._accountant.closed
        if self._seen is None:
            place = np.arange(self._client.size)
        elif self._seen == len(closed):
            return self._client[:0]
        else:
            place = np.flatnonzero(np.isin(self._client, closed[self._seen :]))
        self._seen = len(closed)
        return self._set(place, self._accountant.is_open(self._client[place]))
