"""What REFL's server keeps in mind: how long rounds last, who took part lately, and whose updates are still due."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView
from fedsim.selectors.in_flight import InFlight


class Pace:
    """Round durations and stragglers; arrays are by client id.

    Parameters
    ----------
    hold_off : int >= 0
        Rounds after its selection for which a client is not selected again, and for which one that is away may be
        at work still.
    initial_s : float > 0
        mu before the first round.
    alpha : float in [0, 1]
        Weight of the past in mu.

    Attributes
    ----------
    mu_s : moving average of round durations, ``mu <- (1 - alpha) duration + alpha mu``
    """

    def __init__(self, hold_off: int, initial_s: float, alpha: float) -> None:
        self.hold_off, self.mu_s, self.alpha = hold_off, initial_s, alpha
        self._round, self._start_s = 0, 0.0
        self._in_flight = InFlight()
        self._selected: IntArray = np.zeros(0, dtype=np.int64)
        self._since_s: FloatArray = np.zeros(0)
        self._takes_s: FloatArray = np.zeros(0)

    def meet(self, view: RoundView) -> None:
        """Take in who is there: a candidate is not at work."""
        missing = view.clients - self._selected.size
        if missing > 0:
            self._selected = np.pad(self._selected, (0, missing), constant_values=-self.hold_off - 1)
            self._since_s = np.pad(self._since_s, (0, missing), constant_values=np.nan)
            self._takes_s = np.pad(self._takes_s, (0, missing), constant_values=np.nan)
        self._in_flight.meet(view)
        self._since_s[view.client] = np.nan
        if view.round != self._round:
            self._round, self._start_s = view.round, view.time_s

    @property
    def not_heard_of(self) -> IntArray:
        """The clients that an asynchronous server has sent and knows nothing of since."""
        return self._in_flight.client

    def missed(self, view: RoundView) -> IntArray:
        """Return the clients that did not deliver and may be at work still: selected lately and not back."""
        away = ~np.isnan(self._since_s) & ~self._in_flight.mask
        return np.flatnonzero(away & (view.round - self._selected <= self.hold_off))

    def held_off(self, view: RoundView) -> BoolArray:
        """Return which candidates were selected in the last rounds."""
        return np.asarray(view.round - self._selected[view.client] <= self.hold_off)

    def due(self, view: RoundView) -> int:
        """Return how many updates are expected within mu from now.

        A client takes as long as its last delivered participation, or as the mean of all clients before its first; one
        that is over this time already may deliver at any moment.
        """
        client = np.concatenate([self.not_heard_of, self.missed(view)])
        known = self._takes_s[~np.isnan(self._takes_s)]
        if not client.size or not known.size:
            return 0
        takes_s = np.where(np.isnan(self._takes_s[client]), known.mean(), self._takes_s[client])
        return int(np.count_nonzero(self._since_s[client] + takes_s <= view.time_s + self.mu_s))

    def sent(self, client: IntArray, view: RoundView) -> None:
        """Take down who has been selected."""
        self._in_flight.sent(client)
        self._selected[client] = view.round
        self._since_s[client] = view.time_s

    def learn(self, reports: Reports) -> None:
        """Take in how long the round was, and who has delivered."""
        self.mu_s = (1 - self.alpha) * (reports.time_s - self._start_s) + self.alpha * self.mu_s
        self._in_flight.heard(reports)
        done = reports.client[reports.delivered]
        self._takes_s[done] = reports.duration_s[reports.delivered]
        self._since_s[done[~self._in_flight.mask[done]]] = np.nan


def target(size: int, due: int, adaptive: bool, least_share: float) -> int:
    """Return how many to select: N - B of the adaptive participant target, at least 1 and a share of N; or N."""
    if not adaptive or not size:
        return size
    return max(size - due, round(least_share * size), 1)
