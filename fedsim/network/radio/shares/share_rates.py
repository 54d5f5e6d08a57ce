"""Rates of clients in shares of a band, from numbers that are drawn once for each client and fading block."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.selectivity import BandRates, coherence_bandwidths
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.streams import Streams
from fedsim.units import linear_to_db

_STEP_DB: Final = 0.1
_NEARLY_FLAT: Final = 1.02
_MOST_HALVINGS: Final = 30
_DENSEST_DB: Final = 120.0


class ShareRates:
    """The rate of each client in a fading block, in the whole band or a share of it, with more power for a hertz.

    Under flat fading a block's gain decides it. With a delay spread the quantile of the client in the block decides it,
    the same number as in dedicated bandwidth: a narrow share has fewer coherence bandwidths, and its rate varies more.
    Tables hold the whole band, a half of it, a quarter and so on; a share counts with the nearest of these widths, and
    as flat where it has less than 1.02 coherence bandwidths.
    """

    def __init__(
        self,
        rate: RateLaw,
        fading: Fading,
        snr: FloatArray,
        densest: FloatArray | None,
        bandwidth_hz: float,
        delay_spread_s: float,
        streams: Streams,
        stream: str,
    ) -> None:
        self._rate, self._fading, self._bandwidth_hz, self._spread_s = rate, fading, bandwidth_hz, delay_spread_s
        self._streams, self._stream = streams, stream
        self.flat = not delay_spread_s
        self.typical = 0.5 if delay_spread_s else 1.0
        self._bands: dict[int, BandRates | None] = {}
        if delay_spread_s:
            level_db = linear_to_db(snr[snr > 0]) if np.any(snr > 0) else np.zeros(1)
            reach_db = 0.0 if densest is None else min(_DENSEST_DB, float(linear_to_db(densest.max())))
            low_db, high_db = math.floor(level_db.min()), math.ceil(level_db.max() + reach_db) + 1
            self._level_db = np.arange(low_db, high_db, _STEP_DB)
            self._snr = 10 ** (self._level_db / 10)
            self._mean = rate.mean_efficiency(self._snr, fading)

    def draw(self, client: ArrayLike, block: ArrayLike) -> FloatArray:
        """Return gains of flat fading, else quantiles, of clients in blocks; larger ones are better."""
        u = self._streams.uniform(self._stream, client, block)
        return u if self._spread_s else self._fading.gain_quantile(u)

    def rate_bps(
        self, snr: FloatArray, efficiency: FloatArray, drawn: FloatArray, part: FloatArray | None = None
    ) -> FloatArray:
        """Return rates over all of a band in bit/s at the SNRs of the clients' shares, shape (blocks, m)."""
        if not self._spread_s:
            return self._bandwidth_hz * self._rate.efficiency(snr * drawn)
        if part is None:
            return self._in_band(0, snr, efficiency, drawn)
        halvings = np.rint(-np.log2(part)).astype(np.int64)
        mean = np.where(part < 1.0, np.interp(linear_to_db(snr), self._level_db, self._mean), efficiency)
        rate = np.empty_like(drawn)
        for width in np.unique(halvings).tolist():
            these = halvings == width
            rate[:, these] = self._in_band(width, snr[these], mean[these], drawn[:, these])
        return rate

    def _in_band(self, halvings: int, snr: FloatArray, efficiency: FloatArray, drawn: FloatArray) -> FloatArray:
        if halvings not in self._bands:
            width_hz = self._bandwidth_hz / 2 ** min(halvings, _MOST_HALVINGS)
            flat = halvings > 0 and coherence_bandwidths(width_hz, self._spread_s) < _NEARLY_FLAT
            self._bands[halvings] = (
                None if flat else BandRates(self._rate, self._fading, self._snr, width_hz, self._spread_s)
            )
        band = self._bands[halvings]
        if band is None:
            return self._bandwidth_hz * self._rate.efficiency(snr * self._fading.gain_quantile(drawn))
        return np.asarray(self._bandwidth_hz * efficiency * band.share_of_mean(band.row(snr), drawn))
