"""SAFA's aggregation: the mean of a cache with one model per client."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import instants
from fedsim.learning import Learner, Model
from fedsim.rounds.aggregation.rules import Aggregated, AggregationRule, Arrivals


class ModelCache(AggregationRule):
    """The server's copies of its clients' local models; see `fedsim.rounds.policies.safa.Safa`."""

    def __init__(self, learner: Learner, quota: int, lag: int) -> None:
        self._learner, self._quota, self._lag = learner, quota, lag
        samples = learner.samples.astype(np.float64)
        self._share = samples / samples.sum() if samples.any() else np.full(samples.size, 1.0 / samples.size)
        self._entries: list[Model] = [learner.initial()] * samples.size
        self._version = np.zeros(samples.size, dtype=np.int64)

    def on_dispatch(self, client: IntArray, model: Model) -> None:
        self._version[client] = model.version

    def on_round_start(self, model: Model) -> None:
        behind = np.flatnonzero(model.version - self._version > self._lag)
        self._version[behind] = model.version
        for client in behind.tolist():
            self._entries[client] = model

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return True for all updates, shape (n,); clients that were too far behind have been cancelled."""
        return np.ones(staleness.size, dtype=bool)

    def aggregate(self, model: Model, arrivals: Arrivals) -> Aggregated:
        """Return the mean of the cache and the shares of the arrivals in it; those beyond the quota are held."""
        fresh = np.flatnonzero(~arrivals.held)
        order = fresh[np.lexsort((instants(arrivals.arrived_s)[fresh], arrivals.picked_before[fresh]))]
        picked, beyond = order[: self._quota], order[self._quota :]
        bypassed = np.flatnonzero(arrivals.held & ~np.isin(arrivals.client, arrivals.client[picked]))
        weight, held = np.full(arrivals.client.size, np.nan), np.zeros(arrivals.client.size, dtype=bool)
        held[beyond] = True
        for i in (*bypassed.tolist(), *picked.tolist()):
            self._entries[int(arrivals.client[i])] = self._learner.trained(arrivals.base[i], arrivals.updates[i])
            weight[i] = self._share[arrivals.client[i]]
        self._version[arrivals.client[fresh]] = model.version + 1
        mean = self._mean(model.version + 1)
        return Aggregated(self._learner.server_step(model, mean), weight, held)

    def _mean(self, version: int) -> Model:
        """Return the mean of all entries; the shares of entries with the same model are added up first."""
        shares: dict[int, float] = {}
        models: dict[int, Model] = {}
        for entry, share in zip(self._entries, self._share.tolist(), strict=True):
            shares[id(entry)] = shares.get(id(entry), 0.0) + share
            models[id(entry)] = entry
        weights: FloatArray = np.array(list(shares.values()))
        return self._learner.merge(list(models.values()), weights / weights.sum(), version=version)
