"""SAFA: all clients train, the first updates to arrive are picked, and the others are cached.

Wu, He, Lin, Mao and Jarvis, "SAFA: a Semi-Asynchronous Protocol for Fast Federated Learning with Low Overhead", IEEE
Transactions on Computers 70(5), 2021. Use it with the selector ``all``: in SAFA selection comes after training.
"""

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.clock import instants, rest_of_instant
from fedsim.learning import Learner, Model
from fedsim.rounds.aggregation.rules import Aggregated, AggregationRule, Arrivals
from fedsim.rounds.policies.contracts import RoundPolicy, Running
from fedsim.rounds.policies.round import PastRounds, Round, at_least
from fedsim.rounds.policies.server_port import ServerPort, ServerTraits
from fedsim.units import Positive, Seconds


class Safa(RoundPolicy):
    """Compensatory first-come-first-merge (section 3.3, Algorithm 2) and the cache (section 3.4, equations 6 to 8).

    A round ends when a quota of ``share`` of the crowd has arrived among clients that were not picked in the round
    before, or no client is in flight any more, at the latest after ``max_wait_s``. Then clients that were picked in the
    round before fill the quota, fastest first. The picked enter the server's cache of local models, and the new model
    is the cache's mean weighted by samples. Updates that arrived beyond the quota enter the cache for the round after
    (the bypass). Clients stay in flight, unless their model is more than ``lag`` versions old: these are cancelled, and
    the entries of all clients that are so far behind become the global model (the deprecated, section 3.2). Every
    entry of the cache begins as the initial model.

    The authors' code knows all arrival times in advance and ends the round with the last one that it picks. A server
    does not know whether more will come, so here a quota that must be filled with last round's clients is filled
    at the time limit. A client that crashes starts from the newest model when it is available again; in the paper it
    continues from its own. An update counts as unmerged if a newer one of the same client was picked before it was
    aggregated.

    REFL's code compares itself with a reduced form, which a scenario puts together from other parts: every idle client
    trains (selector ``all``), the round ends when a tenth has delivered (policy ``quorum`` with share 0.1 and a longest
    wait of 100 s), and late updates are aggregated up to a staleness of 5 (``late = "stale"``). It has no cache, no
    bypass and no preference for clients that were not picked last time.

    Attributes
    ----------
    share : float in (0, 1], the paper's C
    max_wait_s : the paper's limit on the round
    lag : int >= 0, the paper's tolerance tau, 5 in its experiments
    """

    _reads: ClassVar[int | None] = 0

    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    max_wait_s: Positive[Seconds]
    lag: Annotated[int, Field(ge=0)] = 5

    @property
    def traits(self) -> ServerTraits:
        """Rounds overlap; the cache holds the models of the whole crowd, so edge servers are excluded."""
        return replace(super().traits, overlaps_rounds=True, most_lag=self.lag, provides=frozenset())

    def time_limit_s(self, past: PastRounds) -> float:
        return self.max_wait_s

    def aggregation(self, learner: Learner) -> AggregationRule:
        return ModelCache(learner, self.quota(learner.samples.size), self.lag)

    def quota(self, clients: int) -> int:
        return at_least(self.share, clients)

    def wait(self, server: ServerPort, round_: Round) -> Running:
        """Wait for the quota of clients that were not picked last time, for all clients, or for the time limit."""
        limit = round_.limit(round_.time_limit_s)
        while not limit.processed and server.in_flight:
            new = ~np.isin(server.buffered_clients(), round_.past.picked)
            if np.count_nonzero(new) >= self.quota(round_.clients):
                break
            yield limit | server.next_arrival()
        yield from rest_of_instant(server.env)
        return round_.ended_by()


class ModelCache(AggregationRule):
    """The server's copies of its clients' local models; see `Safa`."""

    def __init__(self, learner: Learner, quota: int, lag: int) -> None:
        self._learner, self._quota, self._lag = learner, quota, lag
        samples = learner.samples.astype(np.float64)
        self._share = samples / samples.sum() if samples.any() else np.full(samples.size, 1.0 / samples.size)
        self._entries: list[Model] = [learner.initial()] * samples.size
        self._version = np.zeros(samples.size, dtype=np.int64)

    def on_dispatch(self, client: IntArray, model: Model) -> None:
        self._version[client] = model.version

    def on_round_start(self, model: Model) -> None:
        """Replace the entries of clients that are too far behind by the global model."""
        behind = np.flatnonzero(model.version - self._version > self._lag)
        self._version[behind] = model.version
        for client in behind.tolist():
            self._entries[client] = model

    def accepts(self, staleness: IntArray, late: BoolArray) -> BoolArray:
        """Return True for all updates; clients that were too far behind have been cancelled."""
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
