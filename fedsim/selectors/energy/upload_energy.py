"""The energy of uploads that end at a given instant, and the division of a band that makes its weighted sum least.

A client that sends L bits within t seconds in a band of b Hz needs the power ``p (b / s) (2^(L / (t b)) - 1)``
(Shannon's rate). p is its full power, and s its SNR at full power times the band, in Hz. Its energy, t times that
power, falls with the band and is convex.
"""

from typing import Final

import numpy as np
from scipy.special import lambertw

from fedsim.arrays import FloatArray

_HALVINGS: Final = 64
_LN2: Final = float(np.log(2.0))


def power_share(bits: float, seconds: float, snr_hz: FloatArray, bandwidth_hz: FloatArray) -> FloatArray:
    """Return the power of each client as a share of its full power, shape (n,)."""
    with np.errstate(over="ignore"):
        share = bandwidth_hz / snr_hz * np.expm1(_LN2 * bits / (seconds * bandwidth_hz))
    return np.asarray(share)


def least_energy_bands(
    bits: float, seconds: float, snr_hz: FloatArray, weight: FloatArray, least_hz: FloatArray, bandwidth_hz: float
) -> FloatArray:
    """Return the bands that make the sum of weights times energies least, shape (n,); their sum is the whole band.

    The derivative of a client's weighted energy by its band is ``-(w / s) h(L / (t b))`` times constants, with ``h(x) =
    1 - 2^x (1 - x ln 2)``. At the optimum it is the same for all clients above their least bands. h is inverted with
    Lambert's function, and the common value is found by bisection. Without clients of a weight above 0 what is left of
    the band is divided equally.
    """
    heavy = weight > 0
    if not heavy.any():
        return np.asarray(least_hz + (bandwidth_hz - least_hz.sum()) / least_hz.size)
    price = snr_hz[heavy] / weight[heavy]

    def bands(log_value: float) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            y = np.minimum(np.exp(log_value) * price, 1e300)
            x = (1.0 + lambertw((y - 1.0) / np.e).real) / _LN2
            band = least_hz.copy()
            band[heavy] = np.maximum(bits / (seconds * np.maximum(x, 1e-300)), least_hz[heavy])
        return band

    # The greatest value leaves every client its least band, the smallest one gives each more than the whole band.
    low, high = -700.0 - np.log(price.max()), 690.0 - np.log(price.max())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bands(middle).sum() > bandwidth_hz else (low, middle)
    band = bands(high)
    above = band > least_hz
    if above.any():
        band[above] *= (bandwidth_hz - band[~above].sum()) / band[above].sum()
    return band
