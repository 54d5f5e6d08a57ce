"""Fading laws and spectral efficiencies against quadrature and scipy.stats."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import integrate, special, stats

from fedsim.network import FADINGS, NoFading, Rayleigh
from fedsim.network.capacity import rayleigh_efficiency, spectral_efficiency
from fedsim.streams import Streams

DRAWS = 20_000
KS_LIMIT = math.sqrt(math.log(2 / 1e-6) / (2 * DRAWS))  # Dvoretzky-Kiefer-Wolfowitz at 1e-6


def ergodic_by_quadrature(snr: float) -> float:
    # With gain = e^y the integrand is smooth over the whole range of snr; y outside [-75, 5] carries nothing.
    value, _ = integrate.quad(
        lambda y: math.log1p(snr * math.exp(y)) * math.exp(y - math.exp(y)), -75, 5, epsrel=1e-13, epsabs=0, limit=500
    )
    return value / math.log(2)


@pytest.mark.parametrize("exponent", range(-9, 10))
def test_rayleigh_capacity_is_the_integral_over_the_gain(exponent):
    for snr in (10.0**exponent, 3.3 * 10.0**exponent):
        assert float(rayleigh_efficiency(snr)) == pytest.approx(ergodic_by_quadrature(snr), rel=1e-10)


def test_rayleigh_capacity_is_continuous_where_the_method_changes():
    x = np.array([29.9, 29.999999, 30.0, 30.000001, 35.0])
    theory = np.exp(x) * special.exp1(x) / math.log(2)
    np.testing.assert_allclose(rayleigh_efficiency(1 / x), theory, rtol=1e-13)


def test_rayleigh_capacity_at_the_edges():
    # For a weak signal every gain counts in proportion: capacity tends to snr / ln 2.
    edges = rayleigh_efficiency(np.array([0.0, 1e-320, 1e-200, 1e300]))
    np.testing.assert_allclose(edges[2], 1e-200 / math.log(2), rtol=1e-12)
    assert edges[0] == 0.0
    # For a strong one it is log2(snr) less Euler's constant over ln 2.
    assert edges[3] == pytest.approx(math.log2(1e300) - np.euler_gamma / math.log(2), rel=1e-12)


def test_shannon_keeps_its_digits_for_weak_signals():
    np.testing.assert_allclose(spectral_efficiency([0.0, 1.0, 1023.0]), [0.0, 1.0, 10.0], rtol=1e-15)
    assert float(spectral_efficiency(1e-18)) == pytest.approx(1e-18 / math.log(2), rel=1e-15)


@pytest.mark.statistical
def test_rayleigh_power_is_exponential_and_its_amplitude_rayleigh():
    gain = Rayleigh().gain_quantile(Streams(2).uniform("fading-uplink", 3, np.arange(DRAWS)))
    assert stats.kstest(gain, stats.expon.cdf).statistic < KS_LIMIT
    assert stats.kstest(np.sqrt(gain), stats.rayleigh(scale=math.sqrt(0.5)).cdf).statistic < KS_LIMIT
    assert gain.mean() == pytest.approx(1.0, abs=5 / math.sqrt(DRAWS))


def test_no_fading_is_a_gain_of_one_for_ever():
    law = NoFading()
    np.testing.assert_array_equal(law.gain_quantile(np.array([0.1, 0.9])), [1.0, 1.0])
    np.testing.assert_allclose(law.mean_spectral_efficiency(np.array([0.0, 7.0])), [0.0, 3.0])
    assert law.coherence_s == math.inf


@pytest.mark.parametrize("snr", [1e-3, 1.0, 1e3])
def test_rayleigh_never_beats_a_steady_channel(snr):
    # Jensen: log2 is concave.
    weak = Rayleigh().mean_spectral_efficiency(np.array([snr]))
    assert weak[0] < NoFading().mean_spectral_efficiency(np.array([snr]))[0]


def test_kinds():
    assert FADINGS.make("none") == NoFading()
    assert FADINGS.make({"kind": "rayleigh", "coherence_s": 0.02}) == Rayleigh(coherence_s=0.02)
    with pytest.raises(ValidationError):
        FADINGS.make({"kind": "rayleigh", "coherence_s": 0.0})
