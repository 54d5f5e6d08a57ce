"""One direction of all clients' links: rates, and transfer times integrated exactly over fading blocks.

Time is cut into blocks of one coherence time from instant 0 on; the gain of a link in a block is a function of
(stream, client, block) alone. A transfer ends when the sum of rate times duration over the blocks it touches,
the first and the last in part, reaches its bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fedsim.arrays import FloatArray, IntArray, all_of, constant, largest, positions
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.selectivity import BandRates
from fedsim.network.radio.shares.fair_gain import FairGain
from fedsim.network.radio.shares.multiuser_diversity import DiversityGain, GainTable, share_gain
from fedsim.network.radio.shares.share_rates import ShareRates
from fedsim.network.radio.spectral_efficiency import RateLaw, Shannon
from fedsim.per_client import Values
from fedsim.streams import Streams
from fedsim.units import db_to_linear, thermal_noise_dbm

MOST_BLOCKS: Final = 2**18
"""Blocks of a transfer that are drawn one by one; see `Channel.transfer_s`."""

_ZERO, _ONE = constant(0.0), np.array(1)

SHANNON_LIMIT: Final = Shannon(snr_gap_db=0.0, ceiling="none")

LAST_BLOCK: Final = 2**52
"""Blocks after which a float does not tell blocks apart."""
_ELEMENTS: Final = 2**13
"""Gains drawn at once, few enough for a core's cache."""


def mean_snr(
    power_dbm: Values,
    loss_db: ArrayLike,
    bandwidth_hz: Values,
    noise_figure_db: float,
    interference_mw: ArrayLike = 0.0,
) -> FloatArray:
    received_mw = db_to_linear(power_dbm - np.asarray(loss_db, dtype=np.float64))
    noise_mw = db_to_linear(thermal_noise_dbm(bandwidth_hz, noise_figure_db))
    return np.asarray(received_mw / (noise_mw + np.asarray(interference_mw)))


