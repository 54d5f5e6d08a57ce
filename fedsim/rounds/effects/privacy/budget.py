"""Uploads are charged to privacy accounts, and clients whose accounts are closed are not selected any more."""

import math
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices.tracking import AvailabilityTracker
from fedsim.errors import ScenarioError, SelectorError
from fedsim.learning import Release
from fedsim.measurements import NUMBERS
from fedsim.privacy import Privacy, PrivacyAccountant
from fedsim.rounds.effects.contract import NEVER, BesidePhases, Effect, Effects, Never
from fedsim.rounds.effects.server_port import Tables
from fedsim.rounds.plan import Plan
from fedsim.selectors import Probe, SelectorInfo

_ALL: Final = slice(None)


class PrivacyBudget(BesidePhases):
    """A client with a closed account is no candidate; one whose upload takes the last of its budget sends it.

    Epsilon is never given back, so that such a client never becomes a candidate again.
    """

    def __init__(self, accountant: PrivacyAccountant, selector: SelectorInfo) -> None:
        self.accountant, self._selector = accountant, selector
        self._numbers = bool(accountant.numbers_share)
        self._member: IntArray | slice = _ALL

    def at_edge(self, member: IntArray) -> Effect:
        mine = copy(self)
        mine._member = member
        return mine

    def plan(self, plan: Plan) -> None:
        """Charge each client of a cohort, or its response to a question, when its message up begins."""
        if plan.cohort is not None:
            self.accountant.cohort_sent()
            plan.on_upload = partial(self._charge, plan)
        elif plan.question is not None:
            plan.on_upload = self._charge_of(plan.question, plan)

    def _charge(self, plan: Plan, i: int) -> None:
        client, accountant = int(plan.client[i]), self.accountant
        plan.releases[i] = Release(*accountant.charge(client))
        if self._numbers and not NUMBERS.isdisjoint(self._selector.needs):
            self._charge_numbers(plan, i)
        plan.spent[i] = float(accountant.spent[client])

    def _charge_numbers(self, plan: Plan, i: int) -> None:
        plan.number_releases[i] = Release(*self.accountant.charge_numbers(int(plan.client[i])))

    def _charge_of(self, question: Probe, plan: Plan) -> Callable[[int], None] | None:
        """Return what charges a response; None for what discloses nothing, or leaks without bound and says so."""
        selector = self._selector
        # The expected seconds of work and upload disclose nothing of a client's data.
        if question.asks == "loss":
            if not selector.asks_losses:
                raise SelectorError(
                    f"{selector.name}.probe asks for losses in a run with privacy",
                    f"allowed: only with {selector.name}.asks_losses = True",
                )
            return partial(self._charge_numbers, plan) if self._numbers else None
        if question.response is None:
            return None
        cost = 0.0 if math.isinf(question.response.epsilon) else question.response.epsilon
        if not selector.asks_sizes or not math.isclose(selector.sizes_cost, cost):
            raise SelectorError(
                f"{selector.name}.probe asks for numbers of samples at {cost!r} epsilon in a run with privacy",
                f"allowed: only with {selector.name}.asks_sizes = True and {selector.name}.sizes_cost = {cost!r}",
            )
        return partial(self._charge_size, plan, cost) if cost else None

    def _charge_size(self, plan: Plan, cost: float, i: int) -> None:
        once = self._selector.sizes_paid_once
        plan.number_releases[i] = Release(self.accountant.charge_size(int(plan.client[i]), cost, once=once), 0)

    def columns(self, plan: Plan, members: IntArray) -> Mapping[str, FloatArray]:
        """Return the epsilon that uploads of a cohort, or responses, were charged."""
        return {} if plan.cohort is None and plan.question is None else {"epsilon": charged(plan, members)}

    def of_round(self, tables: Tables, number: int) -> Mapping[str, float | None]:
        accountant, whole = self.accountant, self._member is _ALL
        spent = accountant.spent[self._member]
        return {
            "largest_leakage": accountant.largest if whole else float(spent.max()),
            "mean_leakage": float(spent.mean()),
        }

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


def accountant_of(effects: Effects) -> PrivacyAccountant | None:
    budget = effects.of(PrivacyBudget)
    return None if budget is None else budget.accountant


def reserved_for_sizes(selector: SelectorInfo, privacy: Privacy, rounds: int) -> float:
    """Return the most epsilon that it costs a client to state the number of its samples, in a run."""
    most = selector.sizes_cost * (1 if selector.sizes_paid_once else rounds)
    total = float(privacy.budget.total)
    if most and not most < total:
        raise ScenarioError(
            f"selector: {selector.name} asks for numbers of samples, and that may cost a client {most:g} epsilon "
            f"({selector.sizes_cost:g} an answer); the budget of privacy is {total:g}; allowed: a larger budget, a "
            "smaller epsilon, query = 'once' or anonymous = true"
        )
    return most
