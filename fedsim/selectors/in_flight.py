"""Who is at work when a server asks for more: nobody at a synchronous one, most of a cohort at an asynchronous one."""

from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView

_ROUNDING: Final = 1e-9
"""Ten times a tenth of a place is a place."""


class InFlight:
    """Clients that were selected and have neither been reported on nor been candidates since.

    A synchronous server reports its cohort when the round is over, so that nobody is at work when it asks again. An
    asynchronous one asks for one client when another is done; what a method says of a cohort of K then holds for K such
    questions, see `share`. It reports later than it selects: a client may be at work again when it is reported on.

    Attributes
    ----------
    busy : array over all clients met, whether each is at work
    """

    def __init__(self) -> None:
        self.busy: BoolArray = np.zeros(0, dtype=np.bool_)
        self._unreported: IntArray = np.zeros(0, dtype=np.int64)
        self._owed = 0.0

    @property
    def client(self) -> IntArray:
        """Ids of those at work, ascending."""
        return np.flatnonzero(self.busy)

    def meet(self, view: RoundView) -> None:
        """Take in who is there and free: a candidate is not at work."""
        missing = view.clients - self.busy.size
        if missing > 0:
            self.busy, self._unreported = np.pad(self.busy, (0, missing)), np.pad(self._unreported, (0, missing))
        self.busy[view.client] = False

    def share(self, size: int) -> float:
        """Return which part so many clients are of all that will be at work with them; 1 for a whole cohort."""
        return size / max(size + int(np.count_nonzero(self.busy)), 1)

    def whole(self, places: float, share: float) -> int:
        """Return how many of so many places are whole; of a part of a cohort the rest is owed to the next question."""
        places += self._owed if share < 1 else 0.0
        whole = int(places + _ROUNDING)
        self._owed = max(places - whole, 0.0)
        return whole

    def sent(self, client: IntArray) -> None:
        """Take down who has been selected, each once."""
        self.busy[client] = True
        self._unreported[client] += 1

    def heard(self, reports: Reports) -> None:
        """Take in who was reported on, each as often as that; those met alone."""
        client = reports.client[reports.client < self.busy.size]
        np.subtract.at(self._unreported, client, 1)
        np.maximum(self._unreported, 0, out=self._unreported)
        self.busy[client[self._unreported[client] == 0]] = False
