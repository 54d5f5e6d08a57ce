"""Scheduling by the norms of updates, alone and together with the channels: BN2, BC-BN2 and BN2-C."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.channel.best_channel import AMIRI, State, known_snr_hz
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.options import Above0, Count
from fedsim.selectors.sampling import CohortSelector, grown, lowest
from fedsim.units import Hertz, Seconds


class LastNorms:
    """The norm of each client's last delivered update.

    A client that was never selected is worth more than any other, so that each is tried once. One without a delivered
    update is worth the mean of the known norms. Each participation without a delivery since the last one halves the
    worth, so that clients that never deliver are asked ever more seldom, and yet are not forgotten.
    """

    def __init__(self) -> None:
        self._norm: FloatArray = np.zeros(0)
        self._silent: IntArray = np.zeros(0, dtype=np.int64)

    def learn(self, reports: Reports, norm: FloatArray) -> None:
        clients = int(reports.client.max(initial=-1)) + 1
        self._norm, self._silent = grown(self._norm, clients, np.nan), grown(self._silent, clients)
        known = reports.delivered & np.isfinite(norm)
        self._norm[reports.client[known]] = norm[known]
        np.add.at(self._silent, reports.client[~reports.delivered], 1)
        self._silent[reports.client[reports.delivered]] = 0

    def worth(self, view: RoundView) -> FloatArray:
        """Return the worth of each candidate, at least 0, shape (n,); `inf` for clients that were never selected."""
        self._norm, self._silent = grown(self._norm, view.clients, np.nan), grown(self._silent, view.clients)
        norm = self._norm[view.client]
        known: BoolArray = ~np.isnan(norm)
        everyone = self._norm[~np.isnan(self._norm)]
        mean = float(everyone.mean()) if everyone.size else 1.0
        worth = np.where(known, norm, mean) * 0.5 ** self._silent[view.client]
        return np.asarray(np.where((view.participations == 0) & ~known, np.inf, worth))


MEAN_BITS: Final = 33.0
"""Bits of the mean: 32, and one for the choice between the greatest and the smallest elements."""
_STEPS: Final = 4
"""Steps of q per factor of two."""


class SparseNorms:
    """Norms of clients' last updates of which q elements are sent, over those of the whole updates, for all steps of q.

    The digital scheme of Amiri and Gunduz, "Machine learning at the wireless edge: distributed stochastic gradient
    descent over-the-air", IEEE Transactions on Signal Processing 2020.
    """

    def __init__(self) -> None:
        self._share: dict[int, FloatArray] = {}
        self._elements: dict[int, int] = {}

    def learn(self, client: int, update: FloatArray) -> None:
        """Remember a client's update, shape (d,)."""
        whole = float(np.linalg.norm(update))
        norms = norms_of(update)
        self._share[client] = norms / whole if whole > 0 else np.zeros(norms.size)
        self._elements[client] = update.size

    def share(self, client: IntArray, bits: FloatArray) -> FloatArray:
        """Return the share of the norm that each client's bits carry, shape (n,); 1 for clients without an update."""
        share = np.ones(client.size)
        for place, one in enumerate(client.tolist()):
            if one in self._share:
                step = int(np.searchsorted(bits_of(self._elements[one]), bits[place], side="right")) - 1
                share[place] = self._share[one][step] if step >= 0 else 0.0
        return share


