"""What each client has leaked so far, and what its next upload costs."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import ScenarioError
from fedsim.privacy.budget import Budget

T = TypeVar("T", bound=np.generic)


class PrivacyAccountant:
    """The account of every client, charged when an upload starts.

    An upload that is later cut off is paid for: its bits were on the air. Terms add up by the composition
    theorem (PAUSE, Theorem 2), and what is kept is the number of releases; the sum is computed from it.

    Parameters
    ----------
    budget : Budget
        Costs of the successive releases of one client, the same for all.
    clients : int >= 0
        Number of clients K in the crowd.
    """

    def __init__(self, budget: Budget, clients: int) -> None:
        if clients < 0:
            raise ValueError(f"clients: {clients!r} is not allowed; it must be at least 0")
        self.budget = budget
        self._releases = np.zeros(clients, dtype=np.int64)
        self._spent = np.zeros(clients)

    @property
    def releases(self) -> NDArray[np.int64]:
        """How often each client has uploaded, shape (K,); read-only and live: copy it to keep it."""
        return _read_only(self._releases)

    @property
    def spent(self) -> NDArray[np.float64]:
        """Epsilon that each client has leaked, shape (K,), never above the budget; read-only and live."""
        return _read_only(self._spent)

    def charge(self, client: int) -> tuple[float, int]:
        """Charge a client for the upload that it starts now.

        Returns
        -------
        epsilon : float
            What this release may leak.
        index : int
            The how-manieth release of the client it is, from 1.

        Raises
        ------
        IndexError
            If there is no such client.
        ScenarioError
            If the budget policy lets its terms grow beyond the total it promises.
        """
        if not 0 <= client < self._releases.size:
            raise IndexError(f"client: {client!r} is not one of the {self._releases.size} in the ledger")
        index = int(self._releases[client]) + 1
        spent = float(self.budget.leaked(index))
        if not spent <= self.budget.total:
            raise ScenarioError(
                f"budget: {self.budget!r} leaks {spent!r} in {index} releases, more than its total of "
                f"{self.budget.total!r}"
            )
        self._releases[client], self._spent[client] = index, spent
        return float(self.budget.term(index)), index


def _read_only(array: NDArray[T]) -> NDArray[T]:
    view = array.view()
    view.flags.writeable = False
    return view
