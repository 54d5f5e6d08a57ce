"""Laws of factors with mean 1: the time of a device, or of one round, over the mean time.

Each law is given by its quantile function, so that one uniform number makes one factor. The option `heterogeneity`
widens or narrows a law at the same mean: 1 leaves it as it is, 0 makes all factors 1.
"""

from functools import cached_property
from typing import Annotated, Final, Protocol

import numpy as np
from pydantic import Field, PositiveFloat

from fedsim.answers import Contract, Flag, Numbers, same_shape
from fedsim.arrays import FloatArray, normal_quantile
from fedsim.per_client import Values
from fedsim.registry import Component, Registry

HETEROGENEITY_LAWS: Final = Registry(
    "spread law",
    "fedsim.spreads",
    ("factor", "allows"),
    {
        "fixed": "fedsim.devices.heterogeneity:Fixed",
        "log-normal": "fedsim.devices.heterogeneity:LogNormal",
        "shifted-exponential": "fedsim.devices.heterogeneity:ShiftedExponential",
        "stragglers": "fedsim.devices.heterogeneity:Stragglers",
        "empirical": "fedsim.devices.heterogeneity:Empirical",
    },
)

_LARGEST_SIGMA: Final = 10.0


class HeterogeneityLaw(Protocol):
    """A law of factors with mean 1."""

    def factor(self, u: FloatArray, heterogeneity: float = 1.0) -> FloatArray:
        """Return the quantile of the law at each level, > 0, shape (n,); the law has mean 1.

        Parameters
        ----------
        u : levels in (0, 1), shape (n,)
        heterogeneity : multiple of the law's own spread, >= 0
        """
        ...

    def allows(self, heterogeneity: float) -> bool:
        """Return whether the law exists at this multiple of its own spread, with mean 1."""
        ...


HETEROGENEITY_LAW: Final = Contract(
    "spread law", HeterogeneityLaw, {"factor": Numbers(same_shape("u"), least=0), "allows": Flag()}
)


class Fixed(Component):
    """Always 1."""

    def factor(self, u: FloatArray, heterogeneity: float = 1.0) -> FloatArray:
        return np.ones_like(u)

    def allows(self, heterogeneity: float) -> bool:
        return True


class LogNormal(Component):
    """A log-normal factor; `heterogeneity` multiplies `sigma`.

    Attributes
    ----------
    sigma : standard deviation of the logarithm
    """

    sigma: Annotated[float, Field(ge=0, le=_LARGEST_SIGMA)]

    def factor(self, u: FloatArray, heterogeneity: float = 1.0) -> FloatArray:
        sigma = heterogeneity * self.sigma
        return np.exp(sigma * normal_quantile(u) - sigma**2 / 2)

    def allows(self, heterogeneity: float) -> bool:
        """Return whether the resulting sigma is at most 10, far beyond any use and far from overflow."""
        return heterogeneity * self.sigma <= _LARGEST_SIGMA


class ShiftedExponential(Component):
    """A least factor plus an exponential part, the straggler model of coded computing.

    Lee, Lam, Pedarsani, Papailiopoulos and Ramchandran, "Speeding up distributed machine learning using codes",
    IEEE Trans. Inf. Theory 64(3), 2018. The largest of n such factors has the mean ``shift + (1 - shift) H_n``
    with the harmonic number H_n. `heterogeneity` multiplies the exponential part, ``1 - shift``.

    Attributes
    ----------
    shift : least factor, from 0 to 1
    """

    shift: Annotated[float, Field(ge=0, le=1)]

    def factor(self, u: FloatArray, heterogeneity: float = 1.0) -> FloatArray:
        exponential = heterogeneity * (1.0 - self.shift)
        return np.asarray(1.0 - exponential - exponential * np.log1p(-u))

    def allows(self, heterogeneity: float) -> bool:
        return heterogeneity * (1.0 - self.shift) <= 1.0


class Stragglers(Component):
    """A share of slow devices and one speed for all others: two factors whose mean is 1.

    `heterogeneity` multiplies the distance of both factors from 1.

    Attributes
    ----------
    share : probability of being a straggler
    times_slower : a straggler's factor over that of the others, at heterogeneity 1
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    times_slower: Annotated[float, Field(ge=1)]

    def factor(self, u: FloatArray, heterogeneity: float = 1.0) -> FloatArray:
        """Return ``1 + h (v / mean - 1)`` with v = times_slower for u below the share and 1 above."""
        value = np.where(u < self.share, self.times_slower, 1.0) / self._mean
        return np.asarray(1.0 + heterogeneity * (value - 1.0))

    def allows(self, heterogeneity: float) -> bool:
        return heterogeneity * (1.0 - 1.0 / self._mean) < 1.0

    @property
    def _mean(self) -> float:
        return 1.0 + self.share * (self.times_slower - 1.0)


class Empirical(Component):
    """Measured factors, each equally likely; `heterogeneity` multiplies their distance from 1.

    Attributes
    ----------
    values : in any order, above 0; they are divided by their mean
    """

    values: Annotated[tuple[PositiveFloat, ...], Field(min_length=1, strict=False)]

    def factor(self, u: FloatArray, heterogeneity: Values = 1.0) -> FloatArray:
        """Return ``1 + h (v - 1)`` with v the least value whose share at or below it is at least u."""
        number = self._sorted.size
        found = self._sorted[np.ceil(u * number).astype(np.int64) - 1]
        return np.asarray(1.0 + heterogeneity * (found - 1.0))

    def allows(self, heterogeneity: float) -> bool:
        return bool(heterogeneity * (1.0 - self._sorted[0]) < 1.0)

    @cached_property
    def _sorted(self) -> FloatArray:
        values = np.sort(np.array(self.values, dtype=np.float64))
        return np.asarray(values / values.mean())


def mean_slowdown(load: Values) -> Values:
    """Return the mean of `slowdown` for a mean load below 1/2, ``(1 - load) / (1 - 2 load)``.

    >>> mean_slowdown(0.25)
    1.5
    """
    return (1.0 - load) / (1.0 - 2.0 * load)


def slowdown(u: FloatArray, load: Values) -> FloatArray:
    """Return the slowdown of a device by background work, >= 1: 1 over its idle share of time.

    The idle share is Beta(b, 1) with ``b = (1 - load) / load``, so that its mean is ``1 - load``; the slowdown is
    then a Pareto law from 1 on, with the exponent b.
    """
    if isinstance(load, float) and load == 0:
        return np.ones_like(u)
    return np.asarray(np.exp(-np.log(u) * (load / (1.0 - load))))
