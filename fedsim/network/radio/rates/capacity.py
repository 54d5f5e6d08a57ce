"""Shannon's formula, and its mean over Rayleigh fading."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray

_FRACTION_FROM: Final = 30.0
_FRACTION_DEPTH: Final = 24


def spectral_efficiency(snr: ArrayLike) -> FloatArray:
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
    found = np.asarray(np.exp(small) * exp1(small))
    far = x >= _FRACTION_FROM
    beyond = x[far]
    tail = np.zeros_like(beyond)
    for k in range(_FRACTION_DEPTH, 0, -1):
        tail = k * k / (beyond + (2 * k + 1) - tail)
    found[far] = 1.0 / (beyond + 1.0 - tail)
    return found
