"""AOCS: the probabilities of optimal client sampling by sums alone, so that no client's norm is seen.

The rules come from published descriptions; the paper's text was not at hand.
"""

from typing import Annotated

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.importance import ImportanceSampling
from fedsim.selectors.sampling import data_shares
from fedsim.selectors.validation import check_whole_numbers
from fedsim.units import Bound


class ApproximateSampling(ImportanceSampling):
    """Select clients with approximately optimal probabilities, from sums that a secure aggregation can give: AOCS.

    The server learns the sum u of the norms ``u_i = w_i |U_i|``, and each client has ``p_i = min(m u_i / u, 1)``. Then
    the server learns the number I of clients below 1 and the sum P of their probabilities. Each of these clients has
    ``p_i <- min(C p_i, 1)`` with ``C = (m - n + I) / P``; this is repeated until C <= 1, at most `iterations` times
    (Algorithm 2).
    Each client decides by its own draw. Its weight is w_i over p_i, so that the aggregate is unbiased.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round on average (m).
    iterations : int >= 0
        Largest number of repetitions, j_max (4 in the paper's experiments). With many of them the probabilities are
        those of optimal sampling, kind ``"importance"``.
    floor : float in [0, 1]
        As of `fedsim.selectors.importance.ImportanceSampling`: 0 for the paper's formula.

    Notes
    -----
    In the paper all clients train in each round and take part in these sums with the norm of the update that they
    hold. Here only the cohort trains: the norm is that of a client's last delivered update, and clients without a known
    norm get the largest known one. The sums would be `iterations` small messages in each direction. If the server asks
    for a number of clients, that many are drawn by exponential keys, in proportion to the odds of the probabilities.
    """

    paper = (
        "Chen, Horvath and Richtarik, Optimal Client Sampling for Federated Learning, Transactions on Machine Learning "
        "Research, 2022, Algorithm 2"
    )
    communication = "nothing (the paper's: a model down and sums of a few numbers up for all clients)"

    def __init__(self, cohort: int, iterations: Annotated[int, Bound(0, 10**6)] = 4, floor: float = 0.1) -> None:
        super().__init__(cohort, "independent", "unbiased", floor)
        check_whole_numbers(0, iterations=iterations)
        self.iterations = iterations

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client.copy())
        share = data_shares(view)
        chance = approximate_probabilities(share * self.norms(view), size, self.iterations)
        if view.wanted is not None:
            odds = chance / np.maximum(1.0 - chance, 1e-12)
            keys = rng.standard_exponential(chance.size) / np.maximum(odds, 1e-300)
            chosen, given = np.sort(np.argsort(keys, kind="stable")[:size]), 1.0
        else:
            chosen = np.flatnonzero(rng.random(chance.size) < chance)
            while not chosen.size:
                chosen = np.flatnonzero(rng.random(chance.size) < chance)
            given = float(-np.expm1(np.log1p(-np.minimum(chance, 1 - 1e-16)).sum()))
        weights = share[chosen] * given / chance[chosen]
        return Cohort(view.client[chosen], weights=weights if weights.any() else None)


def approximate_probabilities(norm: FloatArray, expected: int, iterations: int) -> FloatArray:
    """Return the probabilities of Algorithm 2, in [0, 1], of sum m at most, shape (n,)."""
    n, total = norm.size, float(norm.sum())
    if total <= 0:
        return np.full(n, expected / n)
    chance = np.minimum(expected * norm / total, 1.0)
    for _ in range(iterations):
        below = chance < 1.0
        mass = float(chance[below].sum())
        if mass <= 0:
            break
        factor = (expected - n + int(below.sum())) / mass
        chance[below] = np.minimum(factor * chance[below], 1.0)
        if factor <= 1.0 + 1e-12:
            break
    return chance
