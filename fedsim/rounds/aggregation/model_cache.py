"""fedsim.rounds.aggregation.model_cache."""

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, IntArray
from fedsim.clock import instants
from fedsim.learning import Learner, Model
from fedsim.rounds.aggregation.rules import Aggregated, Arrivals


class ModelCache:
    """The server's copies of its clients' local models; `Safa` says how they are used.

    Parameters
    ----------
    learner : Learner
    quota : how many arrivals are picked in a round
    lag : by how many versions a client may be behind
    """

    def __init__(self, learner: Learner, quota: int, lag: int) -> None:
        self._learner, self._quota, self._lag = learner, quota, lag
        samples = learner.samples.astype(np.float64)
        self._share = samples / samples.sum() if samples.any() else np.full(samples.size, 1.0 / samples.size)
        self._entries: list[Model] = [learner.initial()] * samples.size
        self._version = np.zeros(samples.size, dtype=np.int64)

    def sent(self, client: IntArray, model: Model) -> None:
        """Take down that clients start from the newest model."""
        self._version[client] = model.version

    def deprecate(self, model: Model) -> None:
        """Put the global model in the places of clients that are too far behind."""
        behind = np.flatnonzero(model.version - self._version > self._lag)
        self._version[behind] = model.version
        for client in behind.tolist():
            self._entries[client] = model

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return that all are welcome; who is too far behind has been cut off."""
        return np.ones(staleness.size, dtype=bool)

    def merge(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return the mean of the cache and the shares of the arrivals in it; those in vain are kept back."""
        fresh = np.flatnonzero(~arrivals.held)
        order = fresh[np.lexsort((instants(arrivals.arrived_s)[fresh], arrivals.picked_before[fresh]))]
        picked, in_vain = order[: self._quota], order[self._quota :]
        bypassed = np.flatnonzero(arrivals.held & ~np.isin(arrivals.client, arrivals.client[picked]))
        weight, held = np.full(arrivals.client.size, np.nan), np.zeros(arrivals.client.size, dtype=bool)
        held[in_vain] = True
        for i in (*bypassed.tolist(), *picked.tolist()):
            self._entries[int(arrivals.client[i])] = self._learner.trained(arrivals.base[i], arrivals.updates[i])
            weight[i] = self._share[arrivals.client[i]]
        self._version[arrivals.client[fresh]] = model.version + 1
        mean = self._mean(model.version + 1)
        return Aggregated(self._learner.server_step(model, mean), weight, held)

    def _mean(self, version: int) -> Model:
        """Return the mean of all entries; places with one and the same model are added up first."""
        shares: dict[int, float] = {}
        models: dict[int, Model] = {}
        for entry, share in zip(self._entries, self._share.tolist(), strict=True):
            shares[id(entry)] = shares.get(id(entry), 0.0) + share
            models[id(entry)] = entry
        weights: NDArray[np.float64] = np.array(list(shares.values()))
        return self._learner.merge(list(models.values()), weights / weights.sum(), version=version)
