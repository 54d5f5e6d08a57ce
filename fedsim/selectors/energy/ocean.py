"""OCEAN: clients and bands by virtual queues of energy, without knowledge of the channels to come.

A client that sends L bits within t seconds in a band of b Hz needs the power ``p (b / s) (2^(L / (t b)) - 1)``
(Shannon's rate). p is its full power, and s its SNR at full power times the band, in Hz. Its energy, t times that
power, falls with the band and is convex.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from scipy.special import lambertw

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.channel.best_channel import State, snr_hz_of
from fedsim.selectors.contracts import Allocation, Cohort, RoundView
from fedsim.selectors.joint_bandwidth.bandwidth import least_bandwidth_hz
from fedsim.selectors.options import Above0, AtLeast0, Count
from fedsim.selectors.sampling import CohortSelector, grown
from fedsim.units import Bound, Decibels, Hertz, Joules, Seconds, db_to_linear

_HALVINGS: Final = 64
_NEAR: Final = 1e-6
"""Below it rounding blurs Lambert's function near its branch point, where SciPy's is NaN."""
_LN2: Final = float(np.log(2.0))


def power_share(bits: float, seconds: float, snr_hz: FloatArray, bandwidth_hz: FloatArray) -> FloatArray:
    """Return the power of each client as a share of its full power, shape (n,)."""
    with np.errstate(over="ignore"):
        share = bandwidth_hz / snr_hz * np.expm1(_LN2 * bits / (seconds * bandwidth_hz))
    return np.asarray(share)


def least_energy_bands(
    bits: float, seconds: float, snr_hz: FloatArray, weight: FloatArray, least_hz: FloatArray, bandwidth_hz: float
) -> FloatArray:
    """Return the bands that make the sum of weights times energies least, shape (n,); their sum is the whole band.

    The derivative of a client's weighted energy by its band is ``-(w / s) h(L / (t b))`` times constants, with ``h(x) =
    1 - 2^x (1 - x ln 2)``. At the optimum it is the same for all clients above their least bands. h is inverted with
    Lambert's function, near its branch point by its series (Corless et al. 1996, section 4), and the common value is
    found by bisection. Without clients of a weight above 0 what is left of the band is divided equally.
    """
    heavy = weight > 0
    if not heavy.any():
        return np.asarray(least_hz + (bandwidth_hz - least_hz.sum()) / least_hz.size)
    price = snr_hz[heavy] / weight[heavy]

    def bands(log_value: float) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            y = np.minimum(np.exp(log_value) * price, 1e300)
            root = np.sqrt(2.0 * y)
            series = root - root**2 / 3.0 + 11.0 / 72.0 * root**3
            x = np.where(y < _NEAR, series, 1.0 + lambertw((np.maximum(y, _NEAR) - 1.0) / np.e).real) / _LN2
            band = least_hz.copy()
            band[heavy] = np.maximum(bits / (seconds * np.maximum(x, 1e-300)), least_hz[heavy])
        return band

    # The greatest value leaves every client its least band, the smallest one gives each more than the whole band.
    low, high = -700.0 - np.log(price.max()), 690.0 - np.log(price.max())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bands(middle).sum() > bandwidth_hz else (low, middle)
    band = bands(high)
    above = band > least_hz
    if above.any():
        band[above] *= (bandwidth_hz - band[~above].sum()) / band[above].sum()
    return band


_SLACK_DB: Final = 1e-9
"""Taken from prescribed powers, so that rounding does not lift one above the client's own."""


