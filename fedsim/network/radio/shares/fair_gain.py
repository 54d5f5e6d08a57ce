"""Gains of a proportionally fair scheduler: the client with the largest present rate over its own average rate."""

import math
from collections import OrderedDict
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.shares.multiuser_diversity import GainTable, fewer_users
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.units import db_to_linear, linear_to_db

_CLIENTS: Final = 20
_NODES: Final = 128
_TURNS: Final = 30
_CLOSE: Final = 1e-4
"""Distance of the mean logarithm of the rates from its largest value that is close enough."""
_LINE_STEPS: Final = 3
_LEAST: Final = 1e-300
_UNDERFLOW: Final = -746.0
"""Natural logarithm below which a float64 is 0."""


class FairGain(GainTable):
    """The gain of a client among n - 1 others drawn from the cell's clients, under a scheduler with a long memory.

    The average rates T solve ``T = E[e 1{e / T is the largest of n}]``: with them the sum of the logarithms of the
    rates is the largest possible. With H, the distribution function of ``e / T`` over the cell's clients and their
    fading, a client is served at its efficiency e with probability ``H(e / T)^(n - 1)``; of equal ones each is as
    likely. Unlike under the rule of the largest relative SNR, clients at low SNR have less of the time, and better
    blocks.

    The cell's clients count as 20 quantiles of their SNRs, and fading as 128 of the gain. At 0 to 20 dB rates are those
    of a scheduler that looks at every block to 2 %. Where hundreds of clients have the highest efficiency in most
    blocks, they err by up to 3 %.
    """

    def __init__(self, rate: RateLaw, fading: Fading, snr: FloatArray) -> None:
        super().__init__(rate, fading, snr)
        alive_db = linear_to_db(snr[snr > 0]) if np.any(snr > 0) else np.zeros(1)
        quantiles_db = np.quantile(alive_db, (np.arange(_CLIENTS) + 0.5) / _CLIENTS)
        self._client_db, alike = np.unique(quantiles_db, return_counts=True)
        t = (np.arange(_NODES) + 0.5) / _NODES
        gain = fading.gain_quantile(1.0 - (1.0 - t) ** 3)
        self._weight = 3.0 * (1.0 - t) ** 2 / _NODES
        self._weight /= self._weight.sum()
        self._efficiency = rate.efficiency(db_to_linear(self._client_db)[:, None] * gain)
        self._mass = (alike[:, None] / _CLIENTS * self._weight).ravel()
        self._mean = np.maximum(self._efficiency @ self._weight, _LEAST)
        # Clients that all have the highest efficiency are alike; a step would treat them differently.
        _, self._group, self._size = np.unique(np.round(np.log(self._mean), 2), return_inverse=True, return_counts=True)
        self._known = _known_of(self._efficiency.tobytes() + self._mass.tobytes())
        self._known.setdefault(1, self._mean)

    def efficiency(self, users: int) -> FloatArray:
        gain = users * self._averages(users) / self._mean
        return np.asarray(self.alone * np.exp(np.interp(self.level_db, self._client_db, np.log(gain))))

    def _averages(self, users: int) -> FloatArray:
        """Return the average rate of the cell's clients in a hertz.

        Found by the method of Frank and Wolfe for the sum of the logarithms, which is concave in the rates: serving the
        largest ratios is the best direction from the present averages, and its mean gain in ratio bounds what is still
        to gain.
        """
        if users not in self._known:
            fewer = fewer_users(users)
            average = self._averages(fewer) * (fewer / users)
            for _ in range(_TURNS):
                gain = self._alike(self._served(users, average)) / average - 1.0
                if np.add.reduce(gain) / gain.size < _CLOSE:
                    break
                step = 0.0
                for _ in range(_LINE_STEPS):
                    slope = gain / (1.0 + step * gain)
                    step = min(1.0, step + float(np.add.reduce(slope) / (slope @ slope)))
                average = average * (1.0 + step * gain)
            self._known[users] = average
        return self._known[users]

    def _alike(self, rates: FloatArray) -> FloatArray:
        """Return the mean rate of the clients that are alike for each of them."""
        return np.asarray((np.bincount(self._group, rates) / self._size)[self._group])

    def _served(self, users: int, average: FloatArray) -> FloatArray:
        """Return the rates of clients that are served when their ratio to some averages is the largest of n."""
        ratio = (self._efficiency / average[:, None]).ravel()
        # Ratios rise with the gain of each client: a sort that merges rows is several times as fast as another one.
        order = np.argsort(ratio, kind="stable")
        ratio = ratio[order]
        # Where each step of equal ratios begins in the order, and the mass below it; one place more for the end of all.
        edge = np.empty(order.size + 1, dtype=bool)
        edge[0] = edge[-1] = True
        np.not_equal(ratio[1:], ratio[:-1], out=edge[1:-1])
        (begins,) = edge.nonzero()
        mass = np.zeros(edge.size)
        self._mass.take(order, out=mass[1:], mode="clip")  # unlike "raise" without a buffer
        np.add.accumulate(mass, out=mass)
        below = np.minimum(mass[begins], 1.0)
        size, among = below[1:] - below[:-1], powers(below, users)
        # Of n ratios drawn from these steps, the chance that one on a step is chosen, those on one step alike.
        chosen = among[1:] - among[:-1]
        size *= users
        np.divide(chosen, size, out=chosen, where=size > 0)  # an empty step is chosen by none
        of_each = np.empty(order.size)
        of_each[order] = chosen.repeat(begins[1:] - begins[:-1])
        served = (self._efficiency * of_each.reshape(self._efficiency.shape)) @ self._weight
        return np.maximum(served, _LEAST)


_KNOWN: Final[OrderedDict[bytes, dict[int, FloatArray]]] = OrderedDict()
_CELLS: Final = 32


def _known_of(cell: bytes) -> dict[int, FloatArray]:
    """Return the averages of a cell that are known, by numbers of clients; all runs of a process share them."""
    known = _KNOWN[cell] = _KNOWN.pop(cell, {})
    if len(_KNOWN) > _CELLS:
        _KNOWN.popitem(last=False)
    return known


def powers(rising: FloatArray, exponent: int) -> FloatArray:
    """Return powers of rising numbers from 0 to 1, without computing those that are 0: an underflow takes long."""
    powers = np.zeros(rising.size)
    first = rising.searchsorted(math.exp(_UNDERFLOW / exponent))
    powers[first:] = rising[first:] ** exponent
    return powers
