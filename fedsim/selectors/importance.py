"""Importance sampling: probabilities of selection in proportion to norms of updates, with inverse weights."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.noise import Noise, stated_energy
from fedsim.selectors.options import Share
from fedsim.selectors.sampling import CohortSelector, data_shares, grown, never_delivered

PAPER: Final = (
    "Chen, Horvath and Richtarik, Optimal Client Sampling for Federated Learning, Transactions on Machine Learning "
    "Research, 2022"
)


@dataclass(eq=False, repr=False)
class ImportanceSampling(CohortSelector):
    """Select each client with a probability in proportion to the norm of its update, m clients on average.

    Client i takes part with the probability of equation (7), in proportion to ``w_i |U_i|`` (w_i its share of the
    data, U_i its update) and at most 1. Its update has the weight ``w_i`` over that probability, so that the aggregate
    is an unbiased estimate of the aggregate of all clients. In the paper all clients train in each round and send
    their norms before the draw. Here only the cohort trains: the norm is that of a client's last delivered update.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round on average (m).
    draw : ``"independent"`` or ``"systematic"``
        One draw for each client as in the paper, so that the number of clients varies; or exactly m, by systematic
        sampling of the candidates in random order (Madow, 1949), with the same probabilities. If the server asks for a
        number of clients, the draw is systematic: the server would drop clients beyond its number.
    weights : ``"unbiased"`` or ``"samples"``
        The paper's weights, or FedAvg's, which are biased towards clients of large updates.
    noise : ``"as-sent"`` or ``"corrected"``
        Norms as the server receives them; or without the noise of privacy that is expected in them: the root of
        ``|U_i|^2 - E|noise|^2``, and 0 where that is negative. The noise of late releases is the largest, so that
        norms as sent prefer the clients that have spent most. A choice of fedsim: the paper knows no noise.
    floor : float in [0, 1]
        Norms below this share of the mean known norm are raised to it: a norm is measured only when the client takes
        part, and a small one could exclude it for the rest of the run. 0 for the paper's formula.

    Notes
    -----
    Clients that were never selected get the largest known norm, and clients that were selected and have not delivered
    yet the mean of the known norms. Independent draws that give an empty cohort are repeated;
    the probabilities in the weights are then conditional on a cohort that is not empty.
    """

    paper = f"{PAPER}, equation (7)"
    cohort_is_mean = True
    needs = ("update_norm", "noise_energy")
    communication = "nothing (the paper's: a model down and a number up for all clients)"

    draw: Literal["independent", "systematic"] = "independent"
    weights: Literal["unbiased", "samples"] = "unbiased"
    floor: Share = 0.1
    noise: Noise = "as-sent"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._norm: FloatArray = np.zeros(0)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        share = data_shares(view)
        chance = optimal_probabilities(share * self.norms(view), size)
        independent = self.draw == "independent" and view.wanted is None
        chosen, given = independent_draws(chance, rng) if independent else _systematic(chance, rng)
        weights = share[chosen] * given / chance[chosen]
        prescribed = weights if self.weights == "unbiased" and weights.any() else None
        return Cohort(view.client[chosen], weights=prescribed)

    def observe(self, reports: Reports) -> None:
        norm = reports.measured.get("update_norm", np.full(reports.client.size, np.nan))
        known = reports.delivered & np.isfinite(norm)
        if self.noise == "corrected":
            energy = stated_energy(reports, known, "ImportanceSampling")
            norm = np.sqrt(np.maximum(np.square(norm) - energy, 0.0))
        self._norm = grown(self._norm, int(reports.client.max(initial=-1)) + 1, np.nan)
        self._norm[reports.client[known]] = norm[known]

    def norms(self, view: RoundView) -> FloatArray:
        """Return the norm of each candidate in equation (7), shape (n,); 1 for all before the first known norm."""
        self._norm = grown(self._norm, view.clients, np.nan)
        known = self._norm[~np.isnan(self._norm)]
        if not known.any():
            return np.ones(view.client.size)
        norm = self._norm[view.client]
        unknown = np.where(never_delivered(view), known.mean(), known.max())
        return np.asarray(np.maximum(np.where(np.isnan(norm), unknown, norm), self.floor * known.mean()))


def optimal_probabilities(norm: FloatArray, expected: int) -> FloatArray:
    """Return the probabilities of equation (7), which minimise the variance of the aggregate.

    With norms in ascending order and S_l the sum of the first l, the n - l largest have probability 1, and the others
    ``(m + l - n) norm / S_l``. l is the largest number with ``(m + l - n) norm_l <= S_l``.
    """
    n, order = norm.size, np.argsort(norm, kind="stable")
    rising = norm[order]
    total = np.cumsum(rising)
    spots = expected - n + np.arange(1, n + 1)
    last = int(np.flatnonzero((spots > 0) & (spots * rising <= total * (1 + 1e-12)))[-1])
    chance = np.ones(n)
    if total[last] > 0:
        chance[order[: last + 1]] = np.minimum(spots[last] * rising[: last + 1] / total[last], 1.0)
    else:
        chance[order[: last + 1]] = spots[last] / (last + 1)
    return chance


def independent_draws(chance: FloatArray, rng: np.random.Generator) -> tuple[IntArray, float]:
    """Return positions of independent draws, and the probability that at least one client is drawn."""
    chosen = np.flatnonzero(rng.random(chance.size) < chance)
    while not chosen.size:
        chosen = np.flatnonzero(rng.random(chance.size) < chance)
    return chosen, float(-np.expm1(np.log1p(-np.minimum(chance, 1 - 1e-16)).sum()))


def _systematic(chance: FloatArray, rng: np.random.Generator) -> tuple[IntArray, float]:
    """Return the positions at equal steps from a random start; their number is the sum of the probabilities."""
    shuffled = rng.permutation(chance.size)
    ends = np.cumsum(chance[shuffled])
    steps = (rng.random() + np.arange(round(float(ends[-1])))) / round(float(ends[-1])) * ends[-1]
    places = np.unique(np.searchsorted(ends, steps, side="right"))
    return np.sort(shuffled[np.minimum(places, chance.size - 1)]), 1.0
