"""State of clients, blacklist and free places, common to both forms of Oort."""

from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView
from fedsim.selectors.sampling import TIME_COLUMNS, grown, lowest, whole

Silent = Literal["zero", "mean"]

_SHORTEST_S: Final = 1e-6
"""Least declared time, so that no client is infinitely fast."""


class OortState:
    """Utility, last round, duration and declared time of every client; arrays over client ids."""

    def __init__(self, silent: Silent, samples_per_round: int | None) -> None:
        self.silent, self.samples_per_round = silent, samples_per_round
        self.batch: FloatArray = np.zeros(0)
        self.utility: FloatArray = np.zeros(0)
        self.duration_s: FloatArray = np.zeros(0)
        self.declared_s: FloatArray = np.zeros(0)
        self.last_round: IntArray = np.zeros(0, dtype=np.int64)
        self._delivered: BoolArray = np.zeros(0, dtype=np.bool_)

    @property
    def tried(self) -> BoolArray:
        return self.last_round > 0

    def meet(self, view: RoundView) -> None:
        """Store the samples of a round, |B|, and the times that candidates declare."""
        clients = view.clients
        self.batch, self.utility = grown(self.batch, clients), grown(self.utility, clients)
        self.duration_s, self.declared_s = grown(self.duration_s, clients), grown(self.declared_s, clients, np.nan)
        self.last_round, self._delivered = grown(self.last_round, clients), grown(self._delivered, clients)
        if view.features.shape[1] >= TIME_COLUMNS:
            self.declared_s[view.client] = np.maximum(view.features[:, :TIME_COLUMNS].sum(axis=1), _SHORTEST_S)
        self.batch[view.client] = np.minimum(view.samples, self.samples_per_round or np.inf)

    def learn(self, reports: Reports) -> FloatArray:
        """Store the outcomes of a round, and return the statistical utilities of its k deliveries, shape (k,)."""
        client, delivered = reports.client, reports.delivered
        loss = reports.measured.get("loss_rms", np.ones(client.size))
        utility = self.batch[client] * np.where(np.isfinite(loss), loss, 1.0)
        gained = np.asarray(utility[delivered])
        unknown = client[~delivered & ~self._delivered[client]]
        self.utility[unknown] = gained.mean() if self.silent == "mean" and gained.size else 0.0
        self.utility[client[delivered]] = gained
        self._delivered[client[delivered]] = True
        self.duration_s[client] = reports.duration_s
        self.last_round[client] = max(reports.round, 1)
        return gained


def blacklist(view: RoundView, after: int | None, share: float, rng: np.random.Generator) -> BoolArray:
    """Return the mask of candidates that were selected more than ``after`` times, the most often ones of too many."""
    listed = view.participations > (np.inf if after is None else after)
    places, most = np.flatnonzero(listed), int(whole(share * view.clients))
    if places.size > most:
        listed[:] = False
        listed[places[lowest(-view.participations[places].astype(float), most, rng)]] = True
    return listed


def fill_up(taken: IntArray, size: int, candidates: int, rng: np.random.Generator) -> IntArray:
    """Return ``size`` positions, ascending: those taken, and others at random."""
    if taken.size < size:
        free = np.ones(candidates, dtype=np.bool_)
        free[taken] = False
        taken = np.concatenate([taken, rng.permutation(np.flatnonzero(free))[: size - taken.size]])
    return np.sort(taken)
