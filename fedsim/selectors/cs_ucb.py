"""CS-UCB and CS-UCB-Q: client scheduling by confidence bounds, the second with guaranteed shares of rounds.

Xia, Quek, Guo, Wen, Yang and Zhu, "Multi-Armed Bandit-Based Client Scheduling for Federated Learning", IEEE
Transactions on Wireless Communications 19(11), 2020. The reward of a participation is ``1 - tau / tau_max``.
The rules were read from a public re-implementation, not from the paper's text; its faults are named below.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import Above0, Share
from fedsim.selectors.pause.bandit import Rewards, greatest
from fedsim.selectors.sampling import CohortSelector
from fedsim.units import Seconds


@dataclass(eq=False, repr=False)
class CsUcb(CohortSelector):
    """Take the m clients of greatest ``mean reward + sqrt((m + 1) ln t / T_k)`` (for always available crowds).

    t is the round that begins and T_k the number of rewards observed of client k. Clients never observed come first,
    so that all clients are tried in the first ceil(K / m) rounds: in random order (the re-implementation takes the
    order of ids), with free places of the last of these rounds for the best clients tried (there they stay empty).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    tau_max_s : float > 0
        Least duration of reward 0 (0.1 s and 5 s in the re-implementation). The duration of a client that did not
        deliver is the time that the server waited.

    Notes
    -----
    In a crowd of which half never delivers, a third of the rounds may be empty at first: the duration of all those
    clients is the server's wait, so that their indices are equal and they are selected together. They are selected
    more rarely as ln t grows, like all clients of a low reward.
    """

    paper = (
        "Xia et al., Multi-Armed Bandit-Based Client Scheduling for Federated Learning, "
        "IEEE Transactions on Wireless Communications 2020"
    )
    may_stall = "clients that never deliver have one index and are selected together, ever more rarely"

    tau_max_s: Above0[Seconds] = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rewards = Rewards()

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        m = self.cohort_size(view)
        if m in (0, view.client.size):
            return Cohort(view.client[:m].copy())
        return Cohort(view.client[greatest(self.index(view), m, rng)])

    def observe(self, reports: Reports) -> None:
        self._rewards.add(reports.client, np.maximum(1.0 - reports.duration_s / self.tau_max_s, 0.0))

    def index(self, view: RoundView) -> FloatArray:
        """Return the upper confidence bound of each candidate's reward, shape (n,); infinite without observations."""
        return self._bound(view, self.cohort + 1)

    def _bound(self, view: RoundView, factor: int) -> FloatArray:
        return self._rewards.ucb(view, None, factor * math.log(view.round))


@dataclass(eq=False, repr=False)
class CsUcbQ(CsUcb):
    """Take the m candidates of greatest ``(1 - weight) * index + weight * queue`` (for crowds of varying availability).

    The index is ``min(mean reward + sqrt(2 ln t / T_k), 1)``, 1 for clients never observed. Each client's virtual queue
    is its deficit against a guaranteed share of rounds c_k: every round, for candidates and other clients,
    ``queue = max(queue + c_k - [k was selected in the round before], 0)``.

    Two faults of the re-implementation are corrected: it sorts all clients, although only candidates can be selected,
    and it adds the whole list of shares to each queue instead of the client's own.

    Parameters
    ----------
    cohort, tau_max_s
        As in `CsUcb`.
    weight : float from 0 to 1
        Weight of the queue (fairness) against the index (reward); 0.1, 1e-5 and 1e-6 in the re-implementation.
    promise : float from 0 to 1
        c_k as a part of the client's fair share: ``c_k = promise * m * |D_k| / |D|``, at most 1. The fair share is
        m / K in a run without data, and for clients that have not been candidates yet.
    rates : numbers from 0 to 1, one per client id, optional
        The c_k themselves. Some queues grow without limit if their sum is not below m. Each edge server numbers its
        clients from 0 and needs one number for each of them.
    """

    numbers_of_clients = ("rates",)
    may_stall = ""

    weight: Share = 0.1
    promise: Share = 0.5
    rates: list[Share] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._queue: FloatArray = np.zeros(0)
        self._rates: FloatArray = np.zeros(0)
        self._chosen: IntArray = np.zeros(0, dtype=np.int64)
        self._round = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._catch_up(view)
        cohort = super().select(view, rng)
        self._chosen = np.union1d(self._chosen, cohort.client)
        return cohort

    def index(self, view: RoundView) -> FloatArray:
        """Return the weighted sum of index and queue of each candidate, shape (n,)."""
        capped = np.minimum(self._bound(view, 2), 1.0)
        return (1 - self.weight) * capped + self.weight * self._queue[view.client]

    def _catch_up(self, view: RoundView) -> None:
        """Advance the queues to the round that begins, including rounds without candidates."""
        self._learn_rates(view)
        rounds = view.round - self._round
        if rounds < 1:
            return
        queue = self._queue + self._rates
        queue[self._chosen] -= 1
        self._queue = np.maximum(queue, 0.0) + (rounds - 1) * self._rates
        self._chosen, self._round = self._chosen[:0], view.round

    def _learn_rates(self, view: RoundView) -> None:
        """Set c_k of the candidates, and of clients that are new to the crowd."""
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
