"""Gains by the number of clients: of a scheduler that serves a client in its best blocks, and of power in a share."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.radio.capacity import double_exponential
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.units import db_to_linear, linear_to_db

_EXACT_USERS: Final = 8
_USERS_PER_STEP: Final = 1.2
_LEVELS: Final = 32
_NO_LIMIT: Final = 1e12
"""Density of a client's power beyond which the smallest share of a band has all of it."""
_SNR_STEP_DB: Final = 0.05
_LIMIT_STEP_DB: Final = 0.2
_CLOSE: Final = 1e-12
_REMEMBERED: Final = 2**10


def efficiency_of_best(rate: RateLaw, fading: Fading, snr: FloatArray, users: int) -> FloatArray:
    """Return the mean efficiency in bit/s/Hz in the blocks in which a user's gain is the best of all, ``E[e(snr M)]``.

    M is the largest of as many independent gains. The mean errs by less than 1e-8 of the value for Shannon's formula.
    It errs by less than 2e-5 bit/s/Hz below a ceiling of 7.4, whose edge falls between the nodes, and by less than 0.2
    % of the highest efficiency for a table of schemes, whose steps do.
    """
    u, weight = double_exponential(1 / 128, 3.0)
    best = fading.gain_quantile(np.minimum(u ** (1.0 / users), 1.0 - 2.0**-53))
    level = np.asarray(snr)[:, None]
    # Few levels at a time stay in a core's cache, which is four times as fast.
    return np.concatenate(
        [rate.efficiency(level[low : low + _LEVELS] * best) @ weight for low in range(0, len(level), _LEVELS)]
    )


class GainTable(ABC):
    """The factor by which a hertz carries more for a client among n clients than on average for the client alone."""

    def __init__(self, rate: RateLaw, fading: Fading, snr: FloatArray) -> None:
        level_db = linear_to_db(snr[snr > 0]) if np.any(snr > 0) else np.zeros(1)
        low, high = math.floor(level_db.min()), math.ceil(level_db.max())
        self.rate, self.fading = rate, fading
        self.level_db = np.linspace(low, high, 2 * (high - low) + 1)
        self._fine_db = np.linspace(low, high, 20 * (high - low) + 1)
        self.alone = efficiency_of_best(rate, fading, db_to_linear(self.level_db), 1)
        self.kind = partial(bisect_left, _middles(np.interp(self._fine_db, self.level_db, self.alone)).tolist())
        """Return the kind, a place in `among`, of a client of a mean efficiency in bit/s/Hz."""
        self._curve, self.among = cache(self._computed), lru_cache(maxsize=_REMEMBERED)(self._among)
        """Return the gain of every kind among a number of clients, linear between two for which it is computed."""

    @abstractmethod
    def efficiency(self, users: int) -> FloatArray:
        """Return the mean efficiency in the hertz that a client has among n clients, at each of `level_db`."""

    def _among(self, users: int) -> FloatArray:
        place, share = _place(users)
        fewer, more = self._curve(place), self._curve(place + 1)
        return fewer + share * (more - fewer)

    def _computed(self, place: int) -> FloatArray:
        among = self.efficiency(_users(place))
        gain = np.ones_like(among)
        np.divide(among, self.alone, out=gain, where=self.alone > 0)
        return self.of_kinds(gain)

    def of_kinds(self, gain: FloatArray) -> FloatArray:
        """Return the gain of every kind from that at each of `level_db`."""
        return np.interp(self._fine_db, self.level_db, gain)


class DiversityGain(GainTable):
    """The gain of a client that is served when its own gain is the best of all against its mean.

    Which of n users that is, is equally likely whatever their mean SNRs (the fading laws are alike), so each has the
    n-th part of the time and ``E[e(snr M)] / E[e(snr G)]`` times its own mean efficiency while it is served. Under
    Rayleigh fading and at low SNR, where rates are in proportion to gains, that is the harmonic number
    ``sum(1/k, k = 1..n)`` (Borst, "User-level performance of channel-aware scheduling algorithms in wireless data
    networks", IEEE/ACM Trans. Networking 13(3), 2005); at high SNR it is less, because the logarithm flattens peaks;
    where a weak user is mostly in outage it is more.
    """

    def efficiency(self, users: int) -> FloatArray:
        return efficiency_of_best(self.rate, self.fading, db_to_linear(self.level_db), users)


