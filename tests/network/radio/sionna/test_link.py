"""Sionna's block error rates and EESM as a rate law; skipped without Sionna."""

import numpy as np
import pytest

pytest.importorskip("sionna", reason="the extra 'sionna' is not installed")
from fedsim.network import ModulationAndCoding, Rayleigh
from fedsim.network.radio.sionna.link import SionnaLink, _effective_snr, _mapping

SNR = 10 ** (np.arange(-15, 31, 0.5) / 10)


def test_goodput_rises_in_steps_up_to_the_highest_scheme():
    """Scheme 27 of table 1 has 910/1024 bits at 64-QAM, 5.33 in a resource element, of which 14 % are overhead."""
    rate = SionnaLink().efficiency(SNR)
    assert rate[0] == 0
    assert np.all(np.diff(rate) >= -0.1 * rate[1:])
    assert rate[-1] == pytest.approx(0.86 * 6 * 910 / 1024, rel=0.01)


def test_it_lies_near_our_own_schemes_for_nr():
    """Both take the highest scheme with 10 % block errors; thresholds of one efficiency are 1.5 dB apart at most."""
    ours = ModulationAndCoding(gap="nr-ldpc").efficiency(SNR * 10**-0.15)
    more = ModulationAndCoding(gap="nr-ldpc").efficiency(SNR * 10**0.15)
    rate = SionnaLink().efficiency(SNR)
    middle = (SNR > 1) & (SNR < 50)
    assert np.all(rate[middle] >= 0.8 * ours[middle])
    assert np.all(rate[middle] <= 1.25 * more[middle])


def test_effective_snr_by_hand():
    """``-b ln mean exp(-snr / b)`` with the b of each scheme."""
    snr = np.array([[1.0, 4.0, 9.0]])
    beta = _mapping().beta_tensor.numpy()[0, 10]
    expected = -beta * np.log(np.mean(np.exp(-snr / beta)))
    assert _effective_snr(snr)[10, 0] == pytest.approx(expected, rel=1e-4)


def test_a_flat_band_has_the_rate_of_its_snr():
    link = SionnaLink()
    np.testing.assert_allclose(link.efficiency_over_band(np.full((1, 7), 10.0)), link.efficiency(np.array([10.0])))
    half_faded = link.efficiency_over_band(np.array([[20.0, 0.1]]))[0]
    assert 0 < half_faded < 0.75 * link.efficiency(np.array([10.05]))[0]


def test_a_stricter_target_is_slower():
    strict, usual = (SionnaLink(target=target).mean_efficiency(SNR, Rayleigh()) for target in (0.01, 0.1))
    assert np.all(strict[20:] < usual[20:] * 1.12)
    assert np.all(SionnaLink(target=0.01).thresholds_db() >= SionnaLink().thresholds_db())
