"""Multi-user diversity against the harmonic numbers and an integral over the density of the best gain."""

import math

import pytest
from scipy.integrate import quad

from fedsim.network import NoFading, Rayleigh
from fedsim.network.diversity import diversity_gain


@pytest.mark.parametrize("users", [1, 2, 5, 30, 1000])
def test_gain_at_low_snr_is_the_harmonic_number(users):
    harmonic = sum(1 / k for k in range(1, users + 1))
    assert diversity_gain(Rayleigh(), 1e-9, users) == pytest.approx(harmonic, rel=1e-6)


@pytest.mark.parametrize("snr", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("users", [2, 10, 100])
def test_gain_is_the_mean_over_the_density_of_the_largest_gain(snr, users):
    """The largest of n exponentials has the density n e^-x (1 - e^-x)^(n-1)."""

    def mean(n):
        def integrand(x):
            return math.log2(1 + snr * x) * n * math.exp(-x) * (1 - math.exp(-x)) ** (n - 1)

        return quad(integrand, 0, 60, limit=400)[0]

    assert diversity_gain(Rayleigh(), snr, users) == pytest.approx(mean(users) / mean(1), rel=1e-6)


def test_without_fading_there_is_no_gain():
    assert [diversity_gain(NoFading(), 3.0, users) for users in (1, 7, 500)] == pytest.approx([1.0, 1.0, 1.0])
