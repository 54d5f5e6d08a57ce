"""Proportional fair scheduling: the clients whose channels are best in proportion to their own means."""

import numpy as np

from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, lowest


class ProportionalFair(CohortSelector):
    """Take the m candidates of the greatest present SNR over the own mean SNR.

    All clients with fading of one law are selected equally often, near or far, each in its own good blocks. The mean is
    that over the fading, which the client reports; the paper's is an average over time, to which it is equal in the
    long run.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.

    Notes
    -----
    Ties are broken at random; without radio or fading the draw is uniform. In the paper the channel that is measured
    holds until the upload. In fedsim the upload begins after the download and the work, and the fading may be another
    one then.
    """

    paper = (
        "Yang, Liu, Quek and Poor, Scheduling Policies for Federated Learning in Wireless Networks, IEEE Transactions "
        "on Communications 68(1), 2020, proportional fair"
    )
    communication = "sounding signals of all candidates"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        ratio = np.ones(view.client.size) if view.fading_gain is None else view.fading_gain
        return Cohort(view.client[np.sort(lowest(-ratio, self.cohort_size(view), rng))])
