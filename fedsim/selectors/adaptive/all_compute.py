"""All clients compute and send the norms of their updates, and some of them their updates; AOCS needs sums alone.

The rules of AOCS come from published descriptions; the paper's text was not at hand.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import Cohort, Probe, RoundView
from fedsim.selectors.importance import PAPER, ImportanceSampling, independent_draws, optimal_probabilities
from fedsim.selectors.noise import Noise
from fedsim.selectors.options import Above0, AtLeast0, Whole
from fedsim.selectors.sampling import CohortSelector, data_shares, data_sizes, lowest
from fedsim.units import Bits, Bound, Seconds


@dataclass(eq=False, repr=False)
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

    paper = f"{PAPER}, Algorithm 2"
    communication = "nothing (the paper's: a model down and sums of a few numbers up for all clients)"

    draw: Literal["independent", "systematic"] = field(default="independent", init=False)
    weights: Literal["unbiased", "samples"] = field(default="unbiased", init=False)
    noise: Noise = field(default="as-sent", init=False)
    iterations: Annotated[Whole, Bound(0, 10**6)] = 4

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        share = data_shares(view)
        chance = approximate_probabilities(share * self.norms(view), size, self.iterations)
        if view.wanted is not None:
            odds = chance / np.maximum(1.0 - chance, 1e-12)
            keys = rng.standard_exponential(chance.size) / np.maximum(odds, 1e-300)
            chosen, given = np.sort(np.argsort(keys, kind="stable")[:size]), 1.0
        else:
            chosen, given = independent_draws(chance, rng)
        # A client without data may fill a place, with the probability and the weight 0.
        weights = share[chosen] * given / np.where(chance[chosen] > 0, chance[chosen], 1.0)
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


@dataclass(eq=False, repr=False)
class AllCompute(CohortSelector):
    """Let all candidates train and send the norms of their updates, and let m of them on average send the updates.

    All candidates receive the model and do their whole work. Each sends a number. Then the clients of the cohort send
    their updates, without another download and without more work. So a round costs the downloads and the work of all,
    and saves uploads.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients that send their updates, on average for draws (m).
    rule : ``"optimal"``, ``"approximate"`` or ``"greatest"``
        Independent draws with the probabilities of optimal client sampling (equation 7), or with those of AOCS
        (Algorithm 2), and weights of an unbiased aggregate; or the m clients of the greatest norms, as in BN2 of Amiri
        et al., with FedAvg's weights.
    iterations : int >= 0
        Of AOCS, j_max (4 in the paper's experiments).
    up_bits : float >= 0
        Size of an answer.
    wait_s : float > 0 or None
        Longest wait for answers; None for all of them. Clients without an answer do not take part.

    Notes
    -----
    The share of the data w_i is that among the clients that have answered, and the aggregate is unbiased for theirs.
    For AOCS the paper sums numbers securely in several exchanges; here they are one. Without any answer, and at a
    server that asks for a number of clients, the cohort is drawn uniformly and does its work after that. Norms are no
    private numbers: a run with privacy refuses the question.
    """

    paper = f"{PAPER}, equation (7) and Algorithm 2; Amiri et al., 2021, policy BN2"
    cohort_is_mean = True
    asks_norms = True
    communication = "a model down and a number up for all candidates, who all do their whole work"

    rule: Literal["optimal", "approximate", "greatest"] = "optimal"
    iterations: Annotated[Whole, Bound(0, 10**6)] = 4
    up_bits: AtLeast0[Bits] = 32.0
    wait_s: Above0[Seconds] | None = None

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        if not view.count or view.wanted is not None:
            return None
        return Probe(client=view.client.copy(), asks="update_norm", up_bits=self.up_bits, wait_s=self.wait_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        answers = view.answers
        if answers is None or answers.update_norm is None or not answers.client.size:
            chosen = rng.permutation(view.client)[: self.cohort_size(view)]
            return Cohort(np.sort(chosen))
        client, norm = answers.client, answers.update_norm
        # A run without learning has no norms.
        norm = np.where(np.isfinite(norm), norm, 1.0)
        size = min(self.cohort, client.size)
        if self.rule == "greatest":
            return Cohort(np.sort(client[lowest(-norm, size, rng)]), trained=True)
        sizes = data_sizes(view)[np.searchsorted(view.client, client)].astype(np.float64)
        share = sizes / max(sizes.sum(), 1.0)
        chance = self._chance(share * norm, size)
        # Draws without a client are repeated; the weights account for it.
        drawn, given = independent_draws(chance, rng)
        weights = share[drawn] * given / chance[drawn]
        order = np.argsort(client[drawn])
        return Cohort(client[drawn][order], weights=weights[order] if weights.any() else None, trained=True)

    def _chance(self, norm: FloatArray, size: int) -> FloatArray:
        if self.rule == "optimal":
            return optimal_probabilities(norm, size)
        return approximate_probabilities(norm, size, self.iterations)
