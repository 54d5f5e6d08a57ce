"""What both forms of Oort remember of their clients, whom they leave out, and how they fill a cohort up."""

from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Reports, RoundView

Silent = Literal["zero", "mean"]

_TIMES: Final = 3
"""Columns of the features that are expected seconds: of downlink, work and uplink."""
_SHORTEST_S: Final = 1e-6
"""What a declared time of nothing counts as: no client is infinitely fast."""


class OortState:
    """Utility, last round and duration of every client tried, and the time that each declares (NaN if it does not).

    Ids are positions.

    Parameters
    ----------
    silent : ``"zero"`` or ``"mean"``
        Utility of clients that were tried and never delivered: none, or the mean of the delivered ones of their round.
    samples_per_round : int or None
        Most samples that a client looks at in a round.
    """

    def __init__(self, silent: Silent, samples_per_round: int | None) -> None:
        self.silent, self.samples_per_round = silent, samples_per_round
        self.batch = self.utility = self.duration_s = np.zeros(0)
        self.declared_s = np.zeros(0)
        self.last_round = np.zeros(0, dtype=np.int64)
        self._delivered = np.zeros(0, dtype=np.bool_)

    @property
    def tried(self) -> BoolArray:
        """Who has been reported on."""
        return self.last_round > 0

    def meet(self, view: RoundView) -> None:
        """Make room for the crowd, and remember what candidates declare: samples they look at, |B|, and times."""
        missing = view.clients - self.batch.size
        if missing > 0:
            for name in ("batch", "utility", "duration_s", "last_round", "_delivered"):
                setattr(self, name, np.pad(getattr(self, name), (0, missing)))
            self.declared_s = np.pad(self.declared_s, (0, missing), constant_values=np.nan)
        if view.features.shape[1] >= _TIMES:
            self.declared_s[view.client] = np.maximum(view.features[:, :_TIMES].sum(axis=1), _SHORTEST_S)
        self.batch[view.client] = np.minimum(view.samples, self.samples_per_round or np.inf)

    def learn(self, reports: Reports) -> FloatArray:
        """Take in a round and return the statistical utilities of those that delivered."""
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


def blacklist(view: RoundView, after: int | None, share: float) -> BoolArray:
    """Return which candidates were selected more than ``after`` times; of all of them at most a share of the crowd."""
    if after is None:
        return np.zeros(view.client.size, dtype=np.bool_)
    listed = view.participations > after
    places = np.flatnonzero(listed)
    order = np.argsort(-view.participations[places], kind="stable")
    listed[places[order[int(share * view.clients) :]]] = False
    return listed


def fill_up(taken: IntArray, size: int, candidates: int, rng: np.random.Generator) -> IntArray:
    """Return the positions taken, ascending, with others at random until there are ``size``."""
    if taken.size < size:
        free = np.ones(candidates, dtype=np.bool_)
        free[taken] = False
        taken = np.concatenate([taken, rng.permutation(np.flatnonzero(free))[: size - taken.size]])
    return np.sort(taken)
