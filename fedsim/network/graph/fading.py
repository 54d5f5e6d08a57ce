"""Fading of the access links of a graph: the rate of each client's own link in each fading block.

Streams: ``fading-downlink`` and ``fading-uplink`` by (client, block), those of a cell. Draws belong to
the client and the block, so that a handover changes the mean SNR alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.radio.channel import LAST_BLOCK, MOST_BLOCKS
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.selectivity import BandRates
from fedsim.network.radio.spectral_efficiency import RateLaw
from fedsim.network.topology.coverage import Offer
from fedsim.streams import Streams

_BEYOND: Final = 10.0
"""Factor by which the table of a band reaches beyond any SNR so far."""


@dataclass(frozen=True)
class FadingLaw:
    rate: RateLaw
    fading: Fading
    delay_spread_s: float
    streams: Streams


class WayFading:
    """One direction of all clients' links, each with the bandwidth for itself."""

    def __init__(self, law: FadingLaw, stream: str, bandwidth_hz: float, mean_bps: FloatArray, snr: FloatArray) -> None:
        self._law, self._stream, self._bandwidth_hz = law, stream, bandwidth_hz
        self._mean_bps, self._snr = mean_bps.copy(), snr.copy()
        self._met = (1.0, 1.0)
        self._band: BandRates | None = None
        if law.delay_spread_s:
            usable = snr[snr > 0]
            self._band = self._table(float(usable.min(initial=1.0)), float(usable.max(initial=1.0)))

    def set(self, client: int, mean_bps: float, snr: float) -> bool:
        """Change mean rate and SNR of a client's link; return whether they were others."""
        if (self._mean_bps[client], self._snr[client]) == (mean_bps, snr):
            return False
        self._mean_bps[client], self._snr[client] = mean_bps, snr
        return True

    def ratios(self, client: IntArray, block: IntArray) -> FloatArray:
        law, snr, mean_bps = self._law, self._snr[client], self._mean_bps[client]
        u = law.streams.uniform(self._stream, client, block[:, None])
        band = self._band_of(snr)
        if band is None:
            efficiency = law.rate.efficiency(snr * law.fading.gain_quantile(u))
        else:
            efficiency = law.rate.mean_efficiency(snr, law.fading) * band.share_of_mean(band.row(snr), u)
        rate_bps = self._bandwidth_hz * efficiency
        return np.divide(rate_bps, mean_bps, out=np.zeros_like(rate_bps), where=mean_bps > 0)

    def _band_of(self, snr: FloatArray) -> BandRates | None:
        """Return a table of band rates that has the SNRs, shape (n,); None where fading is flat."""
        if self._band is None:
            return None
        usable = snr[snr > 0]
        least, most = self._met
        if usable.size and (usable.min() < least or usable.max() > most):
            lower, higher = float(usable.min()), float(usable.max())
            self._band = self._table(
                least if lower >= least else lower / _BEYOND, most if higher <= most else higher * _BEYOND
            )
        return self._band

    def _table(self, least: float, most: float) -> BandRates:
        law, self._met = self._law, (least, most)
        return BandRates(law.rate, law.fading, np.array(self._met), self._bandwidth_hz, law.delay_spread_s)


class AccessFading:
    most_blocks = MOST_BLOCKS
    last_block = LAST_BLOCK

    def __init__(
        self, law: FadingLaw, access: Sequence[tuple[int, int]], ways: tuple[WayFading | None, WayFading | None]
    ) -> None:
        self.coherence_s = law.fading.coherence_s
        self._ways = ways
        links = np.array(access, dtype=np.int64).reshape(-1, 2)
        size = int(links.max(initial=-1)) + 1
        self._client, self._way = np.zeros(size, dtype=np.int64), np.full(size, -1)
        for way, drawn in enumerate(ways):
            if drawn is not None:
                self._client[links[:, way]], self._way[links[:, way]] = np.arange(len(links)), way

    def fades(self, link: IntArray) -> BoolArray:
        return np.asarray(np.append(self._way, -1)[np.minimum(link, self._way.size)] >= 0)

    def ratios(self, link: IntArray, block: IntArray) -> FloatArray:
        found, direction = np.ones((block.size, link.size)), self._way[link]
        for way, drawn in enumerate(self._ways):
            these = np.flatnonzero(direction == way)
            if drawn is not None and these.size:
                found[:, these] = drawn.ratios(self._client[link[these]], block)
        return found

    def join(self, client: int, offer: Offer) -> bool:
        snr = offer.snr
        if snr is None:
            return False
        changed = False
        for way, mean_bps, own in zip(self._ways, offer.rates_bps, snr, strict=True):
            changed = (way is not None and way.set(client, mean_bps, own)) or changed
        return changed
