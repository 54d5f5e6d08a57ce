"""Small-scale fading: the variation of a link's power gain from one coherence time to the next.

A law gives the quantile of the power gain (mean 1) and the mean spectral efficiency over it. Gains are constant
within a block of one coherence time and independent between blocks.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, special
from fedsim.network.radio.capacity import rayleigh_efficiency, spectral_efficiency
from fedsim.registry import Component, Registry
from fedsim.units import (
    HERTZ,
    LONGEST_S,
    METRES_PER_SECOND,
    SPEED_OF_LIGHT_M_PER_S,
    Bound,
    Decibels,
    Hertz,
    MetresPerSecond,
    Positive,
    Seconds,
)


def doppler_hz(speed_m_per_s: float, carrier_hz: float) -> float:
    """Return the greatest Doppler shift in Hz, ``v f / c``."""
    return speed_m_per_s * carrier_hz / SPEED_OF_LIGHT_M_PER_S


def coherence_time_s(speed_m_per_s: float, carrier_hz: float) -> float:
    """Return the coherence time in seconds, ``0.423 / f_D``, the rule of thumb for Clarke's model.

    It is the geometric mean of the time over which the correlation stays above one half, ``9 / (16 pi f_D)``, and of
    ``1 / f_D`` (T. S. Rappaport, "Wireless Communications", 2nd edition, equation 5.40.c).
    """
    return 0.423 / doppler_hz(speed_m_per_s, carrier_hz)


class BlockFading(Component):
    """A fading law whose gain changes from block to block.

    Attributes
    ----------
    coherence_s : float
        Length of a block. The default is that of Clarke's model for a pedestrian: 3 km/h at a carrier of 2 GHz give a
        Doppler frequency of 5.56 Hz.
    speed_m_per_s, carrier_hz : float or None
        Given together they set `coherence_s` to ``0.423 / f_D`` and take precedence over its own value.
    """

    coherence_s: Annotated[Positive[Seconds], Bound(1e-6, LONGEST_S)] = 0.076
    speed_m_per_s: Positive[MetresPerSecond] | None = None
    carrier_hz: Positive[Hertz] | None = None

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        speed: Any = options.get("speed_m_per_s")
        carrier: Any = options.get("carrier_hz")
        numbers = isinstance(speed, int | float) and isinstance(carrier, int | float) and min(speed, carrier) > 0
        # A number out of its bounds is refused by its own name.
        if numbers and METRES_PER_SECOND.admits(speed) and HERTZ.admits(carrier):
            return {**options, "coherence_s": coherence_time_s(speed, carrier)}
        return options

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.speed_m_per_s is None) != (self.carrier_hz is None):
            raise ValueError("speed_m_per_s and carrier_hz belong together; both must be set, or neither")
        return self


FADINGS = Registry(
    "fading",
    "fedsim.fadings",
    ("gain_quantile", "mean_spectral_efficiency"),
    {
        "none": "fedsim.network.radio.fading:NoFading",
        "rayleigh": "fedsim.network.radio.fading:Rayleigh",
        "rician": "fedsim.network.radio.fading:Rician",
        "nakagami": "fedsim.network.radio.fading:Nakagami",
        "sionna-tdl": "fedsim.network.radio.sionna.fading:SionnaTdl",
        "sionna-cdl": "fedsim.network.radio.sionna.fading:SionnaCdl",
    },
)

_ROWS: Final = 2**12


class NoFading(Component):
    """A constant gain of 1."""

    coherence_s: ClassVar[float] = math.inf

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        return np.ones_like(u)

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        return spectral_efficiency(snr)


class Rayleigh(BlockFading):
    """Many scattered paths and no line of sight: the power gain is exponential with mean 1."""

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        return -np.log1p(-u)

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        return rayleigh_efficiency(snr)


class Rician(BlockFading):
    """One path of constant strength among many scattered ones.

    The power gain times ``2 (1 + K)`` is chi-squared with 2 degrees of freedom and non-centrality ``2 K`` (S. O. Rice,
    1944; Simon and Alouini, "Digital Communication over Fading Channels", 2nd edition, section 2.2.1.3).

    Attributes
    ----------
    k_db : float
        Power of the constant path over that of all the others, the Rician K-factor in dB. The default is the mean of an
        indoor office with a line of sight, 3GPP TR 38.901, table 7.5-6.
    """

    k_db: Annotated[Decibels, Field(ge=-100, le=30)] = 7.0

    @property
    def k(self) -> float:
        return float(10 ** (self.k_db / 10))

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        """Return the inverse of the distribution function to a relative error of 1e-6.

        The logarithm of the gain is a cubic spline over ``ln(u / (1 - u))`` through 4,001 points of the distribution
        function; beyond 1e-12 from either end of u its last piece is continued.
        """
        return np.exp(_rician_spline(self.k)(np.log(u) - np.log1p(-u)))

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the mean of ``log2(1 + snr * gain)`` by quadrature, to a relative error of 1e-9."""
        k = self.k
        spread = 6.5 + math.sqrt(k)
        low = math.log(max(math.sqrt(k) - 6.5, 1e-9) ** 2 / (1 + k))
        step = min(0.25, 0.7 * math.sqrt(2 * k + 1) / (k + 1))
        return _efficiency(snr, lambda y: _rician_log_density(k, y), low, math.log(spread**2 / (1 + k)), step)


