"""Means under a ceiling against the closed form of Rayleigh fading and against quadrature."""

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special, stats
from scipy.interpolate import PchipInterpolator

from fedsim import Component
from fedsim.network import Nakagami, NoFading, Rayleigh, Rician
from fedsim.network.radio.capacity import mean_below_ceiling, monotone_cubic
from fedsim.network.radio.spectral_efficiency import mean_over_fading

LAWS = {
    "rayleigh": (Rayleigh(), stats.expon()),
    "nakagami": (Nakagami(m=2.5), stats.gamma(2.5, scale=1 / 2.5)),
    "one-sided gaussian": (Nakagami(m=0.5), stats.gamma(0.5, scale=2.0)),
    "nearly constant": (Nakagami(m=1000.0), stats.gamma(1000.0, scale=1e-3)),
    "rician": (Rician(k_db=7.0), stats.ncx2(2, 2 * 10**0.7, scale=1 / (2 + 2 * 10**0.7))),
}


def quadrature(snr, ceiling, gain):
    """The mean by Gauss and Legendre's quadrature over the logarithm of the gain, between many of its quantiles."""
    knee = (2**ceiling - 1) / snr
    low, high = max(gain.ppf(1e-18), 1e-40), min(knee, gain.isf(1e-17))
    between = gain.ppf([1e-12, 1e-8, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-8])
    points = np.unique(np.log([low, *between[(between > low) & (between < high)], high]))
    node, weight = np.polynomial.legendre.leggauss(40)
    half = np.diff(points)[:, None] / 2
    value = np.exp(points[:-1, None] + half * (1 + node))
    below = np.sum(half * weight * np.log2(1 + snr * value) * gain.pdf(value) * value)
    return below + ceiling * gain.sf(knee)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("ceiling", [0.7, 7.4])
def test_means_agree_with_quadrature(law, ceiling):
    fading, gain = LAWS[law]
    knee_db = 10 * math.log10(2**ceiling - 1)
    level_db = np.array([-30.0, -6.3, 0.0, 9.1, *(knee_db + np.array([-2.7, -1.3, -0.2, 0.0, 0.4, 2.2])), 31.0, 55.0])
    found = mean_below_ceiling(10 ** (level_db / 10), ceiling, fading)
    theory = [quadrature(10 ** (level / 10), ceiling, gain) for level in level_db]
    np.testing.assert_allclose(found, theory, rtol=0, atol=1e-5)


@given(level_db=st.floats(-40, 80), ceiling=st.floats(0.2, 12.0))
def test_rayleigh_means_have_a_closed_form(level_db, ceiling):
    # By parts: (e^x E1(x) - e^-k e^(x + k) E1(x + k)) / ln 2 with x = 1/snr and k = (2^c - 1)/snr.
    snr = 10 ** (level_db / 10)
    x, k = 1 / snr, (2**ceiling - 1) / snr
    scaled = special.exp1 if x < 500 else None
    free = math.exp(x) * float(scaled(x)) if scaled else 1 / (x + 1 - 1 / (x + 3))
    cut = math.exp(x) * float(special.exp1(x + k)) if x + k < 500 and x < 500 else 0.0
    found = mean_below_ceiling(np.array([snr]), ceiling, Rayleigh())[0]
    assert found == pytest.approx((free - cut) / math.log(2), abs=1e-5)


@given(snr=st.lists(st.floats(0.0, 1e12), min_size=2, max_size=20), ceiling=st.floats(0.2, 12.0))
def test_means_rise_with_the_snr_up_to_the_ceiling(snr, ceiling):
    for fading in (Rayleigh(), NoFading()):
        mean = mean_below_ceiling(np.sort(snr), ceiling, fading)
        assert np.all(np.diff(mean) >= -1e-9)
        assert np.all((mean >= 0) & (mean <= ceiling))
        assert np.all(mean <= np.log2(1 + np.sort(snr)) + 1e-9), "Jensen: at most the value at the mean SNR"


def test_without_fading_it_is_the_lesser_of_formula_and_ceiling():
    found = mean_below_ceiling(np.array([0.0, 1.0, 3.0, 1e9]), 1.5, NoFading())
    np.testing.assert_allclose(found, [0.0, 1.0, 1.5, 1.5], rtol=1e-15)


def test_a_client_does_not_change_the_mean_of_another():
    snr = np.geomspace(1e-3, 1e6, 50)
    alone = [mean_below_ceiling(snr[i : i + 1], 7.4, Rayleigh())[0] for i in (0, 20, 49)]
    np.testing.assert_array_equal(mean_below_ceiling(snr, 7.4, Rayleigh())[[0, 20, 49]], alone)


def test_a_law_without_a_hash_has_the_same_mean():
    class Listed(Rayleigh):
        paths: list[float]

    snr = np.geomspace(1e-3, 1e6, 50)
    np.testing.assert_array_equal(
        mean_below_ceiling(snr, 7.4, Listed(paths=[1.0])), mean_below_ceiling(snr, 7.4, Rayleigh())
    )


@pytest.mark.parametrize("ceiling", [301.0, 1e12])
def test_a_ceiling_beyond_all_signals_is_none(ceiling):
    snr = np.array([0.0, 1.0, 1e12])
    np.testing.assert_array_equal(
        mean_below_ceiling(snr, ceiling, Rayleigh()), Rayleigh().mean_spectral_efficiency(snr)
    )


# Of numbers below 1e-12 SciPy's own slopes overflow.
VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 12)), min_size=3, max_size=12)


@given(values=VALUES, seed=st.integers(0, 100))
def test_numbers_of_scipy_bit_by_bit(values, seed):
    """Ties, extremes and both ends are among the points; places at the points and between them."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.01, 3.0, len(values)))
    y = np.array(values)
    at = np.clip(np.concatenate([x, rng.uniform(x[0], x[-1], 30)]), x[0], x[-1])
    assert np.array_equal(monotone_cubic(x, y, at[:, None]), PchipInterpolator(x, y)(at[:, None]))


class Pulses(Component):
    """Nothing below an SNR that is no option."""

    least: ClassVar[float] = 10.0

    def efficiency(self, snr):
        return np.where(snr >= self.least, 1.0, 0.0)


def test_a_law_that_depends_on_more_than_its_options_has_means_of_its_own_each_time(monkeypatch):
    """Of Rayleigh's gain, exp(-1) is above 1 and exp(-2) above 2."""
    for least, share in ((10.0, math.exp(-1)), (20.0, math.exp(-2))):
        monkeypatch.setattr(Pulses, "least", least)
        assert mean_over_fading(Pulses(), np.array([10.0]), Rayleigh()) == pytest.approx([share], abs=2e-3)
