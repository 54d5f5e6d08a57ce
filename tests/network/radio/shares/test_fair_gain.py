"""Gains of proportional fairness against a scheduler that looks at every block, and its optimum."""

import numpy as np
import pytest

from fedsim.network import ModulationAndCoding, Rayleigh, Shannon
from fedsim.network.radio.shares.fair_gain import FairGain, powers
from fedsim.network.radio.shares.multiuser_diversity import DiversityGain
from tests.support.step_by_step import scheduled_by_rate_over_average


@pytest.mark.parametrize("law", [Shannon(ceiling="none"), ModulationAndCoding(table="64qam")], ids=["shannon", "cqi"])
def test_gains_are_those_of_a_scheduler_at_unlike_snrs(law):
    """Ten clients at 0 to 20 dB. The largest relative SNR gives the strongest 8 % less, the weakest 3 % more."""
    level_db = np.linspace(0.0, 20.0, 10)
    snr = 10 ** (level_db / 10)
    fair, relative = FairGain(law, Rayleigh(), snr), DiversityGain(law, Rayleigh(), snr)
    rates = law.efficiency(snr * np.random.default_rng(1).exponential(size=(20_000, 10)))
    served, times = scheduled_by_rate_over_average(rates, 2000)
    found = np.interp(level_db, fair.level_db, fair.efficiency(10)) / 10
    other = np.interp(level_db, relative.level_db, relative.efficiency(10)) / 10
    np.testing.assert_allclose(found, served, rtol=0.04)
    assert times[-1] > 1.15 * times[0]
    assert found[-1] > 1.04 * other[-1]
    assert found[0] < 0.97 * other[0]


def test_the_sum_of_logarithms_is_the_largest_at_the_gains():
    """Against the rule of the largest relative SNR, which serves all equally often."""
    snr = 10 ** (np.linspace(0.0, 20.0, 40) / 10)
    fair, relative = (law(Shannon(ceiling="none"), Rayleigh(), snr) for law in (FairGain, DiversityGain))
    level_db = 10 * np.log10(snr)
    sums = [np.log(np.interp(level_db, one.level_db, one.efficiency(40))).mean() for one in (fair, relative)]
    assert sums[0] > sums[1] + 5e-4


@pytest.mark.parametrize("users", [2, 7, 100])
def test_at_low_snr_both_rules_are_one(users):
    """Rates are in proportion to gains there (Borst, 2005): both gain the harmonic number."""
    snr = 10 ** (np.linspace(-50.0, -40.0, 30) / 10)
    found = FairGain(Shannon(ceiling="none"), Rayleigh(), snr)
    harmonic = sum(1 / k for k in range(1, users + 1))
    np.testing.assert_allclose(found.efficiency(users) / found.alone, harmonic, rtol=0.01)


@pytest.mark.parametrize("users", [10, 1200])
def test_clients_at_the_ceiling_have_their_equal_share_of_time(users):
    """Of a crowd from -12 to 92 dB most always have 7.4 bit/s/Hz, the ceiling of the rate law, and gain nothing."""
    snr = 10 ** (np.linspace(-12.0, 92.0, 200) / 10)
    found = FairGain(Shannon(), Rayleigh(), snr)
    gain = found.efficiency(users) / found.alone
    np.testing.assert_allclose(gain[found.level_db > 60], 1.0, atol=0.06)
    assert gain.min() > 0.8
    assert gain[0] > 1.5


@pytest.mark.parametrize("exponent", [1, 2, 50, 1583, 10**8])
def test_powers_are_those_of_each_number_also_where_they_are_0(exponent):
    edge = np.exp(np.array([-746.0, -745.2, -745.0, -708.5, -1.0]) / exponent)
    rising = np.unique(np.concatenate([[0.0, 1e-300, 0.5, 1.0], edge, np.nextafter(edge, 0), np.nextafter(edge, 1)]))
    np.testing.assert_allclose(powers(rising, exponent), rising**exponent, rtol=1e-14, atol=1e-322)


def test_what_other_runs_have_computed_changes_no_gain():
    """Averages of a number of clients go on from those of fewer, which another run of the cell may have asked for."""
    snr = 10 ** (np.linspace(0.0, 20.0, 13) / 10)
    cells = [FairGain(Shannon(), Rayleigh(), factor * snr) for factor in (1.0, 1.5, 1.0)]
    first, other, again = (cell.efficiency(12) for cell in cells)
    for clients in range(2, 40):
        FairGain(Shannon(), Rayleigh(), clients * snr).efficiency(2)  # more cells than are kept
    forgotten = FairGain(Shannon(), Rayleigh(), snr)
    forgotten.efficiency(8)
    assert again.tolist() == first.tolist() == forgotten.efficiency(12).tolist()
    assert not np.array_equal(first, other)
