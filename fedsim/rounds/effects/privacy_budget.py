"""Uploads are charged to privacy accounts, and clients whose accounts are closed are not selected any more."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices.tracking import AvailabilityTracker
from fedsim.learning import Release
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.effects.contract import NEVER, Effect, Never
from fedsim.rounds.plan import Plan


class PrivacyBudget(Effect):
    """A client with a closed account is no candidate; one whose upload takes the last of its budget sends it.

    Epsilon is never given back, so that such a client never becomes a candidate again.
    """

    may_end = False
    phases: frozenset[int] = frozenset()

    def __init__(self, accountant: PrivacyAccountant, *, numbers: bool = False) -> None:
        self.accountant, self._numbers = accountant, numbers and bool(accountant.numbers_share)

    def plan(self, plan: Plan) -> None:
        """Charge each client of a cohort when its message up begins."""
        if plan.cohort is not None:
            self.accountant.cohort_sent()
            plan.on_upload = partial(self._charge, plan)

    def _charge(self, plan: Plan, i: int) -> None:
        client, accountant = int(plan.client[i]), self.accountant
        plan.releases[i] = Release(*accountant.charge(client))
        if self._numbers:
            plan.number_releases[i] = Release(*accountant.charge_numbers(client))
        plan.spent[i] = float(accountant.spent[client])

    def columns(self, plan: Plan, members: IntArray) -> Mapping[str, FloatArray]:
        """Return the epsilon that uploads of a cohort were charged."""
        return {} if plan.cohort is None else {"epsilon": charged(plan, members)}

    def free_s(self, client: IntArray, time_s: float) -> FloatArray:
        return np.where(self.accountant.is_open(client), time_s, NEVER)

    def never(self, time_s: float) -> Never | None:
        if len(self.accountant.closed) < self.accountant.spent.size:
            return None
        return Never("privacy", self.accountant.why_closed, "a budget that pays for an update")

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return _ClosedAccounts(self.accountant, client)


class _ClosedAccounts(AvailabilityTracker):
    """Clients with open accounts: one look at each client, then one at each account that closes."""

    def __init__(self, accountant: PrivacyAccountant, client: IntArray) -> None:
        super().__init__(client.size)
        self._accountant, self._client = accountant, client
        self._seen = -1

    def update(self, time_s: float, draw: int) -> IntArray:
        closed = self._accountant.closed
        if self._seen < 0:
            place = np.arange(self._client.size)
        elif self._seen == len(closed):
            return self._client[:0]
        else:
            place = np.flatnonzero(np.isin(self._client, closed[self._seen :]))
        self._seen = len(closed)
        return self._set(place, self._accountant.is_open(self._client[place]))


def charged(plan: Plan, members: IntArray) -> FloatArray:
    """Return the epsilon that members' uploads were charged, 0 before they start."""
    found = plan.releases, plan.number_releases
    return np.array([sum(of[i].epsilon for of in found if i in of) for i in members.tolist()], dtype=np.float64)
