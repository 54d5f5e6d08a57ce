"""Age-based scheduling: the clients whose old updates can be renewed with little of the band."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.channel.best_channel import known_snr_hz
from fedsim.selectors.contracts import Allocation, Cohort, Reports, RoundView
from fedsim.selectors.joint_bandwidth.bandwidth import least_bandwidth_hz, rate_bps
from fedsim.selectors.options import Above0, AtLeast0
from fedsim.selectors.sampling import CohortSelector, grown
from fedsim.units import Hertz, Seconds


@dataclass(eq=False, repr=False)
class AgeBased(CohortSelector):
    """Take the clients that lower the ages of updates most for the band that their uploads need.

    The age of update of client k follows ``T_k <- (T_k + 1) (1 - S_k)``, where S_k tells whether its update has arrived
    in the round. A round in which the update arrives lowers ``f(1 + T_k)`` by ``f(2 + T_k) - f(1)``, where f is the
    alpha-fair function: ``x^(1 - alpha) / (1 - alpha)``, or ``ln x`` for alpha = 1. The price is the least band in
    which the upload ends within a time. Clients of the greatest ratio are taken until the band or the m places are
    used up; a client that does not fit is passed over. What is left of the band is divided in proportion.

    Parameters
    ----------
    cohort : int >= 1
        Largest number of clients per round (m).
    alpha : float >= 0
        Of f: 0 for the sum of the ages, greater values for less difference between them.
    bandwidth_hz : float > 0
        Band of the uplink that the clients of a round share; 10 MHz by default, a carrier of LTE.
    upload_s : float > 0
        Time within which an upload is to end.
    state : ``"now"`` or ``"mean"``
        Channel of the prices: in the present fading as in the paper, or the mean of the last report.

    Notes
    -----
    From the paper are the age, the alpha-fair sum of ages that is to be small, and the joint use of ages and present
    channels. Its text was not at hand: the greedy rule by benefit per Hz, the argument ``1 + T``, which makes f finite
    at age 0, and the defaults are fedsim's. If no client fits, the one of the greatest ratio gets the whole band.

    On links that are no radio and where the network itself shares the band there are no bands to divide. The price is
    then the time that an upload takes with the whole band, or 1 without radio: the oldest come first. Ties are broken
    at random.

    The age of a client that never delivers grows for ever, so that most rounds are empty where half of the crowd never
    delivers. The paper's clients deliver whenever they are scheduled.
    """

    paper = (
        "Yang, Arafa, Quek and Poor, Age-Based Scheduling Policy for Federated Learning in Mobile Edge Networks, "
        "ICASSP 2020"
    )
    communication = "sounding signals of all candidates"
    may_stall = "the age of a client that never delivers grows for ever"

    alpha: AtLeast0[float] = 1.0
    bandwidth_hz: Above0[Hertz] = 10e6
    upload_s: Above0[Seconds] = 1.0
    state: Literal["now", "mean"] = "now"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._arrived: IntArray = np.zeros(0, dtype=np.int64)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size, snr_hz = self.cohort_size(view), known_snr_hz(view, self.state)
        self._arrived = grown(self._arrived, view.clients)
        if not size:
            return Cohort(view.client[:0])
        divides = view.allocates and view.up_bits > 0 and view.snr_hz is not None
        price = self._price(view, snr_hz, divides=divides)
        benefit = benefit_of(self.ages(view), self.alpha)
        shuffled = rng.permutation(price.size)
        order = shuffled[np.argsort(-benefit[shuffled] / price[shuffled], kind="stable")]
        if not divides:
            return Cohort(view.client[np.sort(order[:size])])
        taken = np.sort(within(price[order], self.bandwidth_hz, size, order))
        band = price[taken]
        total = band.sum()
        share = band / total if 0 < total < np.inf else np.full(taken.size, 1.0 / taken.size)
        return Cohort(view.client[taken], allocation=Allocation(bandwidth_hz=self.bandwidth_hz * share))

    def observe(self, reports: Reports) -> None:
        client = reports.client[reports.delivered]
        self._arrived = grown(self._arrived, int(reports.client.max(initial=-1)) + 1)
        self._arrived[client] = np.maximum(self._arrived[client], reports.round)

    def ages(self, view: RoundView) -> IntArray:
        """Return T_k of each candidate, shape (n,): rounds since its last update has arrived, or since the start."""
        return np.maximum(view.round - 1 - self._arrived[view.client], 0)

    def _price(self, view: RoundView, snr_hz: FloatArray, *, divides: bool) -> FloatArray:
        """Return the least band of each candidate, or the time of its upload, shape (n,), > 0."""
        able = np.isfinite(snr_hz) & (snr_hz > 0)
        if view.snr_hz is None or view.up_bits <= 0:
            return np.ones(snr_hz.size)
        price = np.where(snr_hz > 0, np.finfo(float).tiny, np.inf)
        if divides:
            price[able] = least_bandwidth_hz(view.up_bits, np.full(int(able.sum()), self.upload_s), snr_hz[able])
        else:
            price[able] = view.up_bits / rate_bps(np.full(int(able.sum()), self.bandwidth_hz), snr_hz[able])
        return price


def benefit_of(age: IntArray, alpha: float) -> FloatArray:
    """Return by how much an arrival lowers the sum of f over the ages, ``f(2 + T) - f(1)``, shape (n,), > 0."""
    older = 2.0 + age
    return np.log(older) if alpha == 1 else np.asarray((older ** (1.0 - alpha) - 1.0) / (1.0 - alpha))


def within(price: FloatArray, budget: float, size: int, order: IntArray) -> IntArray:
    """Return the elements of an order whose prices fit into a budget, one after the other; the first if none fits."""
    taken: BoolArray = np.zeros(price.size, dtype=np.bool_)
    left, places = budget, size
    for i in np.flatnonzero(price <= budget).tolist():
        if price[i] <= left:
            taken[i] = True
            left -= price[i]
            places -= 1
            if not places:
                break
    return order[taken] if taken.any() else order[:1]
