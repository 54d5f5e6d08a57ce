"""Decibels and thermal noise against numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.units import db_to_linear, linear_to_db, share_of, thermal_noise_dbm


@given(st.floats(-200, 200))
def test_decibels_there_and_back(level_db):
    assert np.isclose(linear_to_db(db_to_linear(level_db)), level_db, atol=1e-9)


def test_thermal_noise_of_textbook_bandwidths():
    """k T at 290 K is 4.0039e-21 W/Hz = -173.975 dBm/Hz; 10 MHz adds 70 dB, a noise figure adds itself."""
    np.testing.assert_allclose(thermal_noise_dbm([1.0, 180e3, 10e6]), [-173.975, -121.423, -103.975], atol=1e-3)
    np.testing.assert_allclose(thermal_noise_dbm(10e6, noise_figure_db=9.0), -94.975, atol=1e-3)


def test_a_share_is_a_number_or_a_text_in_per_cent():
    assert [share_of(text) for text in (0.8, "80%", " 80 % ", "57%", "0.1 %", 1)] == [0.8, 0.8, 0.8, 0.57, 0.001, 1]
    assert [share_of(none) for none in ("80", "x %", None, True)] == ["80", "x %", None, True]
    with pytest.raises(ValueError, match=r"a share of at most 1: 80 % is 0\.8 or '80 %'"):
        share_of(80)
