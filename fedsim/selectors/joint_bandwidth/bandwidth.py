"""The division of a band that lets all uploads of a round end at the same, earliest instant.

Shi, Zhou, Niu, Jiang and Geng, "Joint Device Scheduling and Resource Allocation for Latency Constrained Wireless
Federated Learning", IEEE Transactions on Wireless Communications 20(1), 2021, section IV-A. A client that sends with
its full power in a band of b Hz has the rate ``b log2(1 + s / b)``, where s is its received power over the density of
the noise, in Hz. The rate grows with the band towards ``s / ln 2``. So a round is shortest where no band is left, and
no client ends before another: a client that ended early could give a part of its band to the last one.
"""

from typing import Final

import numpy as np
from scipy.special import lambertw

from fedsim.arrays import FloatArray

_HALVINGS: Final = 200
_NEVER: Final = np.inf
_NEAR: Final = 0.999


def least_bandwidth_hz(bits: FloatArray | float, seconds: FloatArray, snr_hz: FloatArray) -> FloatArray:
    """Return the narrowest band in which each client sends its bits within some seconds, in Hz.

    With ``g = bits ln 2 / (seconds s)`` the least b with ``seconds b log2(1 + s / b) >= bits`` is
    ``b = -s g / (W(-g exp(-g)) + g)``, where W is the lower branch of Lambert's function; no band suffices for
    g >= 1.
    """
    time = np.asarray(seconds, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = np.where(time > 0, np.asarray(bits) * np.log(2.0) / (np.where(time > 0, time, 1.0) * snr_hz), _NEVER)
        able = share < 1.0
        g = np.where(able, share, 0.5)
        gap = lambertw(-g * np.exp(-g), k=-1).real + g
        sent = snr_hz * g
        band = np.where(gap < 0, -sent / np.where(gap < 0, gap, -1.0), _NEVER)
        # Near g = 1, the branch point of Lambert's function, ``1 - s / 2b`` is the begin of the series for g.
        band = np.where(g > _NEAR, snr_hz / (2.0 * (1.0 - g)), band)
        for _ in range(3):
            ratio = snr_hz / band
            exponent = np.log1p(ratio)
            better = band - (band * exponent - sent) / (exponent - ratio / (1.0 + ratio))
            band = np.where(np.isfinite(better) & (better > 0), better, band)
    return np.where(able, band, _NEVER)


def earliest_end(bits: float, ready_s: FloatArray, snr_hz: FloatArray, bandwidth_hz: float) -> tuple[float, FloatArray]:
    """Return the least time after which all uploads can have ended, and the band of each client in Hz."""
    clients = ready_s.size
    alone_s = ready_s + bits / rate_bps(np.full(clients, bandwidth_hz), snr_hz)
    equal_s = ready_s + bits / rate_bps(np.full(clients, bandwidth_hz / clients), snr_hz)
    early, late = float(alone_s.max()), float(equal_s.max())
    if not np.isfinite(late):
        return late, np.full(clients, bandwidth_hz / clients)
    for _ in range(_HALVINGS):
        middle = 0.5 * (early + late)
        if not early < middle < late:
            break
        if float(least_bandwidth_hz(bits, middle - ready_s, snr_hz).sum()) > bandwidth_hz:
            early = middle
        else:
            late = middle
    band = least_bandwidth_hz(bits, late - ready_s, snr_hz)
    if not np.isfinite(band).all():
        band = np.full(clients, bandwidth_hz / clients)
    return late, band * (bandwidth_hz / band.sum())


def rate_bps(bandwidth_hz: FloatArray, snr_hz: FloatArray) -> FloatArray:
    """Return ``b log2(1 + s / b)`` in bit/s for a band of b Hz, of the shape of both."""
    rate: FloatArray = bandwidth_hz * np.log1p(snr_hz / bandwidth_hz) / np.log(2.0)
    return rate
