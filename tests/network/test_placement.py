"""Placements: uniform over the area, one client at a time."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.errors import DataError, ScenarioError
from fedsim.network import PLACEMENTS, Annulus, Disc, Given
from fedsim.streams import Streams

CLIENTS = 20_000
KS_LIMIT = math.sqrt(math.log(2 / 1e-6) / (2 * CLIENTS))  # Dvoretzky-Kiefer-Wolfowitz at 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "inner_m", "outer_m"),
    [(Disc(radius_m=200.0, min_distance_m=50.0), 50.0, 200.0), (Annulus(inner_m=300.0, outer_m=400.0), 300.0, 400.0)],
)
def test_places_are_uniform_over_the_area(law, inner_m, outer_m):
    x, y = law.positions(CLIENTS, Streams(1)).T
    squared, least, most = x**2 + y**2, inner_m**2, outer_m**2
    assert squared.min() >= least * (1 - 1e-12)
    assert squared.max() <= most * (1 + 1e-12)
    assert stats.kstest(squared, stats.uniform(least, most - least).cdf).statistic < KS_LIMIT
    angle = np.arctan2(y, x)
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).statistic < KS_LIMIT
    # Distance and direction are independent: the correlation's standard deviation is 1 / sqrt(n).
    assert abs(np.corrcoef(squared, angle)[0, 1]) < 5 / math.sqrt(CLIENTS)


@pytest.mark.parametrize("law", [Disc(radius_m=500.0), Annulus(inner_m=0.0, outer_m=1.0)])
def test_a_further_client_moves_nobody(law):
    np.testing.assert_array_equal(law.positions(11, Streams(3))[:10], law.positions(10, Streams(3)))
    assert not np.any(law.positions(10, Streams(4)) == law.positions(10, Streams(3)))


def test_given_positions_are_taken_as_they_are_and_must_fit_the_crowd():
    placement = PLACEMENTS.make({"kind": "given", "positions_m": [[1, 2.5], [-3.0, 0.0]]})
    np.testing.assert_array_equal(placement.positions(2, Streams(0)), [[1.0, 2.5], [-3.0, 0.0]])
    assert PLACEMENTS.make(PLACEMENTS.describe(placement)) == placement
    with pytest.raises(ScenarioError, match=r"1 positions .* 3 clients"):
        Given(positions_m=((0.0, 1.0),)).positions(3, Streams(0))


def test_positions_from_a_file(tmp_path):
    path = tmp_path / "crowd.csv"
    path.write_text("name,y_m,x_m\na,2.5,1\nb,0,-3e2\nc,7,8\n", encoding="utf-8")
    placement = PLACEMENTS.make({"kind": "file", "path": str(path)})
    np.testing.assert_array_equal(placement.positions(3, Streams(0)), [[1.0, 2.5], [-300.0, 0.0], [8.0, 7.0]])
    np.testing.assert_array_equal(placement.positions(2, Streams(9)), [[1.0, 2.5], [-300.0, 0.0]])
    with pytest.raises(DataError, match=r"crowd\.placement\.path: .*: it has 3 rows; .* 4 clients"):
        placement.positions(4, Streams(0))


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "annulus", "inner_m": 5.0, "outer_m": 5.0},
        {"kind": "hexagons", "inter_site_distance_m": 0.0},
        {"kind": "hexagons", "inter_site_distance_m": 9.0, "rings": 11},
        {"kind": "file"},
        {"kind": "disc"},
        {"kind": "disc", "radius_m": -1.0},
        {"kind": "disc", "radius_m": 5.0},
        {"kind": "disc", "radius_m": 50.0, "min_distance_m": -1.0},
        {"kind": "given", "positions_m": []},
        {"kind": "given", "positions_m": [[1.0]]},
        {"kind": "given", "positions_m": [[1.0, math.inf]]},
        {"kind": "circle", "radius_m": 50.0},
    ],
)
def test_impossible_placements_are_refused(table):
    with pytest.raises((ValidationError, ValueError)):
        PLACEMENTS.make(table)