@dataclass(eq=False, repr=False)
class Ocean(CohortSelector):
    """Select clients of small energy queues over good channels, as many as are worth their energy: OCEAN.

    Each client has an energy budget per round, and a virtual queue of what it has spent beyond it: ``q <- max(q + E -
    budget, 0)``. A round selects the clients and the bands that maximise ``V eta n - sum of q_k E_k``, where n is the
    number of clients and E_k the energy with which client k's upload ends exactly after `upload_s` seconds in its band.
    Clients are ordered by ``q_k p_k / snr_k`` with full powers p_k, smallest first, and the best beginning of this
    order is taken: for each, the bands of least weighted energy are computed (`upload_energy.least_energy_bands`). With
    the bands the clients get the powers of which the uploads last that long.

    Parameters
    ----------
    cohort : int >= 1
        Largest number of clients per round.
    budget_j : float > 0
        Energy of uploads that a client may spend per round on average.
    v : float > 0
        V, the worth of a client in J^2: greater for more clients, and a greater excess over the budgets at first.
    pattern : ``"uniform"``, ``"ascending"`` or ``"descending"``
        eta of a round, of mean 1: 1 throughout, or in proportion to the number of the round, or the reverse. The paper
        finds that more clients later are better than more clients earlier.
    rounds : int >= 1
        Number of rounds after which eta does not change any more.
    frame : int >= 1 or None
        Rounds after which the queues begin again at 0; None for never.
    bandwidth_hz : float > 0
        Band of the uplink that the clients of a round share; 10 MHz by default, a carrier of LTE.
    least_hz : float > 0
        Least band of a client.
    upload_s : float > 0
        Time of an upload.
    transmit_power_dbm : float >= 0 or None
        Most power that a client sends with; None, the default, or more than a client's full power for that full power.
    snr_gap_db : float >= 0
        Loss of the coding against Shannon's limit, by which the channel is discounted.
    state : ``"now"`` or ``"mean"``
        Channel in the present fading as in the paper, or the mean of the last report.

    Notes
    -----
    The objective, queues, order and choice are the paper's as its published descriptions have them; its text was not at
    hand. Of fedsim are the limit of a power, by which a client may need more than the least band; the limit of the
    cohort; at least one client per round; and the defaults of `budget_j`, `v`, `least_hz` and `upload_s`. The queues
    count radiated energy as planned. Batteries count what `devices.energy` says, which for a sender stated by its
    radiated power follows the power given.

    There is no band to divide on links that are no radio, that share it themselves or that do not state the clients'
    powers. E_k is then the energy that a client declares for a whole participation, 0 without batteries, and the order
    is by ``q_k E_k``.
    """

    paper = (
        "Xu and Wang, Client Selection and Bandwidth Allocation in Wireless Federated Learning Networks: A Long-Term "
        "Perspective, IEEE Transactions on Wireless Communications 2021"
    )
    communication = "sounding signals of all candidates"

    budget_j: Above0[Joules] = 0.02
    v: Above0[float] = 0.01
    pattern: Literal["uniform", "ascending", "descending"] = "uniform"
    rounds: Annotated[Count, Bound(0, 10**4)] = 100
    frame: Count | None = None
    bandwidth_hz: Above0[Hertz] = 10e6
    least_hz: Above0[Hertz] = 1e5
    upload_s: Above0[Seconds] = 1.0
    transmit_power_dbm: AtLeast0[Decibels] | None = None
    snr_gap_db: AtLeast0[Decibels] = 0.0
    state: State = "now"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._queue: FloatArray = np.zeros(0)
        self._round = 0

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._pass_to(view)
        size = self.cohort_size(view)
        if not size:
            return Cohort(view.client[:0])
        snr_hz = snr_hz_of(view, self.state)
        full_dbm = view.full_power_dbm
        if snr_hz is not None and full_dbm is not None and view.allocates and view.up_bits > 0:
            most_dbm = full_dbm if self.transmit_power_dbm is None else np.minimum(full_dbm, self.transmit_power_dbm)
            snr_hz = snr_hz * db_to_linear(most_dbm - full_dbm) / self._gap
            able = np.flatnonzero(np.isfinite(snr_hz) & (snr_hz > 0))
            cohort, energy_j = self._over_radio(view, able, snr_hz[able], most_dbm[able], size, rng)
            if cohort is not None:
                self._queue[cohort.client] += energy_j
                return cohort
        declared_j = np.zeros(view.client.size) if view.participation_j is None else view.participation_j
        cost = self._queue[view.client] * declared_j
        order = rng.permutation(cost.size)
        order = order[np.argsort(cost[order], kind="stable")][:size]
        worth = int(np.count_nonzero(cost[order] < self.v * self.eta(view.round)))
        taken = np.sort(order[: max(worth, 1)])
        self._queue[view.client[taken]] += declared_j[taken]
        return Cohort(view.client[taken])

    def eta(self, round_: int) -> float:
        """Return eta of a round: of mean 1 over the rounds of the pattern."""
        if self.pattern == "uniform":
            return 1.0
        step = min(round_, self.rounds)
        return 2.0 * (step if self.pattern == "ascending" else self.rounds + 1 - step) / (self.rounds + 1)

    @property
    def queue_j(self) -> FloatArray:
        """Virtual queue of each client, with what the last cohort will spend, shape (K,)."""
        return self._queue

    @property
    def _gap(self) -> float:
        return float(db_to_linear(self.snr_gap_db))

    def _pass_to(self, view: RoundView) -> None:
        """Let the budgets of the rounds since the last selection flow off, or the queues begin again."""
        self._queue = grown(self._queue, view.clients)
        passed = max(view.round - max(self._round, 1), 0) if self._round else 0
        self._queue = np.maximum(self._queue - passed * self.budget_j, 0.0)
        if self.frame is not None and self._round and (view.round - 1) // self.frame > (self._round - 1) // self.frame:
            self._queue = np.zeros(self._queue.size)
        self._round = max(view.round, self._round)

    def _over_radio(
        self,
        view: RoundView,
        able: IntArray,
        snr_hz: FloatArray,
        most_dbm: FloatArray,
        size: int,
        rng: np.random.Generator,
    ) -> tuple[Cohort | None, FloatArray]:
        """Return the cohort with its allocation, and the energy of each member; None if no client can send in time."""
        queue = self._queue[view.client[able]]
        most_w = db_to_linear(most_dbm) * 1e-3
        # Energies are shares of unlike powers.
        weight = queue * (most_w / most_w.max(initial=0.0))
        least_hz = np.maximum(
            least_bandwidth_hz(view.up_bits, np.full(able.size, self.upload_s), snr_hz) * (1 + 1e-9), self.least_hz
        )
        order = rng.permutation(able.size)
        order = order[np.argsort(weight[order] / snr_hz[order], kind="stable")]
        order = fitting(order, least_hz, self.bandwidth_hz, size)
        if not order.size:
            return None, np.zeros(0)
        best, best_worth = (order[:1], np.full(1, self.bandwidth_hz), np.zeros(1)), -np.inf
        for count in range(1, order.size + 1):
            part = order[:count]
            band = least_energy_bands(
                view.up_bits, self.upload_s, snr_hz[part], weight[part], least_hz[part], self.bandwidth_hz
            )
            share = np.minimum(power_share(view.up_bits, self.upload_s, snr_hz[part], band), 1.0)
            energy_j = self.upload_s * most_w[part] * share
            worth = self.v * self.eta(view.round) * count - float(queue[part] @ energy_j)
            if worth > best_worth:
                best, best_worth = (part, band, share), worth
        part, band, share = best
        ascending = np.argsort(part)
        part, band, share = part[ascending], band[ascending], share[ascending]
        power_dbm = most_dbm[part] + 10.0 * np.log10(np.maximum(share, 1e-9)) - _SLACK_DB
        allocation = Allocation(bandwidth_hz=band, transmit_power_dbm=power_dbm)
        return Cohort(view.client[able[part]], allocation=allocation), self.upload_s * most_w[part] * share


def fitting(order: IntArray, least_hz: FloatArray, bandwidth_hz: float, size: int) -> IntArray:
    """Return the clients of an order whose least bands fit into a band, one after the other; others are passed over."""
    taken: list[int] = []
    left = bandwidth_hz
    for place in order[least_hz[order] <= bandwidth_hz].tolist():
        if least_hz[place] <= left:
            taken.append(place)
            left -= least_hz[place]
        if len(taken) == size:
            break
    return np.array(taken, dtype=np.int64)
