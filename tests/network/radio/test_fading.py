"""Fading laws and spectral efficiencies against quadrature and scipy.stats."""

import itertools
import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import integrate, special, stats

from fedsim.network import FADINGS, Nakagami, NoFading, Rayleigh, Rician, coherence_time_s, doppler_hz
from fedsim.network.radio.capacity import rayleigh_efficiency, spectral_efficiency
from fedsim.streams import Streams
from tests.support.bounds import dkw

DRAWS = 20_000


def ergodic_by_quadrature(snr):
    # With gain = e^y the integrand is smooth over the whole range of snr; y outside [-75, 5] carries nothing.
    value, _ = integrate.quad(
        lambda y: math.log1p(snr * math.exp(y)) * math.exp(y - math.exp(y)), -75, 5, epsrel=1e-13, epsabs=0, limit=500
    )
    return value / math.log(2)


@pytest.mark.parametrize("exponent", range(-9, 10))
def test_rayleigh_capacity_is_the_integral_over_the_gain(exponent):
    for snr in (10.0**exponent, 3.3 * 10.0**exponent):
        assert float(rayleigh_efficiency(snr)) == pytest.approx(ergodic_by_quadrature(snr), rel=1e-10)


def test_rayleigh_capacity_at_the_edges_and_where_the_method_changes():
    # For a weak signal every gain counts in proportion: capacity tends to snr / ln 2.
    edges = rayleigh_efficiency(np.array([0.0, 1e-320, 1e-200, 1e300]))
    np.testing.assert_allclose(edges[2], 1e-200 / math.log(2), rtol=1e-12)
    assert edges[0] == 0.0
    # For a strong one it is log2(snr) less Euler's constant over ln 2.
    assert edges[3] == pytest.approx(math.log2(1e300) - np.euler_gamma / math.log(2), rel=1e-12)
    x = np.array([29.9, 29.999999, 30.0, 30.000001, 35.0])
    np.testing.assert_allclose(rayleigh_efficiency(1 / x), np.exp(x) * special.exp1(x) / math.log(2), rtol=1e-13)


def test_shannon_keeps_its_digits_for_weak_signals():
    np.testing.assert_allclose(spectral_efficiency([0.0, 1.0, 1023.0]), [0.0, 1.0, 10.0], rtol=1e-15)
    assert float(spectral_efficiency(1e-18)) == pytest.approx(1e-18 / math.log(2), rel=1e-15)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "amplitude", "m"),
    [
        (Rayleigh(), stats.rayleigh(scale=math.sqrt(0.5)), 1.0),
        *((Nakagami(m=m), stats.nakagami(m), m) for m in (0.5, 1.0, 2.7, 40.0, 1000.0)),
    ],
)
def test_amplitudes_follow_their_law(law, amplitude, m):
    gain = law.gain_quantile(Streams(2).uniform("fading-uplink", 3, np.arange(DRAWS)))
    assert stats.kstest(np.sqrt(gain), amplitude.cdf).statistic < dkw(DRAWS)
    assert gain.mean() == pytest.approx(1.0, abs=5 / math.sqrt(m * DRAWS))


def test_no_fading_is_a_gain_of_one_for_ever():
    law = NoFading()
    np.testing.assert_array_equal(law.gain_quantile(np.array([0.1, 0.9])), [1.0, 1.0])
    np.testing.assert_allclose(law.mean_spectral_efficiency(np.array([0.0, 7.0])), [0.0, 3.0])
    assert law.coherence_s == math.inf


