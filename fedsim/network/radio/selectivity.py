"""Frequency selectivity: the rate over a band is the mean over its frequencies, of which some fade while others do not.

The paths of a signal arrive at different delays, so that gains at two frequencies differ where these are further apart
than about the inverse of the delay spread. The profile is TDL-A of 3GPP TR 38.901 (table 7.7.2-1), scaled to a delay
spread: 23 taps whose complex amplitudes are Gaussian. A fading law has its own distribution at each frequency: the
Rayleigh gain there says which quantile of the law's gain it is. The sender chooses the rate of each part of the band by
its own SNR, or one for the whole band where the rate law says so (`WholeBandRate`).

From block to block the rate of a band is one number, drawn by its distribution function; with it, one uniform number
for each client and block is enough. The distribution comes from `STATES` states of the taps, which are part of the
model and the same in every run. Its mean is that of flat fading, at each SNR.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, normal_quantile
from fedsim.network.radio.contracts import Fading, SelectiveFading
from fedsim.network.radio.interference import hypercube
from fedsim.network.radio.spectral_efficiency import RateLaw, WholeBandRate
from fedsim.units import db_to_linear, linear_to_db

STATES: Final = 4096

TDL_A: Final = np.array(
    [
        (0.0000, -13.4),
        (0.3819, 0.0),
        (0.4025, -2.2),
        (0.5868, -4.0),
        (0.4610, -6.0),
        (0.5375, -8.2),
        (0.6708, -9.9),
        (0.5750, -10.5),
        (0.7618, -7.5),
        (1.5375, -15.9),
        (1.8978, -6.6),
        (2.2242, -16.7),
        (2.1718, -12.4),
        (2.4942, -15.2),
        (2.5119, -10.8),
        (3.0582, -11.3),
        (4.0810, -12.7),
        (4.4579, -16.2),
        (4.5695, -18.3),
        (4.7966, -18.9),
        (5.0066, -16.6),
        (5.3043, -19.9),
        (9.6586, -29.7),
    ]
)
"""Delay in delay spreads and power in dB of each tap."""

_COLUMNS: Final = 512
_FINE_PER_DB: Final = 50
_LEAST_GAIN: Final = 1e-9
_MOST_FREQUENCIES: Final = 96
_WIDEST_DB: Final = 200


def tap_powers() -> FloatArray:
    power = db_to_linear(TDL_A[:, 1])
    return np.asarray(power / power.sum())


def coherence_bandwidths(bandwidth_hz: float, delay_spread_s: float) -> float:
    """Return the number of independent parts of a band: the inverse variance of its mean Rayleigh gain.

    In closed form ``1 / sum(P_i P_j sinc^2(B (t_i - t_j)))`` over the taps of TDL-A; 1 for flat fading.
    """
    power, delay = tap_powers(), TDL_A[:, 0]
    alike = np.sinc(bandwidth_hz * delay_spread_s * (delay[:, None] - delay))
    return float(1.0 / (power[:, None] * power * alike**2).sum())


def band_gains(fading: Fading, bandwidth_hz: float, delay_spread_s: float) -> FloatArray:
    """Return gains of mean 1 in equally likely states at evenly spaced frequencies of a band, (STATES, frequencies)."""
    spreads = bandwidth_hz * delay_spread_s
    frequencies = min(8 + round(10 * spreads), _MOST_FREQUENCIES)
    if isinstance(fading, SelectiveFading):
        return fading.gains_over_band(STATES, frequencies, bandwidth_hz, delay_spread_s)
    place = (np.arange(frequencies) + 0.5) / frequencies * spreads
    turned = np.exp(-2j * np.pi * TDL_A[:, :1] * place) * np.sqrt(tap_powers() / 2)[:, None]
    rayleigh = np.abs(_taps() @ turned) ** 2
    # By their ranks among all, gains have the law's distribution over states and frequencies without sampling error.
    quantile = np.empty(rayleigh.size)
    quantile[rayleigh.ravel().argsort()] = (np.arange(rayleigh.size) + 0.5) / rayleigh.size
    return fading.gain_quantile(quantile.reshape(rayleigh.shape))


@lru_cache(maxsize=1)
def _taps() -> NDArray[np.complex128]:
    normal = normal_quantile(hypercube(STATES, 2 * len(TDL_A), "delay-taps"))
    return np.asarray(normal[:, ::2] + 1j * normal[:, 1::2])


class BandRates:
    """The rate of a band in a fading block, in shares of its mean."""

    def __init__(
        self, rate: RateLaw, fading: Fading, snr: FloatArray, bandwidth_hz: float, delay_spread_s: float
    ) -> None:
        usable = snr[snr > 0]
        level_db = linear_to_db(usable) if usable.size else np.zeros(1)
        self._first_db = float(np.floor(level_db.min()))
        self._rows = min(int(np.ceil(level_db.max()) - self._first_db) + 2, _WIDEST_DB)
        gain = np.maximum(band_gains(fading, bandwidth_hz, delay_spread_s), _LEAST_GAIN)
        if isinstance(rate, WholeBandRate):
            levels = db_to_linear(self._first_db + np.arange(self._rows))
            over_band = [rate.efficiency_over_band(gain * level) for level in levels.tolist()]
            self._table = np.stack([_shares(one.astype(np.float32)[:, None]) for one in over_band])
            return
        gain_db = linear_to_db(gain)
        low_db = float(np.floor(gain_db.min()))
        span_db = int(np.ceil(gain_db.max()) - low_db) + self._rows
        fine_db = self._first_db + low_db + np.arange(span_db * _FINE_PER_DB + 1) / _FINE_PER_DB
        efficiency = rate.efficiency(db_to_linear(fine_db)).astype(np.float32)
        index = np.rint((gain_db - low_db) * _FINE_PER_DB).astype(np.int32)
        self._table = np.stack([_shares(efficiency[index + row * _FINE_PER_DB]) for row in range(self._rows)])

    def row(self, snr: FloatArray) -> FloatArray:
        """Return the place of linear mean SNRs in the table, for `share_of_mean`."""
        with np.errstate(divide="ignore"):
            return np.clip(linear_to_db(snr) - self._first_db, 0.0, self._rows - 1.0)

    def share_of_mean(self, row: FloatArray, u: FloatArray) -> FloatArray:
        below = np.minimum(row.astype(np.int64), self._rows - 2)
        column = u * _COLUMNS
        left = column.astype(np.int64)
        beyond, upper = column - left, row - below
        at, flat = below * (_COLUMNS + 1) + left, self._table.ravel()
        lower = flat[at] + beyond * (flat[at + 1] - flat[at])
        at += _COLUMNS + 1
        return np.asarray(lower + upper * (flat[at] + beyond * (flat[at + 1] - flat[at]) - lower))


def _shares(efficiency: NDArray[np.float32]) -> FloatArray:
    """Return quantiles of the mean over frequencies, of mean 1, shape (513,); ones where nothing is carried."""
    over_band = np.sort(efficiency.mean(axis=1, dtype=np.float64))
    u = np.arange(_COLUMNS + 1) / _COLUMNS
    quantile = np.interp(u, (np.arange(STATES) + 0.5) / STATES, over_band)
    mean = (quantile.sum() - (quantile[0] + quantile[-1]) / 2) / _COLUMNS
    return np.asarray(quantile / mean) if mean > 0 else np.ones(_COLUMNS + 1)
