"""State of REFL's server: durations of rounds, recent participants, and updates that are still expected."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.sampling import grown


class ReflState:
    """Moving average of round durations, and the last participation of each client; arrays are over client ids."""

    def __init__(self, hold_off: int, initial_s: float, alpha: float) -> None:
        self.hold_off, self.mu_s, self.alpha = hold_off, initial_s, alpha
        self._round, self._start_s = 0, 0.0
        self._in_flight = InFlight()
        self._selected: IntArray = np.zeros(0, dtype=np.int64)
        self._since_s: FloatArray = np.zeros(0)
        self._takes_s: FloatArray = np.zeros(0)

    def meet(self, view: RoundView) -> None:
        """Start a selection: candidates are not in flight."""
        self._selected = grown(self._selected, view.clients, -self.hold_off - 1)
        self._since_s = grown(self._since_s, view.clients, np.nan)
        self._takes_s = grown(self._takes_s, view.clients, np.nan)
        self._in_flight.meet(view)
        self._since_s[view.client] = np.nan
        if view.round != self._round:
            self._round, self._start_s = view.round, view.time_s

    @property
    def unreported(self) -> IntArray:
        """Ids of selected clients without a report since, at an asynchronous server."""
        return self._in_flight.client

    def missed(self, view: RoundView) -> IntArray:
        """Return ids of clients that did not deliver and may be in flight: selected recently, and no candidates."""
        away = ~np.isnan(self._since_s) & ~self._in_flight.mask
        return np.flatnonzero(away & (view.round - self._selected <= self.hold_off))

    def held_off(self, view: RoundView) -> BoolArray:
        """Return the mask of candidates that were selected in the last ``hold_off`` rounds, shape (n,)."""
        return np.asarray(view.round - self._selected[view.client] <= self.hold_off)

    def due(self, view: RoundView) -> int:
        """Return the number of updates that are expected within mu from now.

        The expected duration of a client is that of its last delivered participation, before the first the mean of all
        clients. A client that has exceeded it already counts as due.
        """
        client = np.concatenate([self.unreported, self.missed(view)])
        known = self._takes_s[~np.isnan(self._takes_s)]
        if not client.size or not known.size:
            return 0
        takes_s = np.where(np.isnan(self._takes_s[client]), known.mean(), self._takes_s[client])
        return int(np.count_nonzero(self._since_s[client] + takes_s <= view.time_s + self.mu_s))

    def sent(self, client: IntArray, view: RoundView) -> None:
        """Store the selected clients of a round."""
        self._in_flight.sent(client)
        self._selected[client] = view.round
        self._since_s[client] = view.time_s

    def learn(self, reports: Reports) -> None:
        """Store the duration of a round and of its delivered participations."""
        self.mu_s = (1 - self.alpha) * (reports.time_s - self._start_s) + self.alpha * self.mu_s
        self._in_flight.heard(reports)
        done = reports.client[reports.delivered]
        self._takes_s[done] = reports.duration_s[reports.delivered]
        self._since_s[done[~self._in_flight.mask[done]]] = np.nan


def target(size: int, due: int, adaptive: bool, least_share: float) -> int:
    """Return the adaptive participant target ``N - B``, at least 1 and ``least_share`` of N; N if not adaptive."""
    if not adaptive or not size:
        return size
    return max(size - due, round(least_share * size), 1)
