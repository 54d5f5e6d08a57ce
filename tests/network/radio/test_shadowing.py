"""Correlated shadowing against the exponential law, over seeds and over places."""

import math

import numpy as np
import pytest
from scipy import stats

from fedsim.errors import ScenarioError
from fedsim.network import CorrelatedShadowing
from fedsim.network.radio.shadowing import MOST_EXACT
from fedsim.streams import Streams
from tests.support.bounds import dkw

SEEDS = 600


@pytest.mark.statistical
@pytest.mark.parametrize("indoor_m", [None, pytest.param(7.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["field", "exact"])
def test_values_are_normal_and_correlated_over_distance_and_between_sites(method, indoor_m):
    """The first two clients are in buildings, for which the correlation may have a distance of its own."""
    law = CorrelatedShadowing(
        decorrelation_m=50.0, site_correlation=0.5, method=method, indoor_decorrelation_m=indoor_m
    )
    along_m, indoor = np.array([0.0, 10.0, 50.0, 120.0, 400.0]), np.arange(5) < 2
    place = np.column_stack([1000.0 + along_m * 0.6, -300.0 + along_m * 0.8])
    value = np.stack([law.standard_in_buildings(place, 2, Streams(seed), indoor) for seed in range(SEEDS)])
    # Deviations: of a correlation of n normal pairs at most 1/sqrt(n), of a mean 1/sqrt(n), of a variance sqrt(2/n).
    limit = 5 / math.sqrt(SEEDS)
    assert np.all(np.abs(value.mean(axis=0)) < limit)
    assert np.all(np.abs(value.var(axis=0) - 1) < limit * math.sqrt(2))
    assert stats.kstest(value[:, 0, 0], stats.norm.cdf).statistic < dkw(SEEDS)
    flat = np.corrcoef(value.transpose(2, 1, 0).reshape(10, SEEDS))
    decorrelation_m = np.where(indoor & (indoor_m is not None), indoor_m or 0.0, 50.0)
    apart = np.exp(-np.abs(along_m[:, None] - along_m) / decorrelation_m)
    apart *= (indoor[:, None] == indoor) | (indoor_m is None)
    theory = np.block([[apart, 0.5 * apart], [0.5 * apart, apart]])
    assert np.all(np.abs(flat - theory) < limit)


@pytest.mark.statistical
def test_one_field_over_a_wide_area_has_the_sigma_and_the_correlation():
    # 2,500 places 500 m apart are nearly independent (e^-10), so that one field shows its own law.
    axis = 500.0 * np.arange(50)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    law = CorrelatedShadowing(decorrelation_m=50.0, site_correlation=0.0)
    here, there = (law.standard(grid + shift, 1, Streams(4))[:, 0] for shift in (0.0, [25.0, 0.0]))
    # The power of a sum of 256 waves of random phase over this area varies little beyond that of 2,500 draws.
    assert here.std() == pytest.approx(1.0, abs=5 / math.sqrt(2 * 2500) + 3 / 256)
    assert np.corrcoef(here, there)[0, 1] == pytest.approx(math.exp(-0.5), abs=5 / math.sqrt(2500))


def test_without_buildings_or_a_distance_for_them_nothing_differs():
    place, nobody = np.random.default_rng(1).uniform(-300, 300, (30, 2)), np.zeros(30, dtype=bool)
    law = CorrelatedShadowing(decorrelation_m=20.0, indoor_decorrelation_m=7.0)
    outside = law.standard(place, 2, Streams(0))
    np.testing.assert_array_equal(law.standard_in_buildings(place, 2, Streams(0), nobody), outside)
    alike = CorrelatedShadowing(decorrelation_m=20.0).standard_in_buildings(place, 2, Streams(0), ~nobody)
    np.testing.assert_array_equal(alike, outside)
    some = np.arange(30) % 3 == 0
    mixed = law.standard_in_buildings(place, 2, Streams(0), some)
    np.testing.assert_array_equal(mixed[~some], outside[~some])
    moved = law.standard_in_buildings(place[[4, 3]], 2, Streams(0), some[[4, 3]], np.array([4, 3]))
    np.testing.assert_array_equal(moved, mixed[[4, 3]])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["field", "exact"])
def test_a_further_client_or_site_changes_nobody(method):
    place = np.random.default_rng(0).uniform(-500, 500, size=(3000, 2))
    law = CorrelatedShadowing(method=method)
    many, few = law.standard(place, 3, Streams(8)), law.standard(place[:40], 1, Streams(8))
    np.testing.assert_allclose(many[:40, :1], few, rtol=0, atol=1e-9 if method == "exact" else 0)


def test_clients_at_one_place_are_shadowed_alike():
    place = np.array([[10.0, 20.0], [10.0, 20.0]])
    np.testing.assert_array_equal(np.diff(CorrelatedShadowing().standard(place, 2, Streams(0)), axis=0), 0.0)
    exact = CorrelatedShadowing(method="exact").standard(place, 2, Streams(0))
    np.testing.assert_allclose(exact[0], exact[1], atol=1e-4)


def test_the_exact_method_is_for_small_crowds():
    with pytest.raises(ScenarioError, match=r"method: 'exact' .* 4097 clients"):
        CorrelatedShadowing(method="exact").standard(np.zeros((MOST_EXACT + 1, 2)), 1, Streams(0))


def test_a_field_is_the_sum_of_its_waves_in_double_precision():
    # Far out and with a short decorrelation, where phases are tens of thousands of turns.
    place = np.random.default_rng(1).uniform(-5000, 5000, (700, 2))
    rng = Streams(3).generator("shadowing-field", 0)
    u = (np.arange(256) + rng.random(256)) / 256
    number = np.sqrt((1 - u) ** -2 - 1) / 7.0
    direction, phase = 2 * np.pi * rng.random((2, 256))
    waves = np.stack([number * np.cos(direction), number * np.sin(direction)])
    theory = [math.sqrt(2 / 256) * math.fsum(np.cos(waves[0] * x + waves[1] * y + phase)) for x, y in place]
    law = CorrelatedShadowing(decorrelation_m=7.0, site_correlation=0.0)
    field = law.standard(place, 1, Streams(3))[:, 0]
    np.testing.assert_allclose(field, theory, rtol=0, atol=2e-6)
    for few in (1, 2, 513):
        np.testing.assert_array_equal(law.standard(place[:few], 1, Streams(3))[:, 0], field[:few])
