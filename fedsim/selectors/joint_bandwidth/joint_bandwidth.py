"""Joint selection of clients and division of the uplink's band for the shortest round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Allocation, Cohort, RoundView
from fedsim.selectors.joint_bandwidth.bandwidth import earliest_end, least_bandwidth_hz, rate_bps
from fedsim.selectors.options import Above0, AtLeast0
from fedsim.selectors.sampling import CohortSelector, lowest
from fedsim.units import Decibels, Hertz, db_to_linear

T = TypeVar("T")
_HALVINGS: Final = 100
_MOST_SNR_HZ: Final = 1e100
"""Stands for an infinite one, of which no band is the least."""


@dataclass(eq=False, repr=False)
class JointBandwidth(CohortSelector):
    """Take the clients whose uploads can all end first, and give each the band with which they end together.

    A client is ready after its downlink and its work, whose mean durations clients declare. Its channel is the one
    that it reported last. For the clients taken, the band is divided as in `bandwidth.earliest_end` (section IV-A).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates with a channel if there are no more than that.
    bandwidth_hz : float > 0
        Band of the uplink that the clients of a round share; 10 MHz by default, a carrier of LTE.
    search : ``"greedy"`` or ``"exact"``
        The paper's greedy scheduling: one client after the other is added, always the one with which the round stays
        shortest. Or the shortest round of all cohorts of that size, which is found directly: within t seconds m
        clients can deliver if and only if the m narrowest of the bands with which each delivers within t fit.
    snr_gap_db : float >= 0
        Loss of the coding against Shannon's limit, by which the channel is discounted.

    Notes
    -----
    What is the paper's: for given clients the shortest round under the constraint of the band, where all uploads end
    together and each band is the closed form of `bandwidth.least_bandwidth_hz`; and the greedy scheduling, which adds
    the client with which the round stays shortest. What differs, and why:

    - The number of clients is given. The paper maximises the accuracy within a time for the whole training: it adds
      clients until its bound on the loss begins to rise. That bound needs constants of the loss function and of the
      data, which a server cannot know. The best number is found by a sweep over `cohort`, with real training.
    - So the goal is the shortest round for that number. ``search = "exact"`` reaches it, which the greedy scheduling
      need not; the exact search is not in the paper.
    - A client is ready after its downlink and its work, as declared in the mean. A downlink that takes no time, and
      work without a jitter, are the special case in which the plan is what happens.
    - The channel is the mean over fading that the base station measured last, not that of the round's fading block,
      which no server knows before a transfer of many blocks. Rates of the plan are Shannon's. The rates in a run are
      those of the scenario's network: fading, a ceiling or steps of the rate make uploads end at different instants.
    - On links that are no radio, and where the network itself shares the band, there is no band to divide: the clients
      of least declared duration are taken.

    The method plans with what clients declare and does not learn from outcomes: among clients that stay, those of the
    best channels are taken in every round, whether they deliver or not.
    """

    paper = (
        "Shi et al., Joint Device Scheduling and Resource Allocation for Latency Constrained Wireless Federated "
        "Learning, IEEE Transactions on Wireless Communications 2021, section IV"
    )
    communication = "the channel report of a cell, and three numbers up per client once"
    uses_features = True
    may_stall = "it plans with declared times and channels, and does not learn who delivers"

    bandwidth_hz: Above0[Hertz] = 10e6
    search: Literal["greedy", "exact"] = "greedy"
    snr_gap_db: AtLeast0[Decibels] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.planned_s = np.nan

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the clients and their bands; `planned_s` is then the planned duration of the round."""
        channel = np.zeros(view.client.size) if view.snr_hz is None else view.snr_hz
        snr_hz, ready_s = channel / float(db_to_linear(self.snr_gap_db)), view.features[:, :2].sum(axis=1)
        able = np.flatnonzero((snr_hz > 0) & np.isfinite(ready_s))
        size = min(self.cohort_size(view), able.size)
        if not (size and view.allocates and view.up_bits > 0):
            expected_s = view.features[:, :3].sum(axis=1)
            return Cohort(view.client[np.sort(lowest(expected_s, self.cohort_size(view), rng))])
        ready_s, snr_hz = ready_s[able], np.minimum(snr_hz[able], _MOST_SNR_HZ)
        find = greedy if self.search == "greedy" else exact
        # Ties in random order.
        order = rng.permutation(able.size)
        place = np.sort(order[find(view.up_bits, ready_s[order], snr_hz[order], self.bandwidth_hz, size)])
        self.planned_s, band = earliest_end(view.up_bits, ready_s[place], snr_hz[place], self.bandwidth_hz)
        return Cohort(view.client[able[place]], allocation=Allocation(bandwidth_hz=band))


def greedy(bits: float, ready_s: FloatArray, snr_hz: FloatArray, bandwidth_hz: float, size: int) -> IntArray:
    """Return the clients of the greedy scheduling in the order in which they are taken, as positions, shape (size,)."""
    taken: list[int] = []
    free = np.ones(ready_s.size, dtype=bool)
    for _ in range(size):
        chosen, others = np.array(taken, dtype=np.int64), np.flatnonzero(free)

        def next_of(end_s: float, chosen: IntArray = chosen, others: IntArray = others) -> int | None:
            band = least_bandwidth_hz(bits, end_s - ready_s, snr_hz)
            best = int(others[band[others].argmin()])
            return best if band[best] <= bandwidth_hz - band[chosen].sum() else None

        best = _least(next_of, _bounds(bits, ready_s, snr_hz, bandwidth_hz, size))
        taken.append(best)
        free[best] = False
    return np.array(taken, dtype=np.int64)


def exact(bits: float, ready_s: FloatArray, snr_hz: FloatArray, bandwidth_hz: float, size: int) -> IntArray:
    """Return the cohort of the shortest round as positions, shape (size,); parameters as in `greedy`."""

    def narrowest(end_s: float) -> IntArray | None:
        band = least_bandwidth_hz(bits, end_s - ready_s, snr_hz)
        place = np.argsort(band, kind="stable")[:size]
        return place if band[place].sum() <= bandwidth_hz else None

    return _least(narrowest, _bounds(bits, ready_s, snr_hz, bandwidth_hz, size))


def _bounds(
    bits: float, ready_s: FloatArray, snr_hz: FloatArray, bandwidth_hz: float, size: int
) -> tuple[float, float]:
    """Return an instant before which no client can deliver, and one until which any clients of that number can."""
    alone_s = ready_s + bits / rate_bps(np.full(ready_s.size, bandwidth_hz), snr_hz)
    parts_s = ready_s + bits / rate_bps(np.full(ready_s.size, bandwidth_hz / size), snr_hz)
    # A little later, so that rounding does not take the last part of the band.
    return float(alone_s.min()), float(parts_s.max()) * (1 + 1e-9)


def _least(answer: Callable[[float], T | None], bounds: tuple[float, float]) -> T:
    """Return the answer at the least instant at which there is one, by bisection between two bounds."""
    early, late = bounds
    found = answer(late)
    if found is None:
        raise RuntimeError(f"no cohort can deliver within {late} s")
    for _ in range(_HALVINGS):
        middle = 0.5 * (early + late)
        if not early < middle < late:
            break
        sooner = answer(middle)
        if sooner is None:
            early = middle
        else:
            late, found = middle, sooner
    return found
