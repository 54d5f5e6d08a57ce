"""Clients in flight at the instant of a selection: none at a synchronous server, most of K at an asynchronous one."""

import numpy as np

from fedsim.arrays import BoolArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView
from fedsim.selectors.sampling import grown, whole


class InFlight:
    """The clients that were selected and have neither been reported nor been candidates since.

    A synchronous server reports its cohort at the end of the round: no client is in flight at the next selection. An
    asynchronous server selects one client when another has ended. A rule for a cohort of K then holds for K such
    selections, see `share`. Its reports come later than its selections: a reported client may be in flight again.
    """

    def __init__(self) -> None:
        self.mask: BoolArray = np.zeros(0, dtype=np.bool_)
        self._unreported: IntArray = np.zeros(0, dtype=np.int64)
        self._owed = 0.0

    @property
    def client(self) -> IntArray:
        """Ids of the clients in flight, ascending."""
        return np.flatnonzero(self.mask)

    def meet(self, view: RoundView) -> None:
        """Remove the candidates: they are not in flight."""
        self.mask, self._unreported = grown(self.mask, view.clients), grown(self._unreported, view.clients)
        self.mask[view.client] = False

    def share(self, size: int) -> float:
        """Return the part that ``size`` clients are of all that will be in flight with them; 1 for a whole cohort."""
        return size / max(size + int(np.count_nonzero(self.mask)), 1)

    def whole(self, places: float, share: float) -> int:
        """Return the whole places; with a share below 1 the rest is carried over to the next selection."""
        places += self._owed if share < 1 else 0.0
        now = int(whole(places))
        self._owed = max(places - now, 0.0)
        return now

    def sent(self, client: IntArray) -> None:
        """Add the selected clients, each of them once."""
        self.mask[client] = True
        self._unreported[client] += 1

    def heard(self, reports: Reports) -> None:
        """Remove the reported clients, one participation for each report; unknown clients are ignored."""
        client = reports.client[reports.client < self.mask.size]
        np.subtract.at(self._unreported, client, 1)
        np.maximum(self._unreported, 0, out=self._unreported)
        self.mask[client[self._unreported[client] == 0]] = False
