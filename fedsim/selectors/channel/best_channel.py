"""The clients of the best channels."""

from typing import Final, Literal

import numpy as np

from fedsim.selectors.channel.state import known_snr_hz
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, lowest
from fedsim.selectors.validation import check_choice

AMIRI: Final = (
    "Amiri, Gunduz, Kulkarni and Poor, Convergence of Update Aware Device Scheduling for Federated Learning at the "
    "Wireless Edge, IEEE Transactions on Wireless Communications 2021"
)


class BestChannel(CohortSelector):
    """Take the m candidates of the greatest SNR: BC.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    state : ``"now"`` or ``"mean"``
        The SNR in the present fading, as in the paper, where it holds for the whole round; or its mean over the fading,
        of each client's last report. In fedsim the upload begins after the download and the work, and the fading may
        be another one then.

    Notes
    -----
    Ties are broken at random; without radio all channels are equal. The paper also gives the channel's resources to the
    devices scheduled; here the bands are those of the network. The method does not learn from outcomes: clients of the
    best channels that never deliver are selected for ever where the mean channel decides.
    """

    paper = AMIRI + ", policy BC"
    communication = "sounding signals of all candidates"
    may_stall = "it goes by channels alone, and does not learn who delivers"

    def __init__(self, cohort: int, state: Literal["now", "mean"] = "now") -> None:
        super().__init__(cohort)
        check_choice("state", state, "now", "mean")
        self.state = state

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        best = lowest(-known_snr_hz(view, self.state), self.cohort_size(view), rng)
        return Cohort(view.client[np.sort(best)])
