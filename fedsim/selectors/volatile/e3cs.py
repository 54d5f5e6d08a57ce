"""E3CS: an adversarial bandit over clients that may fail, with a least probability of selection for each.

The rules come from published descriptions; the paper's text was not at hand.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import Above0, Count, Share
from fedsim.selectors.sampling import CohortSelector, draw_distinct, grown


class Allocated(NamedTuple):
    """Probabilities of selection (n,), and which of them were cut to 1 (n,)."""

    chance: FloatArray
    overflown: BoolArray


def prob_alloc(size: int, quota: float, log_weight: FloatArray) -> Allocated:
    """Return ``quota + (size - n quota) w'_i / sum of w'``, where ``w' = min(w, c)`` and no probability is above 1.

    c is such that the cut clients have the probability 1 exactly. With j of them, those of the greatest weights, the
    others have ``quota + (size - n quota - j (1 - quota)) w_i / R``, where R is the sum of their weights; j is the
    smallest number with which none of these is above 1.
    """
    n = log_weight.size
    room = size - n * quota
    if room <= 1e-12 * size:
        return Allocated(np.full(n, size / n), np.zeros(n, dtype=np.bool_))
    weight = np.exp(log_weight - log_weight.max())
    order = np.argsort(-weight, kind="stable")
    falling = weight[order]
    rest = np.append(np.cumsum(falling[::-1])[::-1], 0.0)
    cut, places = (n, 0.0) if size == n else (0, room)
    # The greatest of the others would be above 1: ``quota + places w / R > 1``.
    while cut < size and places * falling[cut] > (1.0 - quota) * rest[cut]:
        cut += 1
        places = max(room - cut * (1.0 - quota), 0.0)
    chance, overflown = np.ones(n), np.zeros(n, dtype=np.bool_)
    overflown[order[:cut]] = True
    others = order[cut:]
    chance[others] = quota + places * (weight[others] / rest[cut] if rest[cut] > 0 else 1.0 / max(others.size, 1))
    return Allocated(np.minimum(chance, 1.0), overflown)


@dataclass(eq=False, repr=False)
class E3cs(CohortSelector):
    """Draw clients with probabilities that grow with successful deliveries, none below a fairness quota: E3CS.

    Client i is selected with the probability ``p_i = sigma + (k - K sigma) w_i / sum of w``, of which none may be above
    1 (`prob_alloc`). After a round the weight of each client that was not cut to 1 is multiplied by ``exp((k - K sigma)
    eta x_i / K)``, where x_i is 1 / p_i if it was selected and delivered, and 0 otherwise (Exp3 with several draws).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (k); all candidates if there are no more than that.
    quota : float in [0, 1]
        sigma over k / K: 0 for no fairness, 1 for a uniform draw; 0, 0.5 and 0.8 in the paper's experiments.
    quota_from : int >= 1 or None
        Round from which sigma is k / K, before which it is as above; the paper's E3CS-inc has no quota in the first
        quarter of the rounds. None for never.
    eta : float > 0
        Learning rate (0.5 in the paper).
    draw : ``"multinomial"`` or ``"exact"``
        Draws one after the other with probabilities in proportion to p, as in the paper, by which the chance of a
        client is not exactly p_i; or systematic draws of the candidates in random order (Madow, 1949), by which it is.

    Notes
    -----
    K is the number of candidates of the round. The weight of an absent client does not change. Weights are stored as
    logarithms. At an asynchronous server k is the number of clients asked for, and the probability that counts is that
    of the client's last selection. A crowd that never delivers is drawn uniformly.
    """

    paper = (
        "Huang, Lin, Shen and Zomaya, Stochastic Client Selection for Federated Learning With Volatile Clients, IEEE "
        "Internet of Things Journal 2022"
    )

    quota: Share = 0.5
    quota_from: Count | None = None
    eta: Above0[float] = 0.5
    draw: Literal["multinomial", "exact"] = "multinomial"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._log_weight: FloatArray = np.zeros(0)
        self._step: FloatArray = np.zeros(0)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size, n = self.cohort_size(view), view.client.size
        self._log_weight, self._step = grown(self._log_weight, view.clients), grown(self._step, view.clients)
        if not size:
            return Cohort(view.client[:0])
        sigma = self.sigma(view.round) * size / n
        chance, overflown = prob_alloc(size, sigma, self._log_weight[view.client])
        taken = np.sort(systematic(chance, rng) if self.draw == "exact" else draw_distinct(chance, size, rng))
        gain = (size - n * sigma) * self.eta / (n * chance[taken])
        self._step[view.client[taken]] = np.where(overflown[taken], 0.0, gain)
        return Cohort(view.client[taken])

    def observe(self, reports: Reports) -> None:
        client = reports.client[reports.delivered]
        self._log_weight = grown(self._log_weight, int(reports.client.max(initial=-1)) + 1)
        self._step = grown(self._step, self._log_weight.size)
        np.add.at(self._log_weight, client, self._step[client])
        self._log_weight -= self._log_weight.max(initial=-np.inf) if self._log_weight.size else 0.0

    def sigma(self, round_: int) -> float:
        """Return the fairness quota of a round over k / K."""
        return 1.0 if self.quota_from is not None and round_ >= self.quota_from else self.quota


def systematic(chance: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the positions at equal steps from a random start along the candidates in random order."""
    shuffled = rng.permutation(chance.size)
    ends = np.cumsum(chance[shuffled])
    size = round(float(ends[-1]))
    places = np.searchsorted(ends, (rng.random() + np.arange(size)) * (ends[-1] / size), side="right")
    taken: BoolArray = np.zeros(chance.size, dtype=np.bool_)
    taken[np.minimum(places, chance.size - 1)] = True
    # Rounding may let two steps meet one client of probability 1: the place goes to the next free one.
    for free in np.flatnonzero(~taken)[: size - int(taken.sum())]:
        taken[free] = True
    return np.asarray(shuffled[taken])