@dataclass(frozen=True)
class Channel:
    """One direction of all clients' links, each with a bandwidth of its own.

    SNRs are linear means over fading, shape (K,). `ids` names the clients where they are not 0..K-1, in ascending
    order; methods then take positions in it, and `widths_hz` are their own bandwidths. `densest` is that of
    `fedsim.network.radio.shares.power_control`; None for a sender that spreads its power.
    """

    snr: FloatArray
    bandwidth_hz: float
    fading: Fading
    stream: str
    streams: Streams
    rate: RateLaw = SHANNON_LIMIT
    densest: FloatArray | None = None
    delay_spread_s: float = 0.0
    ids: IntArray | None = None
    widths_hz: FloatArray | None = None
    band_rates: BandRates | None = None

    def rate_bps(self, client: ArrayLike, block: ArrayLike) -> FloatArray:
        """Return ``bandwidth * efficiency(snr * gain)`` in fading blocks; with a delay spread its mean."""
        ids = np.asarray(client)
        u = self.streams.uniform(self.stream, ids if self.ids is None else self.ids[ids], block)
        if self._band is None:
            width_hz = self._width_hz if self.widths_hz is None else self.widths_hz[ids]
            return width_hz * self.rate.efficiency(self.snr[ids] * self.fading.gain_quantile(u))
        rates, row = self._band
        return np.asarray(self.ergodic_rate_bps[ids] * rates.share_of_mean(row[ids], u))

    @cached_property
    def _width_hz(self) -> FloatArray:
        return constant(self.bandwidth_hz)

    def band(self, width_hz: float) -> BandRates | None:
        """Return the rates of a share in fading blocks; None where fading is flat."""
        if not self.delay_spread_s:
            return None
        return BandRates(self.rate, self.fading, self.snr, width_hz, self.delay_spread_s)

    @cached_property
    def octave_band(self) -> Callable[[int], BandRates | None]:
        """Return `band` of widths that are a whole power of two Hz, each computed once."""
        return lru_cache(maxsize=32)(lambda octave: self.band(2.0**octave))

    @cached_property
    def _band(self) -> tuple[BandRates, FloatArray] | None:
        """Rates of the whole bandwidth, and each client's place in their table; None where fading is flat."""
        rates = self.band_rates or self.band(self.bandwidth_hz)
        return None if rates is None else (rates, rates.row(self.snr))

    @cached_property
    def share_rates(self) -> ShareRates:
        return ShareRates(
            self.rate,
            self.fading,
            self.snr,
            self.densest,
            self.bandwidth_hz,
            self.delay_spread_s,
            self.streams,
            self.stream,
        )

    @cached_property
    def ergodic_rate_bps(self) -> FloatArray:
        width_hz = self.bandwidth_hz if self.widths_hz is None else self.widths_hz
        return width_hz * self.rate.mean_efficiency(self.snr, self.fading)

    @cached_property
    def _fluid_s(self) -> Callable[[float], FloatArray]:
        """Return ``bits / ergodic rate`` of every client, remembered for the sizes of a model and of an update."""
        return lru_cache(maxsize=2)(self.expected_s)

    @cached_property
    def diversity_gain(self) -> DiversityGain:
        return DiversityGain(self.rate, self.fading, self.snr)

    @cached_property
    def fair_gain(self) -> FairGain:
        return FairGain(self.rate, self.fading, self.snr)

    @cached_property
    def share_gain(self) -> GainTable | None:
        if self.densest is None or not np.any(self.densest > 1.0):
            return None
        return share_gain(self.rate, self.fading, self.snr, self.densest)

    def expected_s(self, bits: float) -> FloatArray:
        """Return ``bits / ergodic rate`` in seconds, shape (K,); `inf` where a link carries nothing."""
        return seconds_of(bits, self.ergodic_rate_bps)

    def transfer_s(self, client: IntArray, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the duration of a transfer for each client, shape (n,).

        A transfer of more than `MOST_BLOCKS` blocks goes on at the ergodic rate after them. Where the standard
        deviation of the rate is at most c times its mean (c = 1 for Rayleigh fading under Shannon's formula, at every
        SNR), the duration errs by a standard deviation of at most c/1024. Of N + M blocks the last M are averaged, and
        sqrt(M) / (N + M) is largest at M = N. With outages in a share q of the blocks c is about sqrt(q / (1 - q)). A
        transfer that starts after 2**52 blocks, where a float does not tell blocks apart, or never (at `inf`, behind a
        downlink that carries nothing) has the ergodic rate from its start.
        """
        if math.isinf(self.fading.coherence_s):
            return seconds_of(bits, self.rate_bps(client, 0))
        took_s: FloatArray = self._fluid_s(bits)[client]
        coherence_s, longest_s = self.fading.coherence_s, largest(took_s)
        last_s = LAST_BLOCK * coherence_s
        counted_all = bits > 0 and longest_s < math.inf and largest(start_s) < last_s
        if counted_all and client.size * _blocks_to_draw(longest_s / coherence_s) <= _ELEMENTS:
            return self._integrate(client, start_s, bits, longest_s)
        counted = np.flatnonzero((start_s < last_s) & (took_s > 0) & (took_s < np.inf))
        # Transfers of about equally many blocks are integrated together, so that few gains are drawn in vain.
        counted = counted[np.argsort(took_s[counted])]
        drawn = np.cumsum([_blocks_to_draw(blocks) for blocks in (took_s[counted] / coherence_s).tolist()])
        for part in np.split(counted, np.searchsorted(drawn, np.arange(_ELEMENTS, drawn[-1:].sum(), _ELEMENTS))):
            took_s[part] = self._integrate(client[part], start_s[part], bits, largest(took_s[part]))
        return took_s

    def carried_bits(self, client: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
        """Return the bits that a transfer without end has carried some time after its start, shape (n,)."""
        coherence_s = self.fading.coherence_s
        carried: FloatArray = self.ergodic_rate_bps[client] * elapsed_s
        counted = np.flatnonzero((start_s < LAST_BLOCK * coherence_s) & (elapsed_s > 0))
        if math.isinf(coherence_s):
            carried[counted] = self.rate_bps(client[counted], np.zeros_like(counted)) * elapsed_s[counted]
            return carried
        if counted.size == 1:
            carried[counted] = self._carried(client[counted], start_s[counted], elapsed_s[counted])
            return carried
        # Integrals over about equally many blocks are done together, so that few gains are drawn in vain.
        counted = counted[np.argsort(elapsed_s[counted], kind="stable")]
        blocks = np.minimum(elapsed_s[counted] / coherence_s + 2, MOST_BLOCKS)
        for part in np.split(counted, np.flatnonzero(np.diff(np.cumsum(blocks) // _ELEMENTS)) + 1):
            if part.size:
                carried[part] = self._carried(client[part], start_s[part], elapsed_s[part])
        return carried

    def gain_at(self, client: IntArray, time_s: float) -> FloatArray:
        """Return the power gain of each client's fading block at an instant, of mean 1, as sounding signals show it."""
        coherence_s = self.fading.coherence_s
        block = 0 if math.isinf(coherence_s) else int(min(time_s / coherence_s, LAST_BLOCK))
        if block >= LAST_BLOCK:
            return np.ones(client.size)
        if self.delay_spread_s:
            mean = self.ergodic_rate_bps[client]
            return np.divide(self.rate_bps(client, block), mean, out=np.ones(client.size), where=mean > 0)
        u = self.streams.uniform(self.stream, client if self.ids is None else self.ids[client], block)
        return self.fading.gain_quantile(u)

    @cached_property
    def _coherence_s(self) -> FloatArray:
        return constant(self.fading.coherence_s)

    def _integrate(self, client: IntArray, start_s: FloatArray, bits: float, longest_s: float) -> FloatArray:
        """Return the durations of transfers of which the longest is expected to take some seconds, shape (n,)."""
        coherence_s, sought = self._coherence_s, constant(bits)
        first, first_s = self._first_blocks(start_s)
        took_s, going, passed = np.empty(client.size), positions(client.size), 0
        sent: FloatArray | float = 0.0
        while client.size and passed < MOST_BLOCKS:
            count = min(
                _blocks_to_draw(longest_s / self.fading.coherence_s),
                max(1, _ELEMENTS // client.size),
                MOST_BLOCKS - passed,
            )
            block = first[:, None] + (np.arange(passed, passed + count) if passed else positions(count))
            rate = self.rate_bps(client[:, None], block)
            # The bits sent before each block, and after the last one.
            total = np.empty((client.size, count + 1))
            total[:, 0] = sent
            np.multiply(rate, coherence_s, out=total[:, 1:])
            if passed == 0:
                np.multiply(rate[:, 0], first_s, out=total[:, 1])
            # A sequential sum: the result does not depend on where one chunk ends and the next begins.
            np.add.accumulate(total, axis=1, out=total)
            done = total[:, -1] >= sought
            if passed == 0 and all_of(done):
                return _ends_s(rate, total, sought, first_s, passed, coherence_s)
            took_s[going[done]] = _ends_s(rate[done], total[done], sought, first_s[done], passed, coherence_s)
            passed += count
            left = ~done
            going, client, first, first_s, sent = going[left], client[left], first[left], first_s[left], total[left, -1]
            longest_s = largest((bits - sent) / self.ergodic_rate_bps[client])
        took_s[going] = first_s + (passed - 1) * coherence_s + (bits - sent) / self.ergodic_rate_bps[client]
        return took_s

    def _carried(self, client: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
        coherence_s = self.fading.coherence_s
        first, first_s = self._first_blocks(start_s)
        most = int(min(np.ceil(elapsed_s.max() / coherence_s) + 1, MOST_BLOCKS))
        carried, length = np.zeros(client.size), max(1, _ELEMENTS // client.size)
        for passed in range(0, most, length):
            number = np.arange(passed - 1, min(passed + length, most))
            edges_s = np.minimum(np.maximum(first_s[:, None] + number * coherence_s, 0.0), elapsed_s[:, None])
            total = self.rate_bps(client[:, None], first[:, None] + number[1:])
            total *= edges_s[:, 1:] - edges_s[:, :-1]
            total[:, 0] += carried
            # A sequential sum, as that of a transfer's duration.
            carried = np.add.accumulate(total, axis=1)[:, -1]
        if most == MOST_BLOCKS:
            rest_s = np.maximum(elapsed_s - (first_s + (most - 1) * coherence_s), 0.0)
            carried = carried + self.ergodic_rate_bps[client] * rest_s
        return np.asarray(carried)

    def _first_blocks(self, start_s: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the block of each instant, and the seconds that are left of it."""
        coherence_s = self._coherence_s
        first = (start_s / coherence_s).astype(np.int64)
        return first, np.minimum(np.maximum((first + _ONE) * coherence_s - start_s, _ZERO), coherence_s)


def _ends_s(
    rate: FloatArray, total: FloatArray, bits: FloatArray, first_s: FloatArray, passed: int, coherence_s: FloatArray
) -> FloatArray:
    row, last = positions(len(rate)), (total[:, 1:] >= bits).argmax(axis=1)
    block = passed + last if passed else last
    begun_s = np.maximum(first_s + (block - _ONE) * coherence_s, _ZERO)
    needs_s = (bits - total[row, last]) / rate[row, last]
    ends_s: FloatArray = np.minimum(begun_s + needs_s, first_s + block * coherence_s)
    return ends_s


def _blocks_to_draw(expected_blocks: float) -> int:
    """Return a few blocks more than expected, so that one draw is usually enough."""
    expected = min(expected_blocks, float(MOST_BLOCKS))
    return int(expected + math.sqrt(expected) + 2)


def seconds_of(bits: float, rate_bps: FloatArray) -> FloatArray:
    """Return bits over rates; `inf` for bits over a link that carries nothing."""
    endless = np.full(np.shape(rate_bps), np.inf if bits > 0 else 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.divide(bits, rate_bps, out=endless, where=rate_bps > 0))
