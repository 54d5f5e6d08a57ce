"""Pisces: for asynchronous servers, the clients of high utility whose updates will not be stale."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import AtLeast0, Count, Share
from fedsim.selectors.sampling import CohortSelector, draw_distinct, grown, lowest


@dataclass(eq=False, repr=False)
class Pisces(CohortSelector):
    """Select clients of high ``|B| sqrt(mean squared loss) / (staleness + 1)^beta``, and explore some: Pisces.

    The first factor is Oort's statistical utility of the last delivered update. The staleness is the mean of a client's
    last participations: the number of models that the server has made while the client was in flight. It is 0 at a
    synchronous server. Duration plays no other part.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round at a synchronous server; an asynchronous one asks for as many as are missing.
    beta : float >= 0
        Exponent of the discount.
    window : int >= 1
        Number of participations whose staleness is averaged (5 in the published code).
    exploration, exploration_decay, exploration_least : floats in [0, 1]
        Share of the places for clients never tried, its factor per round, and its least value.
    samples_per_round : int >= 1 or None
        Largest number of samples that a client trains on in a round, |B|; None for all.

    Notes
    -----
    From the paper and its published code are utility, discount and window, the draw of the number of explored clients
    (binomial), and the choice of the greatest utilities. The paper's text was not at hand: the default of `beta` and
    those of the exploration, which are Oort's, are fedsim's. A client that was tried and has never delivered has the
    utility 0. Free places go to other candidates at random. The detection of outliers by their losses is left out. The
    paper's pace control is the policy ``"pisces"``.
    """

    paper = (
        "Jiang, Wang, Li and Li, Pisces: Efficient Federated Learning via Guided Asynchronous Training, ACM Symposium "
        "on Cloud Computing 2022"
    )
    needs = ("loss_rms",)
    communication = "a number up per update"

    beta: AtLeast0[float] = 0.5
    window: Count = 5
    exploration: Share = 0.9
    exploration_decay: Share = 0.98
    exploration_least: Share = 0.2
    samples_per_round: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._utility: FloatArray = np.zeros(0)
        self._batch: FloatArray = np.zeros(0)
        self._tried: BoolArray = np.zeros(0, dtype=np.bool_)
        self._sent: dict[int, deque[int]] = {}
        self._staleness: dict[int, deque[int]] = {}

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._make_room(view.clients)
        self._batch[view.client] = np.minimum(view.samples, self.samples_per_round or np.inf)
        size, tried = self.cohort_size(view), self._tried[view.client]
        known, untried = np.flatnonzero(tried), np.flatnonzero(~tried)
        explored = min(int(rng.binomial(size, self._share(view.round))), untried.size)
        exploited = min(size - explored, known.size)
        explored = min(size - exploited, untried.size)
        best = known[lowest(-self.worth(view.client[known]), exploited, rng)]
        new = untried[draw_distinct(np.ones(untried.size), explored, rng)]
        chosen = np.sort(view.client[np.concatenate([best, new])])
        self._tried[chosen] = True
        for client in chosen.tolist():
            self._sent.setdefault(client, deque()).append(view.round)
        return Cohort(chosen)

    def observe(self, reports: Reports) -> None:
        self._make_room(int(reports.client.max(initial=-1)) + 1)
        loss = reports.measured.get("loss_rms", np.ones(reports.client.size))
        utility = self._batch[reports.client] * np.where(np.isfinite(loss), loss, 1.0)
        for client, delivered, value in zip(reports.client.tolist(), reports.delivered, utility, strict=True):
            sent = self._sent.get(client)
            began = sent.popleft() if sent else reports.round
            if delivered:
                self._utility[client] = value
                past = self._staleness.setdefault(client, deque(maxlen=self.window))
                past.append(max(reports.round - began, 0))

    def worth(self, client: IntArray) -> FloatArray:
        """Return the discounted utility of clients; shape of ``client``."""
        mean = [float(np.mean(self._staleness[one])) if one in self._staleness else 0.0 for one in client.tolist()]
        return np.asarray(self._utility[client] / (np.array(mean) + 1.0) ** self.beta)

    def _share(self, round_: int) -> float:
        """Return the share of the places that are explored in a round."""
        return max(self.exploration * self.exploration_decay ** max(round_ - 1, 0), self.exploration_least)

    def _make_room(self, clients: int) -> None:
        self._utility, self._batch = grown(self._utility, clients), grown(self._batch, clients)
        self._tried = grown(self._tried, clients)
