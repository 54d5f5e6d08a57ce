"""Independent draws: m with replacement in proportion to samples (MD sampling), or one for each client (Poisson)."""

import numpy as np

from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView
from fedsim.selectors.sampling import CohortSelector, data_sizes, draw_again, tally
from fedsim.selectors.validation import check_numbers, check_shares


class MdSampling(CohortSelector):
    """Draw m times with replacement, client k with probability p_k = n_k / n, and average with 1/m per draw.

    The multinomial distribution gives each client m p_k draws on average, so that the aggregate is an unbiased
    estimate of the aggregate of all clients (Scheme I of Li et al., Lemma 4). A client that is drawn c times trains
    once with weight c/m, so that fewer than m clients may take part.

    Parameters
    ----------
    cohort : int >= 1
        Number of draws per round (m); at most as many as there are candidates.

    Notes
    -----
    p_k is taken over the candidates. Without data, all clients have equal p_k.
    """

    paper = (
        "Li, Huang, Yang, Wang and Zhang, On the Convergence of FedAvg on Non-IID Data, ICLR 2020, Scheme I; Li et "
        "al., Federated Optimization in Heterogeneous Networks, MLSys 2020, Algorithm 2"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        draws = self.cohort_size(view)
        return tally(view.client[draw_again(data_sizes(view), draws, rng)] if draws else view.client[:0])


class PoissonSampling(PublishedSelector):
    """Draw each candidate by itself with one probability, so that cohorts differ in size.

    Each update has the weight ``1 / (rate K)`` for K clients in the crowd, whatever the size of the cohort. With
    ``rounds.weights = "sum"`` these weights are used as they are: the estimator with a fixed denominator, which the
    amplification of central privacy by sampling needs. A draw without any client is repeated.

    Parameters
    ----------
    rate : float in (0, 1]
        Probability with which each candidate is drawn.
    """

    paper = (
        "McMahan, Ramage, Talwar and Zhang, Learning Differentially Private Recurrent Language Models, ICLR 2018, "
        "Algorithm 1"
    )

    def __init__(self, rate: float) -> None:
        check_numbers(0, above=True, rate=rate)
        check_shares(rate=rate)
        self.rate = float(rate)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        drawn = rng.random(view.client.size) < self.rate
        if drawn.size and not drawn.any():
            first = self._first(view.client.size, float(rng.random()))
            drawn[first + 1 :] = rng.random(view.client.size - first - 1) < self.rate
            drawn[first] = True
        client = view.client[drawn]
        return Cohort(client, weights=np.full(client.size, 1.0 / (self.rate * view.clients)))

    def _first(self, candidates: int, uniform: float) -> int:
        """Return the first place drawn of a draw that has any, by the inverse of its distribution."""
        missed = np.log1p(-self.rate)
        any_drawn = -np.expm1(candidates * missed)
        return min(int(np.log1p(-uniform * any_drawn) / missed), candidates - 1)
