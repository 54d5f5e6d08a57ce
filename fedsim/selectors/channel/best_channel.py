"""The state of candidates' uplinks, and the clients of the best channels, also in proportion to their own means."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.sampling import CohortSelector, lowest

State = Literal["now", "mean"]


def snr_hz_of(view: RoundView, state: State) -> FloatArray | None:
    """Return the SNR of each candidate's uplink times its band in Hz, shape (n,); None without radio."""
    if view.snr_hz is None or state == "mean" or view.fading_gain is None:
        return view.snr_hz
    # An infinite SNR in a deep fade is infinite.
    faded = np.multiply(view.snr_hz, view.fading_gain, out=view.snr_hz.copy(), where=np.isfinite(view.snr_hz))
    return np.asarray(faded)


def known_snr_hz(view: RoundView, state: State) -> FloatArray:
    """Return what `snr_hz_of` returns; without radio all uplinks are equal, 1."""
    snr_hz = snr_hz_of(view, state)
    return np.ones(view.client.size) if snr_hz is None else snr_hz


AMIRI: Final = (
    "Amiri, Gunduz, Kulkarni and Poor, Convergence of Update Aware Device Scheduling for Federated Learning at the "
    "Wireless Edge, IEEE Transactions on Wireless Communications 2021"
)


@dataclass(eq=False, repr=False)
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

    state: Literal["now", "mean"] = "now"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        best = lowest(-known_snr_hz(view, self.state), self.cohort_size(view), rng)
        return Cohort(view.client[np.sort(best)])


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
