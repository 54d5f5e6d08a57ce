"""Loss-proportional selection: clients on whose data the model does badly take part more often."""

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, RoundView, check_number, check_whole, cohort_size
from fedsim.selectors.sampling import draw_distinct


class LossProportional(PublishedSelector):
    """Draw m distinct clients with probabilities that follow the loss behind their last delivered update.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    data_exponent : float >= 0
        A client's value is its loss times n_k to this power: 0 for the loss alone, 0.5 for the valuation of Active
        Federated Learning (the sum of its samples' losses over the root of their number), 1 for the sum.

    Notes
    -----
    A client that has not delivered yet has the largest loss known, so that it is heard soon; so has one whose loss is
    no number. Draws follow values themselves, not a softmax of them as in Goetz et al. Updates are averaged by
    samples as FedAvg does, which leans towards clients of high loss.
    """

    paper = (
        "Goetz et al., Active Federated Learning, 2019, with draws in proportion to its valuation; after Katharopoulos "
        "and Fleuret, Not All Samples Are Created Equal, ICML 2018"
    )
    needs = ("loss",)
    communication = "a number up per update"

    def __init__(self, cohort: int, data_exponent: float = 0.0) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_number("data_exponent", data_exponent, lowest=0)
        self.cohort, self.data_exponent = cohort, data_exponent

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return m distinct candidates."""
        size = cohort_size(view, self.cohort)
        return Cohort(np.sort(view.client[draw_distinct(self.values(view), size, rng)]))

    def values(self, view: RoundView) -> FloatArray:
        """Return what the probabilities follow, one value >= 0 per candidate."""
        known = np.isfinite(view.last_loss)
        largest = float(view.last_loss[known].max(initial=0.0)) or 1.0
        loss = np.where(known, np.maximum(view.last_loss, 0.0), largest)
        return loss if not self.data_exponent else loss * view.samples**self.data_exponent
