"""Sionna's gains against the laws that its profiles have in theory; skipped without Sionna."""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sionna", reason="the extra 'sionna' is not installed")
from fedsim import Scenario, simulate
from fedsim.network.radio.selectivity import coherence_bandwidths
from fedsim.network.radio.sionna.fading import SAMPLES, SionnaCdl, SionnaTdl, _paths
from tests.support.pages import ROOT

both = pytest.mark.parametrize("law", [SionnaTdl, SionnaCdl])


@both
@pytest.mark.statistical
def test_profiles_without_a_line_of_sight_are_rayleigh(law):
    number = SAMPLES[law.kind]
    gain = law(profile="A").gain_quantile((np.arange(number) + 0.5) / number)
    assert np.all(np.diff(gain) >= 0)
    assert gain.mean() == pytest.approx(1.0)
    assert stats.kstest(gain, "expon").pvalue > 1e-4
    rate = np.log2(1 + np.outer([0.1, 10.0], gain)).mean(axis=1)
    np.testing.assert_allclose(law(profile="A").mean_spectral_efficiency(np.array([0.1, 10.0])), rate)


@both
@pytest.mark.statistical
def test_a_profile_with_a_line_of_sight_is_rician(law):
    """TR 38.901, table 7.7.2-4: a constant part of -0.2 dB, and 13 scattered ones."""
    scattered_db = [-13.5, -18.8, -21.0, -22.8, -17.9, -20.1, -21.9, -22.9, -27.8, -23.6, -24.8, -30.0, -27.7]
    k = 10**-0.02 / (10 ** (np.array(scattered_db) / 10)).sum()
    number = SAMPLES[law.kind]
    gain = law(profile="D").gain_quantile((np.arange(number) + 0.5) / number)
    assert stats.kstest(gain, stats.ncx2(2, 2 * k, scale=1 / (2 * (1 + k))).cdf).pvalue > 1e-4


@both
@pytest.mark.statistical
def test_a_band_fades_in_parts(law):
    """The deviation of its mean gain has a closed form for TDL-A: 0.612 at 10 MHz and 363 ns."""
    gain = law().gains_over_band(2048, 32, 10e6, 363e-9)
    assert gain.shape == (2048, 32)
    assert gain.mean() == pytest.approx(1.0)
    expected = 1 / np.sqrt(coherence_bandwidths(10e6, 363e-9))
    # The fourth moment of the mean gain is about that of a gamma law with 2.67 parts.
    assert gain.mean(axis=1).std() == pytest.approx(expected, abs=4 * expected * np.sqrt((3 + 6 / 2.67 - 1) / 4 / 2048))
    np.testing.assert_array_equal(gain, law().gains_over_band(2048, 32, 10e6, 363e-9))


def test_taps_have_the_powers_and_delays_of_the_table():
    """TR 38.901, table 7.7.2-2: the second tap of TDL-B comes after 0.1072 delay spreads with -2.2 dB."""
    amplitude, delay_s = _paths("sionna-tdl", "B", 4096, 100e-9)
    assert delay_s[1] == pytest.approx(0.1072 * 100e-9, rel=1e-4)
    power = (np.abs(amplitude) ** 2).mean(axis=0)
    assert power.sum() == pytest.approx(1.0, abs=0.05)
    assert 10 * np.log10(power[1] / power[0]) == pytest.approx(-2.2, abs=0.4)


def test_a_run_with_it_is_the_same_twice():
    scenario = Scenario.load(ROOT / "scenarios" / "quickstart.toml").replace(
        {
            "learning": {"kind": "none", "model_bits": 2e4, "samples_per_client": 60},
            "rounds.count": 3,
            "network.fading": {"kind": "sionna-tdl", "profile": "D", "coherence_s": 0.02},
            "network.delay_spread_s": 100e-9,
        }
    )
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    once = simulate(scenario)
    assert once.participations.equals(simulate(scenario).participations)
    assert once.column("rounds", "delivered").sum() > 0