@lru_cache(maxsize=16)
def steps_of(elements: int) -> IntArray:
    """Return the numbers q of elements that are considered for d of them, ascending: at most d / 2, at least 1."""
    most = max(elements // 2, 1)
    powers = 2.0 ** (np.arange(_STEPS * int(np.ceil(np.log2(most))) + 1) / _STEPS)
    return np.unique(np.minimum(np.append(np.floor(powers), most), most).astype(np.int64))


@lru_cache(maxsize=16)
def bits_of(elements: int) -> FloatArray:
    """Return the bits of each step of q, ``log2 C(d, q) + 33``, ascending."""
    q = steps_of(elements)
    chosen = gammaln(elements + 1.0) - gammaln(q + 1.0) - gammaln(elements - q + 1.0)
    return np.asarray(chosen / np.log(2.0) + MEAN_BITS)


def norms_of(update: FloatArray) -> FloatArray:
    """Return the norm of what is sent of an update for each step of q, ``sqrt(q)`` times the mean that is sent."""
    q = steps_of(update.size)
    rising = np.sort(np.asarray(update, dtype=np.float64))
    smallest, greatest = np.cumsum(rising)[q - 1], np.cumsum(rising[::-1])[q - 1]
    return np.asarray(np.maximum(np.maximum(greatest, -smallest), 0.0) / np.sqrt(q))


@dataclass(eq=False, repr=False)
class Bn2(CohortSelector):
    """Take the m candidates whose last updates have the greatest norms: BN2, the best l2 norm.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.

    Notes
    -----
    In the paper all devices compute their updates in each round and send the norms before the selection. Here only the
    cohort computes: the norm is that of a client's last delivered update. Clients that were never selected come first,
    and each failure since the last delivery halves a client's norm (`LastNorms`); ties are broken at random.
    """

    paper = AMIRI + ", policy BN2"
    needs = ("update_norm",)
    communication = "nothing (the paper's: all clients compute, and send a number each)"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._norms = LastNorms()

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        best = lowest(-self._norms.worth(view), self.cohort_size(view), rng)
        return Cohort(view.client[np.sort(best)])

    def observe(self, reports: Reports) -> None:
        self._norms.learn(reports, reports.measured.get("update_norm", np.full(reports.client.size, np.nan)))


@dataclass(eq=False, repr=False)
class BcBn2(Bn2):
    """Among the candidates of the best channels take the m whose last updates have the greatest norms: BC-BN2.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    channels : int >= 1 or None
        Number of candidates with the best channels (the paper's K_c), at least m; None for 2 m, a choice of fedsim.
    state : ``"now"`` or ``"mean"``
        Channels in the present fading as in the paper, or means of the last reports.

    Notes
    -----
    Norms and their age are as in `Bn2`; without radio all channels are equal, and the first choice is a draw. With the
    mean channels the clients of the first choice are always the same ones: if they never deliver, no round has an
    update.
    """

    paper = AMIRI + ", policy BC-BN2"
    communication = "sounding signals of all candidates (the paper's: also, the best channels' clients compute)"

    channels: Count | None = None
    state: State = "now"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state == "mean":
            self.may_stall = "the clients of the best mean channels are always the same ones"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        wide = min(max(2 * size if self.channels is None else self.channels, size), view.client.size)
        best = lowest(-known_snr_hz(view, self.state), wide, rng)
        among = best[lowest(-self._norms.worth(view)[best], size, rng)]
        return Cohort(view.client[np.sort(among)])


@dataclass(eq=False, repr=False)
class Bn2C(CohortSelector):
    """Take the m candidates of the greatest norms of updates that are compressed to what their channels carry: BN2-C.

    If m clients share the band equally, client k can send ``R_k = upload_s (B / m) log2(1 + m snr_hz / B)`` bits. Its
    update is compressed to them: only the q greatest or only the q smallest elements are sent, all with their mean, and
    q is the greatest number for which ``log2 C(d, q) + 33`` bits are enough (d elements, 32 bits for the mean and one
    for its sign). The norm of that is compared (`SparseNorms`).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    bandwidth_hz : float > 0
        B; 10 MHz by default, a carrier of LTE.
    upload_s : float > 0
        Time of an upload.
    state : ``"now"`` or ``"mean"``
        Channels in the present fading as in the paper, or means of the last reports.

    Notes
    -----
    As in `Bn2` the update is a client's last delivered one. The compression is the digital scheme of Amiri and Gunduz,
    Machine Learning at the Wireless Edge, IEEE Transactions on Signal Processing 2020; it serves the comparison alone,
    and what clients send is what the scenario says. Without radio every channel carries the whole update's scheme, q =
    d / 2. q is rounded down to four steps per factor of two.
    """

    paper = AMIRI + ", policy BN2-C"
    needs = ("update",)
    communication = (
        "sounding signals of all candidates (the paper's: also, all clients compute, and send a number each)"
    )

    bandwidth_hz: Above0[Hertz] = 10e6
    upload_s: Above0[Seconds] = 1.0
    state: State = "now"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole, self._sparse = LastNorms(), SparseNorms()

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        best = lowest(-self.worth(view, size), size, rng)
        return Cohort(view.client[np.sort(best)])

    def observe(self, reports: Reports) -> None:
        update = reports.measured.get("update", np.zeros(0))
        if update.ndim != 2:
            # A run about timing only has no updates.
            self._whole.learn(reports, np.full(reports.client.size, np.nan))
            return
        norm = np.linalg.norm(update.astype(np.float64), axis=1)
        self._whole.learn(reports, norm)
        for one, values, known in zip(reports.client.tolist(), update, np.isfinite(norm), strict=True):
            if known and values.size:
                self._sparse.learn(one, values)

    def worth(self, view: RoundView, size: int) -> FloatArray:
        """Return the compressed norms of candidates of whom ``size`` share the band, shape (n,)."""
        worth = self._whole.worth(view)
        share_hz = self.bandwidth_hz / max(size, 1)
        bits = np.full(view.client.size, np.inf)
        if view.snr_hz is not None:
            bits = self.upload_s * share_hz * np.log2(1.0 + known_snr_hz(view, self.state) / share_hz)
        return np.asarray(worth * self._sparse.share(view.client, bits))
