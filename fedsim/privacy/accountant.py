"""Epsilon that each client has spent, and the cost of its next upload."""

import math

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray, read_only
from fedsim.errors import ScenarioError
from fedsim.privacy.budget import BUDGET, Budget
from fedsim.privacy.composition import Ledger


class PrivacyAccountant:
    """The privacy account of each client, charged when an upload starts.

    An upload that is cut off later is charged all the same, because its bits were sent. Terms add up by the composition
    theorem (PAUSE, Theorem 2).

    Where clients also send numbers, beside an update or as an answer, the budget is divided: a share of each term pays
    for releases of numbers, which are counted apart, and the rest for releases of updates. The sum of both stays below
    the total for any number of either.

    With a ledger the updates of a client leak together what it says, and not the sum of their terms; numbers and what
    is declared are added to that. An account then closes before the limit is passed: as soon as it cannot pay for a
    further update, with the numbers of an answer and of that update.

    What clients declare once, before the first round, may cost epsilon of its own. It is spent from the beginning, and
    the budget's terms shrink by the factor that leaves the rest of the total to all releases. What clients answer about
    the number of their samples is reserved in the same way, and spent as they respond.
    """

    def __init__(
        self,
        budget: Budget,
        clients: int,
        numbers_share: float = 0.0,
        declared: float = 0.0,
        least_epsilon: float | None = None,
        ledger: Ledger | None = None,
        most_epsilon: float | None = None,
        reserved: float = 0.0,
    ) -> None:
        if clients < 0:
            raise ValueError(f"clients: {clients!r} is not allowed; it must be at least 0")
        if not 0 <= numbers_share < 1:
            raise ValueError(f"numbers_share: {numbers_share!r} is not allowed; it must be in [0, 1)")
        self.budget, self.numbers_share, self.declared = BUDGET.checked(budget), numbers_share, declared
        total = self.budget.total
        if not 0 <= declared < total:
            raise ValueError(
                f"declared: {declared!r} is not allowed; it must be at least 0 and below the budget of {total!r}"
            )
        if not 0 <= reserved < total - declared:
            raise ValueError(
                f"reserved: {reserved!r} is not allowed; it must be at least 0 and below {total - declared!r}, what is "
                "left of the budget"
            )
        self.reserved = reserved
        self.adds_up = ledger is None
        self.total = float(self.budget.total) if most_epsilon is None else most_epsilon
        self._ledger, self._composed = ledger, [0.0]
        self._left = 1.0 - (declared + reserved) / self.budget.total
        self._sizes = np.zeros(clients)
        self._releases, self._numbers = np.zeros(clients, dtype=np.int64), np.zeros(clients, dtype=np.int64)
        self._spent = np.full(clients, float(declared))
        self.releases: IntArray = read_only(self._releases)
        self.numbers: IntArray = read_only(self._numbers)
        self.spent: FloatArray = read_only(self._spent)
        self.largest = float(declared) if clients else 0.0
        self._least = -math.inf if least_epsilon is None else least_epsilon
        self._open = np.ones(clients, dtype=np.bool_)
        self.closed: list[int] = []
        # Cost and sum of each release that any client has made: a term depends on its number alone.
        self._terms: list[tuple[float, float]] = []
        self._ends: list[bool] = []
        if self._ends_with(declared, 0, 0):
            self._open[:] = False
            self.closed.extend(range(clients))

    def cohort_sent(self) -> None:
        """Note that a cohort is sent; clients pay at their uploads."""

    def charge(self, client: int) -> tuple[float, int]:
        """Charge a client for the update whose upload starts now; return its epsilon and the release's number."""
        return self._charge(client, self._releases, 1.0 - self.numbers_share)

    def charge_numbers(self, client: int) -> tuple[float, int]:
        """Charge a client for the numbers whose upload it starts now; return as `charge` does."""
        return self._charge(client, self._numbers, self.numbers_share)

    def charge_size(self, client: int, epsilon: float, *, once: bool = False) -> float:
        """Charge a client for stating the number of its samples, and return what that costs."""
        cost = 0.0 if once and self._sizes[client] else epsilon
        spent = float(self._sizes[client]) + cost
        if spent > self.reserved * (1 + 1e-9):
            raise ScenarioError(
                f"privacy: client {client} would spend {spent!r} epsilon on its number of samples; "
                f"{self.reserved!r} is reserved for it"
            )
        self._sizes[client] += cost
        self._settle(client)
        return cost

    def _charge(self, client: int, counts: IntArray, share: float) -> tuple[float, int]:
        if not 0 <= client < counts.size:
            raise IndexError(f"client: {client!r} is not one of the {counts.size} in the accountant")
        index = int(counts[client]) + 1
        self._know(index)
        counts[client] = index
        self._settle(client)
        return self._cost(index, share), index

    def _settle(self, client: int) -> None:
        """Work out what a client has spent, and close its account if too little is left."""
        updates, numbers = int(self._releases[client]), int(self._numbers[client])
        self._spent[client] = spent = self._sum(updates, numbers, float(self._sizes[client]))
        self.largest = max(self.largest, spent)
        if self._open[client] and self._ends_with(spent, updates, numbers):
            self._open[client] = False
            self.closed.append(client)

    def _ends_with(self, spent: float, updates: int, numbers: int) -> bool:
        """Return whether an account that has spent so much, for these numbers of releases, is closed."""
        return self.total - spent < self._least or self._is_last(updates) or not self._pays(updates, numbers)

    def _sum(self, updates: int, numbers: int, sizes: float) -> float:
        """Return what a client has spent after some updates, some uploads of numbers, and statements of its size."""
        fixed = self.declared + sizes
        if self._ledger is not None:
            told = self._left * self.numbers_share * self._leaked(numbers) if self.numbers_share else 0.0
            return fixed + self._together(updates, self._ledger) + told
        spent = self._leaked(updates)
        if self.numbers_share:
            spent = (1.0 - self.numbers_share) * spent + self.numbers_share * self._leaked(numbers)
        if self.declared or self.reserved:
            spent = fixed + self._left * spent
        if self.numbers_share or self.declared or self.reserved:
            spent = min(spent, self.total)  # above it by rounding alone
        return spent

    def _together(self, updates: int, ledger: Ledger) -> float:
        while updates >= len(self._composed):
            cost = self._cost(len(self._composed), 1.0 - self.numbers_share)
            self._composed.append(max(self._composed[-1], ledger.add(cost)))
        return self._composed[updates]

    def _pays(self, updates: int, numbers: int) -> bool:
        """Return whether an account can pay for a further update, after an answer and with numbers beside it."""
        if self._ledger is None:
            return True  # the terms of a budget never exceed its total
        if self._is_last(updates):
            return False
        return self._sum(updates + 1, numbers + 2 if self.numbers_share else 0, self.reserved) <= self.total

    def _cost(self, index: int, share: float) -> float:
        """Return the cost of a client's release of this number, of which a share of the budget pays."""
        self._know(index)
        return self._left * (share * self._terms[index - 1][0])

    def _know(self, index: int) -> None:
        while index > len(self._terms):
            self._terms.append(self._term(len(self._terms) + 1))

    @property
    def why_closed(self) -> str:
        """Why no client can be selected any more, once all accounts have closed."""
        if not self.adds_up:
            return (
                f"no client can pay for a further update: all may leak {self.total:.6g} epsilon together, and no more"
            )
        if self._least > -math.inf:
            return f"no client has {self._least:.6g} epsilon of its privacy budget left, the least of a candidate"
        return "the privacy budget of each client is spent"

    def is_open(self, client: IntArray) -> BoolArray:
        return self._open[client]

    def _is_last(self, releases: int) -> bool:
        while releases >= len(self._ends):
            self._ends.append(not self.budget.term(len(self._ends) + 1) > 0)
        return self._ends[releases]

    def _leaked(self, releases: int) -> float:
        self._know(releases)
        return self._terms[releases - 1][1] if releases else 0.0

    def _term(self, index: int) -> tuple[float, float]:
        """Return the cost of a client's release of this number, and the sum up to it."""
        spent = float(self.budget.leaked(index))
        if not spent <= self.budget.total:
            raise ScenarioError(
                f"budget: {self.budget!r} leaks {spent!r} in {index} releases, more than its total of "
                f"{self.budget.total!r}"
            )
        return float(self.budget.term(index)), spent


class SampledAccountant(PrivacyAccountant):
    """The accounts of clients that take part in each release with one probability, drawn in secret by the server."""

    def __init__(
        self,
        budget: Budget,
        clients: int,
        *,
        ledger: Ledger,
        least_epsilon: float | None = None,
        most_epsilon: float | None = None,
    ) -> None:
        super().__init__(budget, clients, least_epsilon=least_epsilon, ledger=ledger, most_epsilon=most_epsilon)
        self._cohorts = 0

    def cohort_sent(self) -> None:
        self._cohorts += 1
        spent = self._sum(self._cohorts, 0, 0.0)
        self._spent[:] = spent
        self.largest = max(self.largest, spent)
        if self._open.any() and self._ends_with(spent, self._cohorts, 0):
            self._open[:] = False
            self.closed.extend(range(self._open.size))

    def charge(self, client: int) -> tuple[float, int]:
        """Return the cost of the newest cohort by itself, and the number of this client's upload; all have paid."""
        if not 0 <= client < self._releases.size:
            raise IndexError(f"client: {client!r} is not one of the {self._releases.size} in the accountant")
        self._releases[client] += 1
        return self._cost(max(1, self._cohorts), 1.0), int(self._releases[client])
