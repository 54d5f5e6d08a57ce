"""What a scheduler gains that serves whoever's fading is at its best."""

import math
from typing import Final

import numpy as np

from fedsim.network.base import Fading, FloatArray
from fedsim.network.capacity import spectral_efficiency

_STEP: Final = 1 / 32
_REACH: Final = 3.0


def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes in (0, 1) and weights for integrals whose integrand may be singular at the ends.

    The double exponential rule of Takahasi and Mori (Publ. RIMS 9, 1974).
    """
    t = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    u = 1.0 / (1.0 + np.exp(-math.pi * np.sinh(t)))
    return u, math.pi * np.cosh(t) * u * (1.0 - u) * _STEP


def diversity_gain(fading: Fading, snr: float, users: int) -> float:
    """Return the mean spectral efficiency of the best of several users over that of one; 1 without fading.

    ``E[log2(1 + snr M)] / E[log2(1 + snr G)]``, where M is the largest of as many independent gains G. Under Rayleigh
    fading and at low SNR, where rates are in proportion to gains, it is the harmonic number ``sum(1/k, k = 1..n)``
    (Borst, "User-level performance of channel-aware scheduling algorithms in wireless data networks", IEEE/ACM
    Trans. Networking 13(3), 2005); at high SNR it is less, because the logarithm flattens peaks.

    Parameters
    ----------
    fading : law of the gains, alike for all users
    snr : mean linear SNR > 0
    users : int >= 1
    """
    u, weight = _nodes()
    best = fading.gain_quantile(np.minimum(u ** (1.0 / users), 1.0 - 2.0**-53))
    alone = fading.gain_quantile(u)
    return float(weight @ spectral_efficiency(snr * best) / (weight @ spectral_efficiency(snr * alone)))
