"""The calibration of the Gaussian mechanism: its exact condition by integration, and older bounds."""

import math

import pytest
from hypothesis import example, given, strategies as st
from scipy import integrate, stats

from fedsim.privacy.gaussian import noise_multiplier


def divergence(multiplier, epsilon):
    """Integrate what normal noise of a sensitivity of 1 gives beyond ``e^epsilon`` times the other's density."""
    one, other = stats.norm(1.0, multiplier), stats.norm(0.0, multiplier)
    # The densities' ratio passes e^epsilon at this point, by their logarithms.
    start = 0.5 + epsilon * multiplier**2
    return integrate.quad(lambda x: one.pdf(x) - math.exp(epsilon) * other.pdf(x), start, start + 40 * multiplier)[0]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_the_noise_is_the_least_that_keeps_epsilon_and_delta(epsilon, delta):
    multiplier = noise_multiplier(epsilon, delta)
    assert divergence(multiplier, epsilon) == pytest.approx(delta, rel=1e-4)
    assert divergence(0.99 * multiplier, epsilon) > delta


@given(epsilon=st.floats(0, 1e30), delta=st.floats(1e-11, 0.999))
@example(epsilon=0.0, delta=6.103515625e-05)  # Brent's method took more than 100 steps
def test_every_cost_has_finite_noise_that_falls_with_it(epsilon, delta):
    multiplier = noise_multiplier(epsilon, delta)
    assert 0 < multiplier < math.inf
    assert noise_multiplier(2 * epsilon + 1.0, delta) < multiplier
    assert noise_multiplier(epsilon, delta / 2) >= multiplier * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.1), (math.nan, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0)])
def test_costs_out_of_range_are_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"^(epsilon|delta): .* is not allowed"):
        noise_multiplier(epsilon, delta)
