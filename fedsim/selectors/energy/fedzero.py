"""FedZero: the shortest round that excess energy alone can pay, with the clients of the greatest utility in it."""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import BoolArray, FloatArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import Above0, AtLeast0, Share
from fedsim.selectors.sampling import TIME_COLUMNS, CohortSelector, grown, lowest
from fedsim.units import Seconds


@dataclass(eq=False, repr=False)
class FedZero(CohortSelector):
    """Select clients that excess energy alone can pay, for the shortest round and then for utility: FedZero's rule.

    Within d seconds client k has the excess energy ``max(charge - reserve * capacity, 0) + charging_w d``. It can take
    part in a round of d seconds if its participation takes no longer and costs no more than that. The round is the
    shortest one in which m clients can take part, in whole steps; of all clients that can, those of the greatest
    statistical utility are selected, ``|B| sqrt(mean squared loss)`` of the last delivered update. Who has taken part
    is blocked. In each round a blocked client with p participations is released with the probability ``(p -
    mean)^-alpha``, or 1 where ``p - mean`` is at most 1.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m).
    step_s : float > 0
        Length of a step (5 minutes in the published code).
    longest_s : float > 0
        Longest round; clients that need more are not selected (60 minutes in the published code).
    reserve : float in [0, 1]
        Share of the battery that is not for federated learning: 1 for the paper's rule, in which the energy of the
        present harvest is used or lost.
    alpha : float >= 0
        Exponent of the release; 0 for no blocking (1 in the paper).

    Notes
    -----
    The shortest round, the utility and the blocking are the paper's as its published descriptions and code have them;
    its text was not at hand. Differences: in the paper clients share the excess energy of a power domain, harvest and
    spare capacity are forecasts that vary with time, and a client may do part of its work, so that a mixed-integer
    program divides both among the clients. In fedsim each battery has a charger of its own and of constant power,
    devices have no other load, and clients do all their work, for which the greatest utilities are the solution. A
    battery of fedsim charges only between participations. The paper's server waits without a solution. Here fewer than
    m clients take part, or, without any that can, the one with the fullest battery. Blocked clients are released if all
    are blocked. Without batteries energy does not matter. A client without a utility counts as the one of the greatest.
    """

    paper = (
        "Wiesner, Khalili, Grinwald, Agrawal, Thamsen and Kao, FedZero: Leveraging Renewable Excess Energy in "
        "Federated Learning, ACM e-Energy 2024"
    )
    needs = ("loss_rms",)
    communication = "a number up per update, three numbers up per client once, and three of its battery per candidate"
    uses_features = True

    step_s: Above0[Seconds] = 300.0
    longest_s: Above0[Seconds] = 3600.0
    reserve: Share = 1.0
    alpha: AtLeast0[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._utility: FloatArray = np.zeros(0)
        self._batch: FloatArray = np.zeros(0)
        self._blocked: BoolArray = np.zeros(0, dtype=np.bool_)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        self._make_room(view.clients)
        if not size:
            return Cohort(view.client[:0])
        self._batch[view.client] = view.samples
        self._release(view, rng)
        needed_s = self.needed_s(view)
        able = (needed_s <= self.longest_s) & ~self._blocked[view.client]
        if not able.any():
            able = needed_s <= self.longest_s
        places = np.flatnonzero(able)
        if not places.size:
            return Cohort(view.client[lowest(-_fullness(view), 1, rng)])
        last_s = np.partition(needed_s[places], min(size, places.size) - 1)[min(size, places.size) - 1]
        round_s = min(np.ceil(last_s / self.step_s) * self.step_s, self.longest_s)
        within = places[needed_s[places] <= round_s]
        worth = self.worth(view)[within]
        chosen = np.sort(view.client[within[lowest(-worth, min(size, within.size), rng)]])
        self._blocked[chosen] = self.alpha > 0
        return Cohort(chosen)

    def observe(self, reports: Reports) -> None:
        """Remember the utilities of delivered updates; a client that has failed has the utility 0 until it delivers."""
        self._make_room(int(reports.client.max(initial=-1)) + 1)
        loss = reports.measured.get("loss_rms", np.ones(reports.client.size))
        utility = self._batch[reports.client] * np.where(np.isfinite(loss), loss, 1.0)
        self._utility[reports.client] = np.where(reports.delivered, utility, 0.0)

    def needed_s(self, view: RoundView) -> FloatArray:
        """Return the length of the shortest round for each candidate, shape (n,); `inf` for never."""
        expected_s = np.zeros(view.client.size)
        if view.features.shape[1] >= TIME_COLUMNS:
            expected_s = view.features[:, :TIME_COLUMNS].sum(axis=1)
        if view.charge_j is None or view.capacity_j is None or view.charging_w is None or view.participation_j is None:
            return expected_s
        missing_j = view.participation_j - np.maximum(view.charge_j - self.reserve * view.capacity_j, 0.0)
        harvest_s = np.where(missing_j > 0, np.inf, 0.0)
        np.divide(missing_j, view.charging_w, out=harvest_s, where=(missing_j > 0) & (view.charging_w > 0))
        return np.maximum(expected_s, harvest_s)

    def worth(self, view: RoundView) -> FloatArray:
        utility = self._utility[view.client]
        known = ~np.isnan(utility)
        return np.where(known, utility, utility[known].max() if known.any() else 1.0)

    def _release(self, view: RoundView, rng: np.random.Generator) -> None:
        """Release blocked candidates by chance."""
        ahead = view.participations - view.participations.mean()
        chance = np.maximum(ahead, 1.0) ** -self.alpha
        self._blocked[view.client[rng.random(view.client.size) < chance]] = False

    def _make_room(self, clients: int) -> None:
        self._utility, self._batch = grown(self._utility, clients, np.nan), grown(self._batch, clients)
        self._blocked = grown(self._blocked, clients)


def _fullness(view: RoundView) -> FloatArray:
    """Return charge over capacity of each candidate, shape (n,); 1 without batteries."""
    if view.charge_j is None or view.capacity_j is None:
        return np.ones(view.client.size)
    return np.asarray(view.charge_j / view.capacity_j)
