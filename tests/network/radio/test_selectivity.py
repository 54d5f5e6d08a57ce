"""The rate over a band against drawn taps and a Fourier transform, closed forms, and laws of means."""

import numpy as np
import pytest
from scipy import stats

from fedsim.answers import unchecked
from fedsim.network import Cell, ModulationAndCoding, Nakagami, NoFading, Rayleigh, Rician, Shannon
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.network.radio.contracts import FADING
from fedsim.network.radio.selectivity import STATES, TDL_A, BandRates, band_gains, coherence_bandwidths, tap_powers
from fedsim.registry import Component
from fedsim.streams import Streams
from tests.support.families import by_default
from tests.support.media import built

# TR 38.901, table 7.7.3-2: normal delay spread in UMa.
UMA_S = 363e-9


def channel(snr, bandwidth_hz, delay_spread_s=UMA_S, fading=None, rate=SHANNON_LIMIT):
    law = Rayleigh(coherence_s=1.0) if fading is None else fading
    level = np.atleast_1d(snr).astype(float)
    return Channel(level, bandwidth_hz, law, "fading", Streams(5), rate, delay_spread_s=delay_spread_s)


def efficiencies_by_fft(snr, bandwidth_hz, rng, blocks=20_000):
    """Shannon's efficiency over a band: Gaussian taps on a fine grid of delays, transformed to its subcarriers.

    The grid's step is the inverse of 16 times the band, and a tap lies at the nearest step.
    """
    over, carriers = 16, 1024
    step = np.rint(TDL_A[:, 0] * UMA_S * bandwidth_hz * over).astype(int)
    amplitude = rng.standard_normal((blocks, 23, 2)) @ [1, 1j] * np.sqrt(tap_powers() / 2)
    response = np.zeros((blocks, carriers), dtype=np.complex64)
    for tap, place in enumerate(step):
        response[:, place] += amplitude[:, tap]
    gain = np.abs(np.fft.fft(response, axis=1)[:, : carriers // over]) ** 2
    return np.log2(1 + snr * gain).mean(axis=1)


def test_the_taps_are_of_unit_power_and_delay_spread():
    power, delay = tap_powers(), TDL_A[:, 0]
    assert power.sum() == pytest.approx(1.0)
    assert np.sqrt(power @ delay**2 - (power @ delay) ** 2) == pytest.approx(1.0, abs=1e-3), "as table 7.7.2-1 says"


@pytest.mark.statistical
@pytest.mark.parametrize("level_db", by_default([-5.0, 10.0, 25.0], [10.0]))
@pytest.mark.parametrize("bandwidth_hz", by_default([1e6, 10e6], [10e6]))
def test_rates_have_the_distribution_of_drawn_taps(bandwidth_hz, level_db):
    snr = 10 ** (level_db / 10)
    drawn = efficiencies_by_fft(snr, bandwidth_hz, np.random.default_rng(3), 8000)
    found = channel(snr, bandwidth_hz).rate_bps(0, np.arange(30_000)) / bandwidth_hz
    # Two samples, and the states from which the law was made: Kolmogorov-Smirnov distances at 1e-6.
    limit = np.sqrt(-np.log(1e-6 / 2) / 2) * np.sqrt(1 / 8000 + 1 / STATES)
    assert stats.ks_2samp(drawn, found).statistic < limit
    # The deviation of a deviation is about its own over the square root of twice the size, of both samples.
    assert found.std() == pytest.approx(drawn.std(), rel=5 * np.sqrt(1 / 16_000 + 1 / (2 * STATES)))


@pytest.mark.parametrize("law", [Rayleigh(), Rician(k_db=7.0), Nakagami(m=3.0)], ids=["rayleigh", "rician", "nakagami"])
@pytest.mark.parametrize("rate", [Shannon(), ModulationAndCoding(table="256qam")], ids=["shannon", "cqi"])
def test_the_mean_over_blocks_is_that_of_flat_fading(law, rate):
    snr = np.array([0.03, 1.0, 17.0, 3000.0])
    selective, flat = (channel(snr, 10e6, spread, law, rate) for spread in (UMA_S, 0.0))
    np.testing.assert_array_equal(selective.ergodic_rate_bps, flat.ergodic_rate_bps)
    # Evenly spaced quantiles instead of draws: the mean is that of the trapezoidal rule.
    band = selective.band(10e6)
    u = (np.arange(4096) + 0.5) / 4096
    share = band.share_of_mean(band.row(snr)[:, None], u)
    np.testing.assert_allclose(share.mean(axis=1), 1.0, rtol=1e-3)
    assert np.all(np.diff(share, axis=1) >= 0), "a quantile rises"
    assert np.all(share >= 0)


def test_gains_keep_their_law_at_each_frequency():
    for law, cdf in ((Rayleigh(), stats.expon.cdf), (Nakagami(m=3.0), stats.gamma(3.0, scale=1 / 3).cdf)):
        gain = band_gains(law, 10e6, UMA_S)
        limit = np.sqrt(-np.log(1e-6 / 2) / 2 / STATES)
        for column in (0, gain.shape[1] // 2, -1):
            assert stats.kstest(gain[:, column], cdf).statistic < limit


@pytest.mark.parametrize("bandwidth_hz", [1e4, 1e6, 1e7, 1e8])
def test_coherence_bandwidths_by_numbers(bandwidth_hz):
    # The variance of the mean of exponential gains is the mean of |R(f - f')|^2 over all pairs of frequencies.
    place = (np.arange(1500) + 0.5) / 1500 * bandwidth_hz
    correlation = np.exp(-2j * np.pi * np.outer(place - place[0], TDL_A[:, 0] * UMA_S)) @ tap_powers()
    squared, apart = np.abs(correlation) ** 2, np.arange(1500)
    mean = (squared * np.where(apart == 0, 1, 2) * (1500 - apart)).sum() / 1500**2
    assert coherence_bandwidths(bandwidth_hz, UMA_S) == pytest.approx(1 / mean, rel=2e-3)
    assert coherence_bandwidths(bandwidth_hz, 0.0) == pytest.approx(1.0)


@pytest.mark.statistical
def test_the_variance_of_the_mean_gain_is_that_of_the_coherence_bandwidths():
    gain = band_gains(Rayleigh(), 10e6, UMA_S).mean(axis=1)
    assert 1 / gain.var() == pytest.approx(coherence_bandwidths(10e6, UMA_S), rel=5 * np.sqrt(3 / STATES))


def test_a_narrow_share_varies_like_flat_fading():
    wide = channel([10.0], 10e6)
    u = (np.arange(2000) + 0.5) / 2000
    spread = []
    for width in (10e6, 1e6, 1e5, 1e3):
        band = wide.band(width)
        spread.append(band.share_of_mean(band.row(wide.snr)[:, None], u).std())
    assert np.all(np.diff(spread) > 0)
    flat = np.log2(1 - 10 * np.log1p(-u))
    assert spread[-1] == pytest.approx(flat.std() / flat.mean(), rel=0.01)
    assert channel([10.0], 10e6, 0.0).band(1e6) is None


def test_without_fading_a_delay_spread_changes_nothing():
    rate = channel([10.0, 0.0], 1e6, fading=NoFading()).rate_bps(np.arange(2), 0)
    np.testing.assert_allclose(rate, [1e6 * np.log2(11.0), 0.0], rtol=1e-12)


def test_a_client_does_not_change_the_rate_of_another():
    snr = np.array([1.0, 20.0, 400.0])
    many, few = channel(snr, 1e6), channel(snr[:2], 1e6)
    np.testing.assert_allclose(many.rate_bps(1, np.arange(50)), few.rate_bps(1, np.arange(50)), rtol=1e-9)


def test_transfers_are_integrated_over_the_rates_of_blocks():
    link = channel([10.0], 1e6)
    rate = link.rate_bps(0, np.arange(20))
    bits = float(rate[:5].sum() + 0.25 * rate[5])
    assert link.transfer_s(np.array([0]), np.zeros(1), bits)[0] == pytest.approx(5.25, rel=1e-12)


class Halves(Component):
    """A user's law of two halves of the band that fade in turns, so that the mean never changes."""

    coherence_s: float = 1.0

    def gain_quantile(self, u):
        return np.where(u < 0.5, 0.0, 2.0)

    def mean_spectral_efficiency(self, snr):
        return np.log2(1 + 2 * snr) / 2

    def gains_over_band(self, states, frequencies, bandwidth_hz, delay_spread_s):
        return np.where(np.arange(frequencies) % 2 == np.arange(states)[:, None] % 2, 0.0, 2.0)


def test_a_law_of_the_users_own_may_say_how_it_fades_over_the_band():
    law = FADING.checked(Halves())
    assert unchecked(law) == Halves()
    rate = channel([10.0], 1e6, fading=law).rate_bps(0, np.arange(50))
    np.testing.assert_allclose(rate, 1e6 * np.log2(21.0) / 2, rtol=1e-6)


def test_the_bands_of_a_cell_take_its_delay_spread():
    links = built(Cell(delay_spread_s=UMA_S), np.full((3, 2), 100.0))
    assert (links.downlink.delay_spread_s, links.uplink.delay_spread_s) == (UMA_S, UMA_S)
    band = BandRates(Shannon(), Rayleigh(), links.uplink.snr, 1e6, UMA_S)
    u = links.uplink.streams.uniform("fading-uplink", np.arange(3), 7)
    expected = links.uplink.ergodic_rate_bps * band.share_of_mean(band.row(links.uplink.snr), u)
    np.testing.assert_array_equal(links.uplink.rate_bps(np.arange(3), 7), expected)
