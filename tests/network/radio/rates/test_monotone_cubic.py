"""The monotone cubic against SciPy's, and against what its definition says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from fedsim.network.radio.rates.monotone_cubic import monotone_cubic

# Of numbers below 1e-12 SciPy's own slopes overflow.
VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 12)), min_size=3, max_size=12)


@given(values=VALUES, seed=st.integers(0, 100))
def test_numbers_of_scipy_bit_by_bit(values: list[float], seed: int) -> None:
    """Ties, extremes and both ends are among the points; places at the points and between them."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.01, 3.0, len(values)))
    y = np.array(values)
    at = np.clip(np.concatenate([x, rng.uniform(x[0], x[-1], 30)]), x[0], x[-1])
    assert np.array_equal(monotone_cubic(x, y, at), PchipInterpolator(x, y)(at))


def test_shape_of_the_places() -> None:
    x = np.array([0.0, 1.0, 2.0])
    assert monotone_cubic(x, x, np.full((2, 3), 0.5)).shape == (2, 3)


def test_a_line_stays_a_line() -> None:
    x = np.array([0.0, 1.0, 3.0, 4.0])
    at = np.array([0.0, 0.25, 2.0, 4.0])
    assert monotone_cubic(x, 3.0 - 2.0 * x, at) == pytest.approx(3.0 - 2.0 * at, rel=1e-15)


def test_monotone_where_the_points_are() -> None:
    """A cubic spline would fall below 0 between the first two points and rise above 1 after the third."""
    x = np.arange(6.0)
    values = monotone_cubic(x, np.array([0.0, 0.0, 1.0, 1.0, 1.0, 5.0]), np.linspace(0.0, 5.0, 401))
    assert np.all(np.diff(values) >= 0)
    assert np.all(values[:81] == 0)
    assert np.all(values[160:321] == 1)
