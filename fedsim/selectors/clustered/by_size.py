"""Clustered sampling by size: one client from each of m groups of equal data (Algorithm 1)."""

import numpy as np

from fedsim.selectors.clustered.bins import Bins, bins_by_size
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, data_sizes, tally


class ClusteredBySize(CohortSelector):
    """Draw one client from each of m distributions that are filled with clients by descending number of samples.

    The scheme is unbiased like MD sampling, with less variance of the number of draws of a client: it can be drawn from
    at most ``floor(m p_i) + 2`` of the m distributions. A client that is drawn c times trains once with weight c/m.

    Parameters
    ----------
    cohort : int >= 1
        Number of draws per round (m); at most as many as there are candidates.

    Notes
    -----
    Masses are whole numbers (m n_i, in bins of n), so that the distributions add up exactly; the published code scales
    p_i by 10^10 and truncates. They consist of the candidates of the round. Without data all candidates have equal
    masses.
    """

    paper = (
        "Fraboni, Vidal, Kameni and Lorenzi, Clustered Sampling: Low-Variance and Improved Representativity for "
        "Clients Selection in Federated Learning, ICML 2021, Algorithm 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        draws = self.cohort_size(view)
        return tally(view.client[self.bins(view, draws).draw(rng)] if draws else view.client[:0])

    def bins(self, view: RoundView, draws: int) -> Bins:
        return bins_by_size(data_sizes(view), draws)
