"""CS-UCB and CS-UCB-Q: client scheduling by confidence bounds, the second with a share for everybody.

Xia, Quek, Guo, Wen, Yang and Zhu, "Multi-Armed Bandit-Based Client Scheduling for Federated Learning", IEEE
Transactions on Wireless Communications 19(11), 2020. The reward of a participation is ``1 - tau / tau_max``.
The rules were read from a public re-implementation, not from the paper's text; its faults are named below.
"""

import math

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import (
    Cohort,
    PublishedSelector,
    Reports,
    RoundView,
    check_number,
    check_whole,
    cohort_size,
)
from fedsim.selectors.pause.bandit import Rewards, greatest


class CsUcb(PublishedSelector):
    """Take the m clients of greatest ``mean reward + sqrt((m + 1) ln t / T_k)`` (for balanced, always present crowds).

    t is the round that begins and T_k how many rewards of client k were observed. Clients never observed come first,
    so that everybody is tried in the first ceil(K / m) rounds: at random, where the re-implementation goes by ids, and
    with places left over in the last of them taken by the best of those tried, where it leaves them empty.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    tau_max_s : float > 0
        The duration that earns nothing (0.1 s and 5 s in the re-implementation); a longer one earns nothing too. A
        client that did not deliver earns as one that took as long as the server has waited.
    """

    paper = (
        "Xia et al., Multi-Armed Bandit-Based Client Scheduling for Federated Learning, "
        "IEEE Transactions on Wireless Communications 2020"
    )

    def __init__(self, cohort: int, tau_max_s: float = 5.0) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_number("tau_max_s", tau_max_s, lowest=0, above=True)
        self.cohort, self.tau_max_s = cohort, tau_max_s
        self._rewards = Rewards()

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the m candidates of greatest index, at random among equals."""
        m = cohort_size(view, self.cohort)
        if m in (0, view.client.size):
            return Cohort(view.client[:m].copy())
        return Cohort(view.client[greatest(self.index(view), m, rng)])

    def observe(self, reports: Reports) -> None:
        """Add the rewards ``1 - duration / tau_max``, at least 0, to the means."""
        self._rewards.add(reports.client, np.maximum(1.0 - reports.duration_s / self.tau_max_s, 0.0))

    def index(self, view: RoundView) -> FloatArray:
        """Return the upper confidence bound of each candidate's reward; infinite for those never observed."""
        return self._bound(view, self.cohort + 1)

    def _bound(self, view: RoundView, factor: int) -> FloatArray:
        seen = self._rewards.count(view.client)
        bound = np.full(view.client.size, np.inf)
        tried = seen > 0
        confidence = np.sqrt(factor * math.log(view.round) / seen[tried])
        bound[tried] = self._rewards.mean(view.client[tried]) + confidence
        return bound


class CsUcbQ(CsUcb):
    """Take the m candidates of greatest ``(1 - weight) * index + weight * queue`` (for crowds that come and go).

    The index is ``min(mean reward + sqrt(2 ln t / T_k), 1)``, 1 for clients never observed. Each client's virtual queue
    says how far it lags behind the share of rounds c_k that it was promised: every round, present or not,
    ``queue = max(queue + c_k - [k was selected in the round before], 0)``.

    The re-implementation has two faults that are not repeated: it sorts all clients where only those present can be
    selected, and it adds the whole list of shares to each queue where a client's own belongs.

    Parameters
    ----------
    cohort, tau_max_s
        As in `CsUcb`.
    weight : float from 0 to 1
        Of fairness against reward; 0.1, 1e-5 and 1e-6 in the re-implementation.
    promise : float from 0 to 1
        c_k as a part of the client's fair share: ``c_k = promise * m * |D_k| / |D|``, at most 1. The fair share is
        m / K in a run without data, and for clients that have not been candidates yet.
    rates : numbers from 0 to 1, one per client id, optional
        The c_k themselves. Their sum should be below m, else some queues grow for ever. At edge servers the clients of
        each are numbered from 0, and each needs as many numbers as it has clients.
    """

    def __init__(
        self,
        cohort: int,
        tau_max_s: float = 5.0,
        weight: float = 0.1,
        promise: float = 0.5,
        rates: list[float] | None = None,
    ) -> None:
        super().__init__(cohort, tau_max_s)
        given = {f"rates[{number}]": rate for number, rate in enumerate(rates or [])}
        for name, value in {"weight": weight, "promise": promise, **given}.items():
            check_number(name, value, lowest=0)
            if value > 1:
                raise ValueError(f"{name}: {value!r} is not allowed; it must be at most 1")
        self.weight, self.promise, self.rates = weight, promise, rates
        self._queue: FloatArray = np.zeros(0)
        self._rates: FloatArray = np.zeros(0)
        self._chosen: IntArray = np.zeros(0, dtype=np.int64)
        self._round = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the m candidates of greatest weighted sum, at random among equals."""
        self._catch_up(view)
        cohort = super().select(view, rng)
        self._chosen = np.union1d(self._chosen, cohort.client)
        return cohort

    def index(self, view: RoundView) -> FloatArray:
        """Return the weighted sum of index and queue of each candidate."""
        capped = np.minimum(self._bound(view, 2), 1.0)
        return (1 - self.weight) * capped + self.weight * self._queue[view.client]

    def _catch_up(self, view: RoundView) -> None:
        """Bring the queues to the round that begins, over rounds without candidates too."""
        self._learn_rates(view)
        rounds = view.round - self._round
        if rounds < 1:
            return
        queue = self._queue + self._rates
        queue[self._chosen] -= 1
        self._queue = np.maximum(queue, 0.0) + (rounds - 1) * self._rates
        self._chosen, self._round = self._chosen[:0], view.round

    def _learn_rates(self, view: RoundView) -> None:
        """Note c_k of the candidates, and of clients that are new to the crowd.

        Raises
        ------
        SelectorError
            If ``rates`` has not one number for each client.
        """
        if self.rates is not None and len(self.rates) != view.clients:
            raise SelectorError(
                f"rates: {len(self.rates)} numbers are not allowed; there must be one for each of the "
                f"{view.clients} clients of this server"
            )
        missing = view.clients - self._queue.size
        if missing > 0:
            fair = min(self.promise * self.cohort / view.clients, 1.0)
            fresh = (
                np.full(missing, fair) if self.rates is None else np.array(self.rates[self._queue.size : view.clients])
            )
            self._queue = np.pad(self._queue, (0, missing))
            self._rates = np.concatenate([self._rates, fresh])
        if self.rates is None and view.total_samples > 0:
            self._rates[view.client] = np.minimum(self.promise * self.cohort * view.samples / view.total_samples, 1.0)
