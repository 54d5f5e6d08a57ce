"""SAFA as FedSUV's section 6.1 describes it: a selection that favours clients of less frequent involvement."""

import numpy as np

from fedsim.selectors import Cohort, RoundView


class LeastInvolved:
    """Take the candidates that were selected least often so far, ties at random.

    Whole SAFA (Wu et al. 2021) lets all clients train and selects among the arrivals. In FedSUV each method has 20
    participants a round, so that of SAFA the compensation is left, and updates that arrive up to five rounds late.
    """

    def __init__(self, cohort: int) -> None:
        self.cohort = cohort

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        order = np.lexsort((rng.random(view.client.size), view.participations))
        return Cohort(np.sort(view.client[order[: self.cohort]]))

    def observe(self, reports: object) -> None:
        """Learn nothing: the view counts participations."""
