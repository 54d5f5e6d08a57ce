"""Full participation: nobody is selected, everybody takes part."""

import numpy as np

from fedsim.selectors.base import Cohort, PublishedSelector, RoundView


class All(PublishedSelector):
    """Take every candidate in every round, as in the papers' "FedAvg, all users" curves."""

    paper = (
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, "
        "AISTATS 2017, with client fraction C = 1"
    )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return all candidates; nothing is drawn."""
        return Cohort(view.client.copy())
