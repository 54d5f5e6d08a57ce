"""Epsilon that each client has spent, and the cost of its next upload."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.privacy.budget import BUDGET, Budget


class PrivacyAccountant:
    """The privacy account of each client, charged when an upload starts.

    An upload that is cut off later is charged all the same, because its bits were sent. Terms add up by the
    composition theorem (PAUSE, Theorem 2). The state is the number of releases; the sum follows from it.

    Parameters
    ----------
    budget : costs of the successive releases of one client, the same for all
    clients : number of clients K, >= 0

    Attributes
    ----------
    releases : uploads that each client has started, shape (K,); a read-only view of the present state
    spent : epsilon that each client has spent, shape (K,), never above the budget; a read-only view
    largest : the largest epsilon that any client has spent
    """

    def __init__(self, budget: Budget, clients: int) -> None:
        if clients < 0:
            raise ValueError(f"clients: {clients!r} is not allowed; it must be at least 0")
        self.budget = BUDGET.checked(budget)
        self._releases = np.zeros(clients, dtype=np.int64)
        self._spent = np.zeros(clients)
        self.releases: IntArray = self._releases.view()
        self.spent: FloatArray = self._spent.view()
        self.releases.setflags(write=False)
        self.spent.setflags(write=False)
        self.largest = 0.0
        # Cost and sum of each release that any client has made: a term depends on its number alone.
        self._terms: list[tuple[float, float]] = []

    def charge(self, client: int) -> tuple[float, int]:
        """Charge a client for the upload that it starts now.

        Returns
        -------
        epsilon : cost of this release
        index : number of the release among those of the client, from 1

        Raises
        ------
        IndexError
            If the id is not in 0..K-1.
        ScenarioError
            If the terms of the budget policy exceed its total.
        """
        if not 0 <= client < self._releases.size:
            raise IndexError(f"client: {client!r} is not one of the {self._releases.size} in the accountant")
        index = int(self._releases[client]) + 1
        if index > len(self._terms):
            self._terms.append(self._term(index))
        epsilon, spent = self._terms[index - 1]
        self._releases[client], self._spent[client] = index, spent
        self.largest = max(self.largest, spent)
        return epsilon, index

    def _term(self, index: int) -> tuple[float, float]:
        """Return the cost of a client's release of this number, and the sum up to it."""
        spent = float(self.budget.leaked(index))
        if not spent <= self.budget.total:
            raise ScenarioError(
                f"budget: {self.budget!r} leaks {spent!r} in {index} releases, more than its total of "
                f"{self.budget.total!r}"
            )
        return float(self.budget.term(index)), spent
