"""The protocol in which all clients compute, send the norms of their updates, and some of them their updates."""

from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.adaptive.aocs import approximate_probabilities
from fedsim.selectors.contracts import Cohort, Probe, RoundView
from fedsim.selectors.importance import optimal_probabilities
from fedsim.selectors.sampling import CohortSelector, data_sizes, lowest
from fedsim.selectors.validation import check_choice, check_numbers, check_whole_numbers
from fedsim.units import Bits, Bound, Seconds


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

    paper = (
        "Chen, Horvath and Richtarik, Optimal Client Sampling for Federated Learning, Transactions on Machine Learning "
        "Research, 2022, equation (7) and Algorithm 2; Amiri et al., 2021, policy BN2"
    )
    cohort_is_mean = True
    asks_norms = True
    communication = "a model down and a number up for all candidates, who all do their whole work"

    def __init__(
        self,
        cohort: int,
        rule: Literal["optimal", "approximate", "greatest"] = "optimal",
        iterations: Annotated[int, Bound(0, 10**6)] = 4,
        up_bits: Bits = 32.0,
        wait_s: Seconds | None = None,
    ) -> None:
        super().__init__(cohort)
        check_choice("rule", rule, "optimal", "approximate", "greatest")
        check_whole_numbers(0, iterations=iterations)
        check_numbers(0, up_bits=up_bits)
        check_numbers(0, above=True, optional=True, wait_s=wait_s)
        self.rule, self.iterations, self.up_bits, self.wait_s = rule, iterations, up_bits, wait_s

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
        drawn = np.flatnonzero(rng.random(chance.size) < chance)
        while not drawn.size:
            drawn = np.flatnonzero(rng.random(chance.size) < chance)
        # Draws without a client are repeated; the weights account for it.
        given = float(-np.expm1(np.log1p(-np.minimum(chance, 1 - 1e-16)).sum()))
        weights = share[drawn] * given / chance[drawn]
        order = np.argsort(client[drawn])
        return Cohort(client[drawn][order], weights=weights[order] if weights.any() else None, trained=True)

    def _chance(self, norm: FloatArray, size: int) -> FloatArray:
        if self.rule == "optimal":
            return optimal_probabilities(norm, size)
        return approximate_probabilities(norm, size, self.iterations)
