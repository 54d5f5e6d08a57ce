"""Latency laws: distributions of times without a physical model.

Each law gives its quantile function, so that one uniform number per (client, round) makes one latency, and
its mean in closed form. All times are finite and at least 0.
"""

import math
from functools import cached_property
from typing import Annotated, Final, Protocol

import numpy as np
from pydantic import Field

from fedsim.answers import Contract, Number, Numbers, same_shape
from fedsim.arrays import FloatArray, constant, normal_quantile
from fedsim.registry import Component, Registry
from fedsim.units import NonNegative, Positive, Seconds


class LatencyLaw(Protocol):
    """A distribution of times, all finite and at least 0.

    Examples
    --------
    >>> from fedsim import Component
    >>> class Uniform(Component):
    ...     longest_s: float
    ...     def quantile(self, u):
    ...         return self.longest_s * u
    ...     def mean_s(self):
    ...         return self.longest_s / 2
    >>> from fedsim.network import LatencyNetwork
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> network = LatencyNetwork(downlink="zero", uplink=Uniform(longest_s=3.0))
    >>> network.build(RunSetup.at(np.zeros((2, 2)), Streams(0))).expected_uplink_s(bits=1e6).tolist()
    [1.5, 1.5]
    """

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the distribution function in seconds, of the shape of u.

        Parameters
        ----------
        u : probabilities in (0, 1), any shape
        """
        ...

    def mean_s(self) -> float:
        """Return the mean in seconds, in closed form."""
        ...


LATENCY_LAW: Final = Contract(
    "latency law", LatencyLaw, {"quantile": Numbers(same_shape("u"), least=0), "mean_s": Number(least=0)}
)

LATENCY_LAWS = Registry(
    "latency law",
    "fedsim.latency_laws",
    ("quantile", "mean_s"),
    {
        "zero": "fedsim.network.distributions:Zero",
        "constant": "fedsim.network.distributions:Constant",
        "normal": "fedsim.network.distributions:Normal",
        "log-normal": "fedsim.network.distributions:LogNormal",
        "shifted-exponential": "fedsim.network.distributions:ShiftedExponential",
        "empirical": "fedsim.network.distributions:Empirical",
    },
)

# A log-normal factor's mean is exp(sigma^2 / 2): 10 is far beyond any use and still far from overflow.
Sigma = Annotated[float, Field(ge=0, le=10)]


def floored_normal_mean(centre: FloatArray, std: float, floor: float) -> FloatArray:
    """Return the mean of ``max(floor, X)`` with X normal, ``floor + std (z Phi + phi)``, z = (centre - floor) / std."""
    from scipy.special import ndtr

    if std == 0:
        return np.maximum(floor, centre)
    z = (centre - floor) / std
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return np.asarray(floor + std * (z * ndtr(z) + density))


class Zero(Component):
    """A time of 0."""

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.zeros_like(u)

    def mean_s(self) -> float:
        return 0.0


class Constant(Component):
    """A constant time.

    Attributes
    ----------
    value_s : in seconds, at least 0
    """

    value_s: NonNegative[Seconds]

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.full_like(u, self.value_s)

    def mean_s(self) -> float:
        return self.value_s


class Normal(Component):
    """A normal law with a floor: draws below the floor become the floor (a point mass, not a redraw).

    Attributes
    ----------
    centre_s : mean of the normal before the floor applies
    std_s : its standard deviation
    floor_s : least time

    Examples
    --------
    >>> law = Normal(centre_s=0.0, std_s=1.0)
    >>> law.quantile(np.array([0.2, 0.5, 0.8413])).round(3).tolist()
    [0.0, 0.0, 1.0]
    >>> round(law.mean_s(), 4)  # 1 / sqrt(2 pi)
    0.3989
    """

    centre_s: NonNegative[Seconds]
    std_s: NonNegative[Seconds]
    floor_s: NonNegative[Seconds] = 0.0

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.maximum(self.floor_s, self.centre_s + self.std_s * normal_quantile(u))

    def mean_s(self) -> float:
        return float(floored_normal_mean(np.array(self.centre_s), self.std_s, self.floor_s))


class LogNormal(Component):
    """A log-normal law.

    Attributes
    ----------
    median_s : median
    sigma : standard deviation of the logarithm

    Examples
    --------
    >>> law = LogNormal(median_s=2.0, sigma=0.5)
    >>> law.quantile(np.array([0.5])).tolist(), round(law.mean_s(), 3)  # 2 exp(0.125)
    ([2.0], 2.266)
    """

    median_s: NonNegative[Seconds]
    sigma: Sigma

    def quantile(self, u: FloatArray) -> FloatArray:
        median_s, sigma = self._constants
        drawn: FloatArray = median_s * np.exp(sigma * normal_quantile(u))
        return drawn

    @cached_property
    def _constants(self) -> tuple[FloatArray, FloatArray]:
        return constant(self.median_s), constant(self.sigma)

    def mean_s(self) -> float:
        return self.median_s * math.exp(self.sigma**2 / 2)


class ShiftedExponential(Component):
    """The sum of a least time and an exponential time.

    Attributes
    ----------
    shift_s : least time
    scale_s : mean of the exponential time

    Examples
    --------
    >>> law = ShiftedExponential(shift_s=1.0, scale_s=2.0)
    >>> law.quantile(np.array([0.5])).round(4).tolist(), law.mean_s()  # 1 + 2 ln 2
    ([2.3863], 3.0)
    """

    shift_s: NonNegative[Seconds]
    scale_s: Positive[Seconds]

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.shift_s - self.scale_s * np.log1p(-u))

    def mean_s(self) -> float:
        return self.shift_s + self.scale_s


class Empirical(Component):
    """Measured times, each equally likely.

    Attributes
    ----------
    values_s : the times in any order; a time given twice is twice as likely
    """

    values_s: Annotated[tuple[NonNegative[Seconds], ...], Field(min_length=1, strict=False)]

    @cached_property
    def _sorted_s(self) -> FloatArray:
        return np.sort(np.array(self.values_s, dtype=np.float64))

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the least value whose share of values at or below it is at least u."""
        number = self._sorted_s.size
        return self._sorted_s[np.ceil(u * number).astype(np.int64) - 1]

    def mean_s(self) -> float:
        return math.fsum(self.values_s) / len(self.values_s)