class Nakagami(BlockFading):
    """Milder (m > 1) or worse (m < 1) fading than Rayleigh's: the power gain is gamma with mean 1 and variance 1/m.

    M. Nakagami, "The m-distribution", 1960; Simon and Alouini, section 2.2.1.4.

    Attributes
    ----------
    m : float from 0.5 (one-sided Gaussian) over 1 (Rayleigh) up

    Examples
    --------
    >>> u = np.array([0.1, 0.5, 0.9])
    >>> bool(np.allclose(Nakagami(m=1.0).gain_quantile(u), Rayleigh().gain_quantile(u)))
    True
    >>> round(float(Nakagami(m=4.0).gain_quantile(np.arange(0.5, 1000) / 1000).var()), 2)  # 1 / m
    0.25
    """

    m: Annotated[float, Field(ge=0.5, le=1000)] = 2.0

    def gain_quantile(self, u: FloatArray) -> FloatArray:
        return np.asarray(special("gammaincinv")(self.m, u) / self.m)

    def mean_spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the mean of ``log2(1 + snr * gain)`` by quadrature, to a relative error of 1e-9."""
        m = self.m
        constant = m * math.log(m) - float(special("gammaln")(m))
        low = math.log(float(special("gammaincinv")(m, 1e-16)) / m)
        high = math.log((m + 40.0 + math.sqrt(80.0 * m)) / m)
        step = min(0.25, 0.7 / math.sqrt(m))
        return _efficiency(snr, lambda y: constant + m * y - m * np.exp(y), low, high, step)


def _efficiency(
    snr: FloatArray, log_density: Callable[[FloatArray], FloatArray], low: float, high: float, step: float
) -> FloatArray:
    """Return the mean of ``log2(1 + snr * e^y)`` over a density of y, the logarithm of the gain.

    The trapezoidal rule over the whole line converges exponentially for a function that is analytic around it
    (Trefethen and Weideman, SIAM Review 56(3), 2014); the density outside [low, high] is negligible.
    """
    y = np.arange(low, high + step, step)
    weight, gain = step * np.exp(log_density(y)), np.exp(y)
    return in_rows(snr, _ROWS, lambda part: (spectral_efficiency(part * gain) * weight).sum(axis=1))


def in_rows(snr: FloatArray, rows: int, mean: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return means of the shape of snr, computed for a number of SNRs at a time, which are given as a column."""
    flat = np.asarray(snr, dtype=np.float64).ravel()
    found = np.empty(flat.size)
    for first in range(0, flat.size, rows):
        found[first : first + rows] = mean(flat[first : first + rows, None])
    return found.reshape(np.shape(snr))


def _rician_log_density(k: float, y: FloatArray) -> FloatArray:
    amplitude = np.sqrt((1 + k) * np.exp(y))
    density: FloatArray = (
        math.log1p(k) + y - (amplitude - math.sqrt(k)) ** 2 + np.log(special("i0e")(2 * math.sqrt(k) * amplitude))
    )
    return density


@lru_cache(maxsize=32)
def _rician_spline(k: float) -> Callable[[FloatArray], FloatArray]:
    from scipy.interpolate import CubicSpline
    from scipy.stats import ncx2

    law = ncx2(2, 2 * k)
    y = np.linspace(math.log(law.ppf(1e-12)), math.log(law.isf(1e-12)), 4001)
    logit = law.logcdf(np.exp(y)) - law.logsf(np.exp(y))
    spline: Callable[[FloatArray], FloatArray] = CubicSpline(logit, y - math.log(2 * (1 + k)))
    return spline
