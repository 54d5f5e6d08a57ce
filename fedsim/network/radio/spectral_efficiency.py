"""Spectral efficiency in bit/s/Hz at a signal-to-noise ratio: Shannon's formula, or modulation and coding.

A law gives the efficiency at an instantaneous SNR, and its mean over fading.
"""

import math
from typing import Annotated, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat

from fedsim.answers import Contract, Numbers, same_shape
from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.registry import Component, Registry
from fedsim.units import db_to_linear, linear_to_db

_FRACTION_FROM: Final = 30.0
_FRACTION_DEPTH: Final = 24


def spectral_efficiency(snr: ArrayLike) -> FloatArray:
    """Return Shannon's ``log2(1 + snr)`` for snr >= 0 of any shape, exact also where snr is tiny.

    >>> float(spectral_efficiency(3.0))
    2.0
    """
    return np.log1p(np.asarray(snr, dtype=np.float64)) / math.log(2.0)


def rayleigh_efficiency(snr: ArrayLike) -> FloatArray:
    """Return the ergodic capacity of Rayleigh fading, ``e^(1/snr) E1(1/snr) / ln 2``, of the shape of snr.

    It is the mean of ``log2(1 + snr * gain)`` over an exponential power gain with mean 1: Goldsmith and
    Varaiya, "Capacity of fading channels with channel side information", IEEE Trans. Inf. Theory 43(6), 1997;
    Alouini and Goldsmith, IEEE Trans. Veh. Technol. 48(4), 1999. Relative error below 1e-13 at any snr; 0 at 0.
    """
    snr = np.asarray(snr, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        return _scaled_exponential_integral(1.0 / snr) / math.log(2.0)


def _scaled_exponential_integral(x: FloatArray) -> FloatArray:
    """Return ``e^x E1(x)`` for x in (0, inf] without overflow.

    From x = 30 on by the continued fraction 1/(x+1 - 1/(x+3 - 4/(x+5 - 9/(x+7 - ...)))), which converges there
    to the last digit (Abramowitz and Stegun 5.1.22 in even form; DLMF 6.9).
    """
    from scipy.special import exp1

    small = np.minimum(x, _FRACTION_FROM)
    tail = np.zeros_like(x)
    for k in range(_FRACTION_DEPTH, 0, -1):
        tail = k * k / (x + (2 * k + 1) - tail)
    return np.where(x < _FRACTION_FROM, np.exp(small) * exp1(small), 1.0 / (x + 1.0 - tail))


RATES = Registry(
    "rate",
    "fedsim.rates",
    ("efficiency", "mean_efficiency"),
    {
        "shannon": "fedsim.network.radio.spectral_efficiency:Shannon",
        "cqi": "fedsim.network.radio.mcs:ModulationAndCoding",
    },
)

_NODES: Final = 512
_STEP_DB: Final = 0.1
_LOWEST_DB: Final = -50.0
_HIGHEST_DB: Final = 100.0
_BLOCK: Final = 256


class RateLaw(Protocol):
    """The spectral efficiency of a link: bits per second and hertz."""

    def efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the efficiency in bit/s/Hz at linear SNRs >= 0, of the shape of snr.

        Parameters
        ----------
        snr : linear, >= 0, any shape
        """
        ...

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        """Return the mean of the efficiency over fading in bit/s/Hz, of the shape of snr.

        Parameters
        ----------
        snr : mean linear SNRs >= 0, any shape
        fading : law of the gain
        """
        ...


RATE_LAW: Final = Contract(
    "rate law",
    RateLaw,
    {
        "efficiency": Numbers(same_shape("snr"), least=0),
        "mean_efficiency": Numbers(same_shape("snr"), least=0),
    },
)


class Shannon(Component):
    """``log2(1 + snr / gap)``, up to a ceiling.

    Attributes
    ----------
    snr_gap_db : float
        Loss of SNR of modulation and coding against Shannon's limit; 3 dB is typical of coded transmission with some
        margin.
    ceiling : float or None
        Greatest efficiency, that of the highest modulation, in bit/s/Hz.
    """

    snr_gap_db: Annotated[float, Field(ge=0, le=50)] = 3.0
    ceiling: PositiveFloat | None = None

    def efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the efficiency in bit/s/Hz at each linear SNR, of the shape of snr."""
        free = spectral_efficiency(snr / db_to_linear(self.snr_gap_db))
        return free if self.ceiling is None else np.minimum(free, self.ceiling)

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        """Return the fading law's own mean without a ceiling, else that of `mean_over_fading`, of the shape of snr."""
        if self.ceiling is None:
            return fading.mean_spectral_efficiency(snr / db_to_linear(self.snr_gap_db))
        return mean_over_fading(self, snr, fading)


def mean_over_fading(rate: RateLaw, snr: FloatArray, fading: Fading) -> FloatArray:
    """Return the mean over fading of any bounded law's efficiency, for mean linear SNRs of any shape.

    The midpoint rule over 512 quantiles u of the gain, denser towards 1 (``u = 1 - (1 - t)^3``), at SNRs 0.1 dB
    apart from -50 to 100 dB and linearly in between, so that a client's mean does not depend on other clients. Against
    direct quadrature it errs by less than 0.1 % of the law's highest efficiency; below -50 dB it is 0, above 100 dB
    that of 100 dB.

    Parameters
    ----------
    rate : law of the spectral efficiency
    snr : mean linear SNRs, any shape
    fading : law of the gain
    """
    t = (np.arange(_NODES) + 0.5) / _NODES
    gain = fading.gain_quantile(1.0 - (1.0 - t) ** 3)
    weight = 3.0 * (1.0 - t) ** 2 / _NODES
    grid_db = np.arange(_LOWEST_DB, _HIGHEST_DB + _STEP_DB / 2, _STEP_DB)
    grid = db_to_linear(grid_db)
    mean = np.concatenate(
        [
            (rate.efficiency(grid[low : low + _BLOCK, None] * gain) * weight).sum(axis=1)
            for low in range(0, grid.size, _BLOCK)
        ]
    )
    with np.errstate(divide="ignore"):
        return np.asarray(np.interp(linear_to_db(snr), grid_db, mean, left=0.0))
