"""Latency laws against scipy.stats and quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import integrate, stats

from fedsim.network import LATENCY_LAWS, Constant, Empirical, LogNormal, Normal, ShiftedExponential, Zero
from fedsim.streams import Streams
from tests.support.bounds import dkw

DRAWS = 20_000

LAWS = [
    Zero(),
    Constant(value_s=0.3),
    Normal(centre_s=0.1, std_s=0.05, floor_s=0.05),
    Normal(centre_s=2.0, std_s=0.1),
    Normal(centre_s=0.4, std_s=0.0, floor_s=0.5),
    LogNormal(median_s=0.2, sigma=0.7),
    LogNormal(median_s=0.2, sigma=0.0),
    ShiftedExponential(shift_s=0.1, scale_s=0.5),
    Empirical(values_s=(0.5, 0.1, 0.5, 2.0)),
]


def draws(law):
    return law.quantile(Streams(7).uniform("test", np.arange(DRAWS)))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_mean_is_the_integral_of_the_quantile(law):
    # Substituting u = Phi(z) makes the integrand smooth up to the kink at a floor or the steps of an empirical law.
    def integrand(z):
        return float(law.quantile(np.array([stats.norm.cdf(z)]))[0]) * stats.norm.pdf(z)

    kinks = [-1.0, *stats.norm.ppf([0.25, 0.75]), 0.0]
    value, _ = integrate.quad(integrand, -8, 8, points=sorted(kinks), limit=200, epsabs=1e-11)
    # Cutting |z| > 8 off loses less than 1e-13 of each of these laws.
    assert law.mean_s() == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "theory"),
    [
        (Normal(centre_s=2.0, std_s=0.1), stats.norm(2.0, 0.1)),
        (LogNormal(median_s=0.2, sigma=0.7), stats.lognorm(0.7, scale=0.2)),
        (ShiftedExponential(shift_s=0.1, scale_s=0.5), stats.expon(0.1, 0.5)),
    ],
)
@pytest.mark.statistical
def test_draws_follow_the_law(law, theory):
    assert stats.kstest(draws(law), theory.cdf).statistic < dkw(DRAWS)


@pytest.mark.statistical
def test_floor_is_a_point_mass_and_not_a_redraw():
    drawn = draws(Normal(centre_s=0.1, std_s=0.05, floor_s=0.05))
    share = stats.norm.cdf(-1.0)
    assert np.mean(drawn == 0.05) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / DRAWS))
    above = drawn[drawn > 0.05]
    truncated = stats.truncnorm(-1.0, np.inf, 0.1, 0.05)
    assert stats.kstest(above, truncated.cdf).statistic < dkw(above.size)


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e6), min_size=1, max_size=20), st.floats(1e-6, 1 - 1e-6))
def test_empirical_quantile_is_the_least_value_that_reaches_the_share(values, u):
    found = float(Empirical(values_s=tuple(values)).quantile(np.array([u]))[0])
    # Counting in whole values: at least u * n of them must lie at or below the quantile.
    reaching = [v for v in values if sum(w <= v for w in values) >= u * len(values)]
    assert found == min(reaching)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_times_are_finite_and_not_negative_in_the_far_tails(law):
    tails = law.quantile(np.array([2.0**-53, 0.5, 1 - 2.0**-53]))
    assert np.all(np.isfinite(tails))
    assert np.all(tails >= 0)
    assert np.all(np.diff(tails) >= 0)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("constant", {"value_s": -1.0}),
        ("constant", {"value_s": math.inf}),
        ("constant", {}),
        ("normal", {"centre_s": 0.1, "std_s": -0.1}),
        ("normal", {"centre_s": 0.1, "std_s": 0.1, "floor_s": -0.1}),
        ("log-normal", {"median_s": 0.1, "sigma": 11.0}),
        ("shifted-exponential", {"shift_s": 0.1, "scale_s": 0.0}),
        ("empirical", {"values_s": []}),
        ("empirical", {"values_s": [0.1, -0.1]}),
        ("empirical", {"values_s": [0.1, math.nan]}),
    ],
)
def test_impossible_laws_are_refused(kind, options):
    with pytest.raises(ValidationError):
        LATENCY_LAWS.make({"kind": kind, **options})
