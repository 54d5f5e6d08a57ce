"""Bands of least energy: by hand, and against SciPy's general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedsim.selectors.energy.ocean import least_energy_bands, power_share

BITS, SECONDS, BAND = 1e6, 1.0, 2e6


def test_powers_by_hand():
    # 1e6 bits in 1 s: at 2 bit/s/Hz in 5e5 Hz an SNR of 3, of 6 at full power; at 1 in 1e6 Hz 1 of 4.
    share = power_share(BITS, SECONDS, np.array([3e6, 4e6]), np.array([5e5, 1e6]))
    np.testing.assert_allclose(share, [0.5, 0.25])


@pytest.mark.parametrize(
    ("snr", "weight", "least", "expected"),
    [
        ([1e7] * 4, [0.3] * 4, [1e4] * 4, [5e5] * 4),
        # Without weights what is left is divided equally, and who costs nothing gets its least band.
        ([1e6, 1e7], [0.0, 0.0], [1e6, 4e5], [1.3e6, 0.7e6]),
        ([1e7, 1e7], [0.0, 1.0], [3e5, 1e5], [3e5, 1.7e6]),
    ],
)
def test_bands_by_hand(snr, weight, least, expected):
    band = least_energy_bands(BITS, SECONDS, np.array(snr), np.array(weight), np.array(least), BAND)
    np.testing.assert_allclose(band, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_division_costs_less(seed):
    rng = np.random.default_rng(seed)
    snr, weight = 10.0 ** rng.uniform(6, 8, 4), 10.0 ** rng.uniform(-3, 1, 4)
    least = rng.uniform(1e5, 4e5, 4)

    def cost(mega):
        return np.log(float(weight @ power_share(BITS, SECONDS, snr, mega * 1e6)))

    band = least_energy_bands(BITS, SECONDS, snr, weight, least, BAND)
    assert band.sum() == pytest.approx(BAND, rel=1e-12)
    assert np.all(band >= least * (1 - 1e-12))
    found = minimize(
        cost,
        np.full(4, 0.5),
        method="SLSQP",
        bounds=[(low / 1e6, 2.0) for low in least],
        constraints={"type": "eq", "fun": lambda mega: mega.sum() - 2.0},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert cost(band / 1e6) <= found.fun + 1e-7
