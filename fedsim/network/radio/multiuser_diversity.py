"""Multiuser diversity: the gain of a scheduler that serves the client whose fading is at its best."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.units import db_to_linear, linear_to_db

_STEP: Final = 1 / 128
_REACH: Final = 3.0
_EXACT_USERS: Final = 8
_USERS_PER_STEP: Final = 1.2
_LEVELS: Final = 32
_PLACES: Final = 100  # up to 1e8 clients


def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes in (0, 1) and weights for integrals whose integrand may be singular at the ends.

    The double exponential rule of Takahasi and Mori (Publ. RIMS 9, 1974).
    """
    t = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    u = 1.0 / (1.0 + np.exp(-math.pi * np.sinh(t)))
    return u, math.pi * np.cosh(t) * u * (1.0 - u) * _STEP


def efficiency_of_best(rate: RateLaw, fading: Fading, snr: FloatArray, users: int) -> FloatArray:
    """Return the mean efficiency in bit/s/Hz in the blocks in which a user's gain is the best of all, ``E[e(snr M)]``.

    M is the largest of as many independent gains. It errs by less than 1e-8 of the value for Shannon's formula
    and by less than 0.2 % of the highest efficiency for a table of schemes, whose steps fall between the nodes.

    Parameters
    ----------
    rate : law of the spectral efficiency
    fading : law of the gains, alike for all users
    snr : mean linear SNR > 0 of the user, shape (n,)
    users : number of clients, >= 1
    """
    u, weight = _nodes()
    best = fading.gain_quantile(np.minimum(u ** (1.0 / users), 1.0 - 2.0**-53))
    level = np.asarray(snr)[:, None]
    # Few levels at a time stay in a core's cache, which is four times as fast.
    return np.concatenate(
        [rate.efficiency(level[low : low + _LEVELS] * best) @ weight for low in range(0, len(level), _LEVELS)]
    )


class DiversityGain:
    """The factor by which a hertz carries more for a client served when its gain is the best of all against its mean.

    Which of n users that is, is equally likely whatever their mean SNRs (the fading laws are alike), so each has the
    n-th part of the time and ``E[e(snr M)] / E[e(snr G)]`` times its own mean efficiency while it is served. Under
    Rayleigh fading and at low SNR, where rates are in proportion to gains, that is the harmonic number
    ``sum(1/k, k = 1..n)`` (Borst, "User-level performance of channel-aware scheduling algorithms in wireless data
    networks", IEEE/ACM Trans. Networking 13(3), 2005); at high SNR it is less, because the logarithm flattens peaks;
    where a weak user is mostly in outage it is more.

    Parameters
    ----------
    rate, fading : of the cell
    snr : mean linear SNRs of the cell's clients, shape (K,)

    Notes
    -----
    Computed at SNRs half a decibel apart and for 1 to 8 and then 1.2 times as many users each, and linear in between
    (in the logarithm of their number). A user counts with the nearest of the SNRs a twentieth of a decibel apart.
    """

    def __init__(self, rate: RateLaw, fading: Fading, snr: FloatArray) -> None:
        level_db = linear_to_db(snr[snr > 0]) if np.any(snr > 0) else np.zeros(1)
        low, high = math.floor(level_db.min()), math.ceil(level_db.max())
        self._rate, self._fading = rate, fading
        self._level_db = np.linspace(low, high, 2 * (high - low) + 1)
        self._fine_db = np.linspace(low, high, 20 * (high - low) + 1)
        self._alone = efficiency_of_best(rate, fading, db_to_linear(self._level_db), 1)
        self._edges = _middles(np.interp(self._fine_db, self._level_db, self._alone)).tolist()
        self._curves, self._computed = np.zeros((_PLACES, self._fine_db.size)), set[int]()
        self._windows: dict[tuple[int, int], Window] = {}
        self.place = cache(_place)
        """Return the place of a number of clients, and the weight of the next place beside it."""

    def kind(self, efficiency: float) -> int:
        """Return the kind, a column of `curves`, of a client of this mean efficiency in bit/s/Hz."""
        return bisect_left(self._edges, efficiency)

    def curves(self, first: int, end: int) -> FloatArray:
        """Return the gain of every kind for the numbers of clients at some places, shape (end - first, kinds)."""
        for place in range(first, end):
            if place not in self._computed:
                self._computed.add(place)
                best = efficiency_of_best(self._rate, self._fading, db_to_linear(self._level_db), _users(place))
                gain = np.ones_like(best)
                np.divide(best, self._alone, out=gain, where=self._alone > 0)
                self._curves[place] = np.interp(self._fine_db, self._level_db, gain)
        return self._curves[first:end]

    def window(self, first: int, end: int) -> "Window":
        """Return bounds of the gains for the numbers of clients from one place to another, with both."""
        if (first, end) not in self._windows:
            users = [_users(place) for place in range(first, end + 1)]
            self._windows[first, end] = Window.over(users, self.curves(first, end + 1))
        return self._windows[first, end]


class Window(NamedTuple):
    """Bounds of the gains for some numbers of clients side by side.

    Attributes
    ----------
    ceiling : largest gain of every kind, shape (kinds,)
    least, most : numbers of clients between which each client more lets the gain over the number fall or stay, for
        every kind; `inf` and 0 where that does not hold
    """

    ceiling: FloatArray
    least: float
    most: float

    @classmethod
    def over(cls, users: Sequence[int], curves: FloatArray) -> "Window":
        """Return the bounds for computed numbers of clients.

        In between, gains are linear in the logarithm of the number, so that their quotient falls where they rise by no
        more than the logarithm of the ratio of the numbers. Numbers side by side are compared as they are.

        Parameters
        ----------
        users : rising, shape (n,)
        curves : gains of every kind, shape (n, kinds)
        """
        number = np.array(users, dtype=np.float64)
        few, many = number[:-1], number[1:]
        rise = np.where(many == few + 1, 1 / few, np.log(many / few))
        falls = np.all(curves[1:] <= curves[:-1] * (1 + rise)[:, None])
        least, most = (users[0], users[-1]) if falls else (math.inf, 0.0)
        return cls(curves.max(axis=0), least, most)


def _users(place: int) -> int:
    """Return the number of clients at a place."""
    return place + 1 if place < _EXACT_USERS else round(_EXACT_USERS * _USERS_PER_STEP ** (place + 1 - _EXACT_USERS))


def _place(users: int) -> tuple[int, float]:
    """Return the last place with at most as many clients, and the weight of the next place's gains beside its own."""
    if users < _EXACT_USERS:
        return users - 1, 0.0
    step = math.floor(math.log(users / _EXACT_USERS, _USERS_PER_STEP))
    place = _EXACT_USERS - 1 + step
    fewer, more = _users(place), _users(place + 1)
    return place, math.log(users / fewer) / math.log(more / fewer)


def _middles(rising: FloatArray) -> FloatArray:
    return (rising[1:] + rising[:-1]) / 2
