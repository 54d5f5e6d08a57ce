"""The division of a band: its closed form against Shannon's rate, and the earliest end against other splits."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize_scalar

from fedsim.selectors.joint_bandwidth.bandwidth import earliest_end, least_bandwidth_hz


def capacity(band, snr):
    """Shannon's rate, written anew."""
    return band * np.log2(1 + snr / band)


@given(st.floats(3, 9), st.floats(-3, 3), st.floats(3, 10))
def test_the_least_band_carries_the_bits_in_the_time_and_no_narrower_one_does(bits, seconds, snr):
    size, time_s, snr_hz = 10.0**bits, 10.0**seconds, 10.0**snr
    band = float(least_bandwidth_hz(size, np.array([time_s]), np.array([snr_hz]))[0])
    if size * np.log(2) >= time_s * snr_hz:
        assert band == np.inf  # above the rate of an endless band
    elif band < 1e18 and band < snr_hz * 1e6:
        assert capacity(band, snr_hz) * time_s == pytest.approx(size, rel=1e-9)
        assert capacity(0.99 * band, snr_hz) * time_s < size


def test_no_time_needs_an_endless_band():
    assert np.isinf(least_bandwidth_hz(1.0, np.array([0.0, -1.0]), np.array([1.0, 1e9]))).all()
    assert np.isinf(least_bandwidth_hz(1.0, np.array([1e-300]), np.array([1e-300]))).all()


def test_two_clients_split_the_band_as_a_search_over_all_splits_does():
    ready, snr, band = np.array([0.3, 0.0]), np.array([2e6, 4e7]), 1e6

    def last(share):
        return max(
            ready[0] + 1e6 / capacity(share * band, snr[0]), ready[1] + 1e6 / capacity((1 - share) * band, snr[1])
        )

    best = minimize_scalar(last, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-12})
    end, bands = earliest_end(1e6, ready, snr, band)
    assert end == pytest.approx(best.fun, rel=1e-7)
    assert bands / band == pytest.approx([best.x, 1 - best.x], rel=1e-5)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(4, 9)), min_size=1, max_size=20), st.floats(4, 8))
def test_all_end_together_and_the_band_is_used_up(clients, width):
    ready, snr = np.array([c[0] for c in clients]), 10.0 ** np.array([c[1] for c in clients])
    end, bands = earliest_end(1e5, ready, snr, 10.0**width)
    assert bands.sum() == pytest.approx(10.0**width, rel=1e-12)
    ends = [one + 1e5 / capacity(band, heard) for one, band, heard in zip(ready, bands, snr, strict=True)]
    np.testing.assert_allclose(ends, end, rtol=1e-6)