class ShareGain(GainTable):
    """The gain of a client that has the n-th part of the band and more power in each of its hertz.

    Clients of about one SNR are a kind, which have one limit of the density of power, as where all have one power.
    """

    def __init__(self, rate: RateLaw, fading: Fading, snr: FloatArray, densest: FloatArray) -> None:
        super().__init__(rate, fading, snr)
        snr_db, limit_db = _in_order(snr, densest)
        limit = np.interp(self.level_db, snr_db, limit_db) if snr_db.size else np.zeros_like(self.level_db)
        self._densest = db_to_linear(limit)
        self.is_exact = bool(np.all(np.abs(np.interp(snr_db, self.level_db, limit) - limit_db) < _SNR_STEP_DB))
        """Whether all clients of about one SNR do have one limit."""

    def efficiency(self, users: int) -> FloatArray:
        density = np.minimum(float(users), self._densest)
        return efficiency_of_best(self.rate, self.fading, db_to_linear(self.level_db) * density, 1)


class ShareGainByLimit(GainTable):
    """The same where clients of one SNR have unlike limits, as phones and sensors have: those of about both are a kind.

    A mean efficiency stands for one client; where a rate law has steps, and fading none, for the best of some.
    """

    def __init__(self, rate: RateLaw, fading: Fading, snr: FloatArray, densest: FloatArray) -> None:
        super().__init__(rate, fading, snr)
        snr_db, limit_db = _in_order(snr, densest)
        cell = np.stack([np.rint(snr_db / _SNR_STEP_DB), np.rint(limit_db / _LIMIT_STEP_DB)])
        _, first, kind = np.unique(cell, axis=1, return_index=True, return_inverse=True)
        self.level_db, self._densest = snr_db[first], db_to_linear(limit_db[first])
        known = rate.mean_efficiency(db_to_linear(snr_db), fading)
        self.alone = known[first]
        self.kind = partial(_kind_of, (known * (1 - _CLOSE)).tolist(), kind.ravel().tolist())

    def efficiency(self, users: int) -> FloatArray:
        density = np.minimum(float(users), self._densest)
        return self.rate.mean_efficiency(db_to_linear(self.level_db) * density, self.fading)

    def of_kinds(self, gain: FloatArray) -> FloatArray:
        return gain


def share_gain(rate: RateLaw, fading: Fading, snr: FloatArray, densest: FloatArray) -> GainTable:
    by_snr = ShareGain(rate, fading, snr, densest)
    return by_snr if by_snr.is_exact else ShareGainByLimit(rate, fading, snr, densest)


def _in_order(snr: FloatArray, densest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return SNRs and limits of density in dB of the clients that have a link, in the order of SNRs."""
    client = np.flatnonzero(snr > 0)
    client = client[np.argsort(snr[client])]
    return linear_to_db(snr[client]), linear_to_db(np.minimum(densest[client], _NO_LIMIT))


def _users(place: int) -> int:
    return place + 1 if place < _EXACT_USERS else round(_EXACT_USERS * _USERS_PER_STEP ** (place + 1 - _EXACT_USERS))


def fewer_users(users: int) -> int:
    place, more = _place(users)
    return _users(place) if more > 0 else _users(place - 1)


def _place(users: int) -> tuple[int, float]:
    """Return the last place with at most as many clients, and the weight of the next place's gains beside its own."""
    if users < _EXACT_USERS:
        return users - 1, 0.0
    step = math.floor(math.log(users / _EXACT_USERS, _USERS_PER_STEP))
    place = _EXACT_USERS - 1 + step
    fewer, more = _users(place), _users(place + 1)
    return place, math.log(users / fewer) / math.log(more / fewer)


def _kind_of(known: Sequence[float], kind: Sequence[int], efficiency: float) -> int:
    return kind[max(0, bisect_right(known, efficiency) - 1)]


def _middles(rising: FloatArray) -> FloatArray:
    return (rising[1:] + rising[:-1]) / 2
