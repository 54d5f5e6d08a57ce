"""Loss-proportional selection: probabilities of selection in proportion to training losses."""

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, draw_distinct, never_delivered
from fedsim.selectors.validation import check_numbers
from fedsim.units import Exponent


class LossProportional(CohortSelector):
    """Draw m distinct clients with probabilities in proportion to the training loss of their last delivered update.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    data_exponent : float >= 0
        A client's value is its loss times n_k to this power: 0 for the loss alone, 0.5 for the valuation of Active
        Federated Learning (the sum of its samples' losses over the root of their number), 1 for the sum.

    Notes
    -----
    A client that was never selected gets the largest known loss of a candidate, and a client that was selected and has
    not delivered yet the mean of the known losses. Probabilities are in proportion to the values
    themselves, not to a softmax of them as in Goetz et al. Updates are averaged by samples as in FedAvg, which is
    biased towards clients of high loss.
    """

    paper = (
        "Goetz et al., Active Federated Learning, 2019, with draws in proportion to its valuation; after Katharopoulos "
        "and Fleuret, Not All Samples Are Created Equal, ICML 2018"
    )
    needs = ("loss",)
    communication = "a number up per update"

    def __init__(self, cohort: int, data_exponent: Exponent = 0.0) -> None:
        super().__init__(cohort)
        check_numbers(0, data_exponent=data_exponent)
        self.data_exponent = data_exponent

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        return Cohort(np.sort(view.client[draw_distinct(self.values(view), size, rng)]))

    def values(self, view: RoundView) -> FloatArray:
        """Return the valuations, to which probabilities are in proportion, shape (n,), at least 0."""
        known = np.isfinite(view.last_loss)
        last = np.maximum(view.last_loss, 0.0)
        largest = float(last[known].max(initial=0.0)) or 1.0
        mean = float(last[known].mean()) if known.any() else largest
        loss = np.where(known, last, np.where(never_delivered(view), mean, largest))
        return loss if not self.data_exponent else loss * view.samples**self.data_exponent
