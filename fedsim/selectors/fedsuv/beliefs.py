"""FedSUV's two models of a crowd: validity and utility of each client, as intervals."""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.fedsuv.features import Basis, KernelName, Scaler, Scaling, median_distance
from fedsim.selectors.fedsuv.rectangles import Bounds
from fedsim.selectors.fedsuv.utility import UtilityProcess, likeliest
from fedsim.selectors.fedsuv.validity import DisjointBandit, LinearBandit

Undelivered = Literal["zero", "mean", "nothing"]
Fit = Literal["likelihood", "none"]

_TOLERANCE: Final = 1e-6
"""Variance of a remainder (of the prior's 1) below which there is no further basis point."""
_LARGEST: Final = 2**24
"""Largest number of coordinates of a crowd, 128 MiB."""

_FIRST_FIT: Final = 16
"""Number of observations of the first fit of the kernel."""


@dataclass(frozen=True)
class Settings:
    """Settings of the two models that the paper leaves open; see `FedSuv`."""

    delta: float
    ridge: float
    scaling: Scaling
    kernel: KernelName
    length_scale: float | None
    noise: float
    fit: Fit
    basis: int
    utility_scale: float | None
    undelivered: Undelivered


class Beliefs:
    """The linear bandit and the Gaussian process over one crowd.

    Clients become known when they first declare features. Scales, length scale and basis are computed from the known
    clients. They are computed again, with both models from their pooled observations, when the number of known clients
    has doubled.
    """

    def __init__(self, clients: int, columns: int, settings: Settings) -> None:
        self.settings, self.clients, self.columns = settings, clients, columns
        self.known = np.zeros(clients, dtype=np.bool_)
        self._tries = np.zeros(clients)
        self._deliveries = np.zeros(clients)
        self._utilities = 0
        self._square_sum = 0.0
        self._fitted = 0
        self._features = np.zeros((clients, columns))
        self._disjoint = DisjointBandit(clients, settings.ridge, settings.delta)
        self._length_scale, self._noise = settings.length_scale, settings.noise
        self._next_fit: float = _FIRST_FIT if settings.fit == "likelihood" and columns else math.inf
        self._process = UtilityProcess(clients, 0, self._noise)

    def meet(self, client: IntArray, features: FloatArray) -> None:
        """Add candidates that are not known yet."""
        if features.shape[1] != self.columns:
            raise SelectorError(f"FedSuv: features of shape {features.shape!r} after {self.columns} columns before")
        fresh = ~self.known[client]
        new = client[fresh]
        if not new.size:
            return
        self.known[new] = True
        if self.columns == 0:
            self._process.place(new, np.zeros((new.size, 0)), np.ones(new.size))
            return
        if not np.all(np.isfinite(features[fresh])):
            raise SelectorError("FedSuv: features must be finite numbers")
        self._features[new] = features[fresh]
        if np.count_nonzero(self.known) >= 2 * self._fitted:
            self._fit()
        else:
            self._place(new)

    def observe(self, client: IntArray, delivered: BoolArray, utility: FloatArray) -> None:
        """Add observations to both models; arrays have shape (n,), and a client may occur more than once."""
        if self.columns == 0:
            self._disjoint.observe(client, delivered)
        else:
            self._linear.observe(self._rows[client], np.ones(client.size), delivered.astype(np.float64))
            np.add.at(self._tries, client, 1.0)
            np.add.at(self._deliveries, client, delivered)
        heard = np.isfinite(utility)
        self._utilities += int(np.count_nonzero(heard))
        self._square_sum += float(np.sum(utility[heard] ** 2))
        if self.settings.undelivered != "nothing":
            mean = float(utility[heard].mean()) if heard.any() and self.settings.undelivered == "mean" else 0.0
            utility = np.where(delivered, utility, mean)
            heard = np.isfinite(utility)
        self._process.observe(client[heard], utility[heard])
        if self._utilities and self._process.count.sum() >= self._next_fit:
            self._fit_kernel()

    def bounds(self, client: IntArray, round_: int) -> Bounds:
        """Return Q_t (6) of known clients, the intervals (4) and (5), with t the round and |X| the crowd's size."""
        if self.columns == 0:
            validity_low, validity_high = self._disjoint.interval(client)
        else:
            validity_low, validity_high = self._linear.interval(self._rows[client])
        mean, deviation = self._process.posterior(client)
        width = self._width(round_) * deviation if self._heard() else np.full(client.size, np.inf)
        return Bounds(validity_low, validity_high, mean - width, mean + width)

    def batch(self, client: IntArray, high: FloatArray, first: int, size: int, round_: int) -> IntArray:
        """Return the positions of a batch in which each client is chosen as if those before had been observed.

        The rule of GP-BUCB (Desautels, Krause and Burdick, "Parallelizing exploration-exploitation tradeoffs in
        Gaussian process bandit optimization", JMLR 2014): a hallucinated observation at the posterior mean changes no
        mean and decreases the deviations of its client and of similar ones; their upper bounds fall by the decrease.
        """
        width = self._width(round_) if self._heard() else 0.0
        _, deviation = self._process.posterior(client)
        variance, chosen = deviation**2, [first]
        rows = np.zeros((size, client.size))
        for i in range(size - 1):
            one = chosen[-1]
            row = self._process.covariances(int(client[one]), client) - rows[:i, one] @ rows[:i]
            rows[i] = row / math.sqrt(max(row[one], 0.0) + self._process.noise**2)
            variance = np.maximum(variance - rows[i] ** 2, 0.0)
            bound = high - width * (deviation - np.sqrt(variance))
            bound[chosen] = -np.inf
            chosen.append(int(np.argmax(bound)))
        return np.array(chosen)

    def _heard(self) -> bool:
        """Return whether the prior's deviation is known."""
        return self.settings.utility_scale is not None or self._utilities > 0

    def _width(self, round_: int) -> float:
        """Return half the width of (5) over a deviation in units of the prior's."""
        beta = 2.0 * math.log(self.clients * math.pi**2 * round_**2 / (3.0 * self.settings.delta))
        return math.sqrt(beta) * self.utility_scale()

    def utility_scale(self) -> float:
        """Return the standard deviation of the prior: as set, or the root mean square of the utilities so far."""
        if self.settings.utility_scale is not None:
            return self.settings.utility_scale
        return math.sqrt(self._square_sum / self._utilities) or 1.0 if self._utilities else 1.0

    def _fit_kernel(self) -> None:
        """Fit length scale and noise to all utilities so far, in units of the prior's deviation."""
        process, unit = self._process, self.utility_scale()
        seen = np.flatnonzero(process.count)
        self._next_fit = 2 * float(process.count.sum())
        self._length_scale, self._noise = likeliest(
            self._scaler.scale(self._features[seen]),
            self.settings.kernel,
            process.count[seen],
            process.total[seen] / unit,
            process.square[seen] / unit**2,
        )
        self._fit()

    def _fit(self) -> None:
        """Compute scales, basis and both models from all known clients."""
        settings, known = self.settings, np.flatnonzero(self.known)
        self._fitted = known.size
        self._scaler = Scaler(self._features[known], settings.scaling)
        scaled = self._scaler.scale(self._features[known])
        length_scale = median_distance(scaled) if self._length_scale is None else self._length_scale
        most = min(settings.basis, _LARGEST // self.clients)
        self._basis = Basis(scaled, settings.kernel, length_scale, most, _TOLERANCE)
        rows = self._scaler.regressors(scaled)
        self._rows = np.zeros((self.clients, rows.shape[1]))
        self._linear = LinearBandit(rows.shape[1], settings.ridge, settings.delta)
        self._linear.observe(rows, self._tries[known], self._deliveries[known])
        before = self._process
        self._process = UtilityProcess(self.clients, self._basis.size, self._noise)
        self._place(known)
        if before.count.any():
            self._process.observe_pooled(before.count, before.total, before.square)

    def _place(self, client: IntArray) -> None:
        scaled = self._scaler.scale(self._features[client])
        self._rows[client] = self._scaler.regressors(scaled)
        self._process.place(client, *self._basis.place(scaled))