@pytest.mark.parametrize("k_db", [-40.0, -3.0, 7.0, 15.0, 30.0])
def test_rician_quantiles_against_scipy(k_db):
    u = np.concatenate([np.geomspace(1e-12, 0.5, 60), 1 - np.geomspace(0.5, 1e-9, 60)])
    k = 10 ** (k_db / 10)
    theory = stats.ncx2(2, 2 * k).ppf(u) / (2 * (1 + k))
    np.testing.assert_allclose(Rician(k_db=k_db).gain_quantile(u), theory, rtol=1e-6)
    ends = Rician(k_db=k_db).gain_quantile(np.array([2.0**-53, 1 - 2.0**-53]))
    assert 0 < ends[0] < theory[0]
    assert theory[-1] < ends[1] < 2 * theory[-1] + 60


@pytest.mark.parametrize("snr", [1e-6, 0.1, 3.0, 1e3, 1e8])
@pytest.mark.parametrize(
    ("law", "density"),
    [
        *((Nakagami(m=m), stats.gamma(m, scale=1 / m)) for m in (0.5, 0.9, 4.0, 60.0, 1000.0)),
        *(
            (Rician(k_db=10 * math.log10(k)), stats.ncx2(2, 2 * k, scale=0.5 / (1 + k)))
            for k in (1e-4, 1.0, 5.0, 60.0, 900.0)
        ),
    ],
)
def test_mean_efficiency_by_adaptive_quadrature(law, density, snr):
    low, high = density.ppf(1e-15), density.isf(1e-15)
    edges = [math.log(max(low, 1e-32)), -3.0, -0.5, 0.0, 0.5, math.log(high)]
    edges = sorted(edge for edge in edges if math.log(max(low, 1e-32)) <= edge <= math.log(high))
    parts = [
        integrate.quad(
            lambda y: math.log1p(snr * math.exp(y)) * math.exp(density.logpdf(math.exp(y)) + y), a, b, epsrel=1e-11
        )[0]
        for a, b in itertools.pairwise(edges)
    ]
    found = law.mean_spectral_efficiency(np.array([snr]))[0]
    assert found == pytest.approx(sum(parts) / math.log(2), rel=2e-8)


def test_rayleigh_is_rician_without_a_constant_path_and_nakagami_with_m_one():
    u, snr = np.linspace(1e-6, 1 - 1e-6, 501), np.geomspace(1e-6, 1e6, 25)
    for law, close in ((Rician(k_db=-100.0), 1e-6), (Nakagami(m=1.0), 1e-9)):
        np.testing.assert_allclose(law.gain_quantile(u), -np.log(1 - u), rtol=close)
        np.testing.assert_allclose(
            law.mean_spectral_efficiency(snr), [ergodic_by_quadrature(value) for value in snr], rtol=1e-8
        )


def test_coherence_time_by_clarke():
    # 30 km/h at 3.5 GHz: f_D = 8.3333 * 3.5e9 / 299792458 = 97.29 Hz
    law = FADINGS.make({"kind": "rician", "speed_m_per_s": 30 / 3.6, "carrier_hz": 3.5e9})
    assert law.coherence_s == pytest.approx(0.423 / 97.2891, rel=1e-5)
    assert FADINGS.make(FADINGS.describe(law)) == law
    # A described law whose speed is changed follows the new speed.
    faster = FADINGS.make({**FADINGS.describe(law), "speed_m_per_s": 60 / 3.6})
    assert faster.coherence_s == pytest.approx(law.coherence_s / 2, rel=1e-12)
    assert doppler_hz(299.792458, 1e6) == pytest.approx(1.0)
    # The default is a pedestrian at 2 GHz, rounded.
    assert coherence_time_s(3 / 3.6, 2e9) == pytest.approx(Rayleigh().coherence_s, abs=5e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "rayleigh", "speed_m_per_s": 3.0},
        {"kind": "rayleigh", "carrier_hz": 2e9},
        {"kind": "rayleigh", "speed_m_per_s": -3.0, "carrier_hz": 2e9},
        {"kind": "rician", "k_db": 31.0},
        {"kind": "nakagami", "m": 0.4},
    ],
)
def test_impossible_fadings_are_refused(options):
    with pytest.raises(ValidationError):
        FADINGS.make(options)
