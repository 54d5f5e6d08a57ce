"""Norms of clients' last updates as a method's knowledge of which update matters."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView
from fedsim.selectors.sampling import grown


class LastNorms:
    """The norm of each client's last delivered update.

    A client that was never selected is worth more than any other, so that each is tried once. One without a delivered
    update is worth the mean of the known norms. Each participation without a delivery since the last one halves the
    worth, so that clients that never deliver are asked ever more seldom, and yet are not forgotten.
    """

    def __init__(self) -> None:
        self._norm: FloatArray = np.zeros(0)
        self._silent: IntArray = np.zeros(0, dtype=np.int64)

    def learn(self, reports: Reports, norm: FloatArray) -> None:
        clients = int(reports.client.max(initial=-1)) + 1
        self._norm, self._silent = grown(self._norm, clients, np.nan), grown(self._silent, clients)
        known = reports.delivered & np.isfinite(norm)
        self._norm[reports.client[known]] = norm[known]
        np.add.at(self._silent, reports.client[~reports.delivered], 1)
        self._silent[reports.client[reports.delivered]] = 0

    def worth(self, view: RoundView) -> FloatArray:
        """Return the worth of each candidate, at least 0, shape (n,); `inf` for clients that were never selected."""
        self._norm, self._silent = grown(self._norm, view.clients, np.nan), grown(self._silent, view.clients)
        norm = self._norm[view.client]
        known: BoolArray = ~np.isnan(norm)
        everyone = self._norm[~np.isnan(self._norm)]
        mean = float(everyone.mean()) if everyone.size else 1.0
        worth = np.where(known, norm, mean) * 0.5 ** self._silent[view.client]
        return np.asarray(np.where((view.participations == 0) & ~known, np.inf, worth))
