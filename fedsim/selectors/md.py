"""MD sampling: m draws with replacement, in proportion to samples."""

import numpy as np

from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, data_sizes, draw_again, tally


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
        """Return the clients drawn, each with its draws and weight."""
        draws = self.cohort_size(view)
        return tally(view.client[draw_again(data_sizes(view), draws, rng)] if draws else view.client[:0])
