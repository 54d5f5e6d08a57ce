"""Path loss by hand-worked numbers, shadowing by its law."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.network import PATH_LOSSES, FreeSpace, LogDistance
from fedsim.network.radio.shadowing import IndependentShadowing
from fedsim.streams import Streams
from tests.support.bounds import dkw


@pytest.mark.parametrize(
    ("law", "distance_m", "loss_db"),
    [
        (LogDistance(), 1000.0, 128.1),
        (LogDistance(), 100.0, 90.5),
        (LogDistance(), 500.0, 116.7812722),  # 128.1 - 37.6 * 0.301029996
        (LogDistance(exponent=2.0, reference_loss_db=40.0, reference_distance_m=1.0), 1.0, 40.0),
        (LogDistance(exponent=2.0, reference_loss_db=40.0, reference_distance_m=1.0), 200.0, 86.0205999),
        (LogDistance(exponent=3.5, reference_loss_db=40.0, reference_distance_m=10.0), 1000.0, 110.0),
    ],
)
def test_log_distance_by_hand(law, distance_m, loss_db):
    assert float(law.loss_db(distance_m)) == pytest.approx(loss_db, abs=1e-6)


@pytest.mark.parametrize("distance_km", [0.05, 0.3, 2.0])
def test_the_default_is_the_urban_macro_formula_of_tr_36_942(distance_km):
    """Section 4.5.2 with antennas 15 m above the roofs at 2,000 MHz, where its constant comes to 128.15 dB."""
    formula = 40 * (1 - 4e-3 * 15) * math.log10(distance_km) - 18 * math.log10(15) + 21 * math.log10(2000) + 80
    assert float(LogDistance().loss_db(1000 * distance_km)) == pytest.approx(formula, abs=0.06)


def test_loss_is_never_negative_even_at_the_antenna():
    np.testing.assert_array_equal(LogDistance().loss_db([[0.0], [1e-3]]), [[0.0], [0.0]])


@pytest.mark.statistical
def test_shadowing_is_normal_in_db():
    clients, sigma = 20_000, 8.0
    shadow = sigma * IndependentShadowing().standard(np.zeros((clients, 2)), 1, Streams(5))[:, 0]
    assert stats.kstest(shadow, stats.norm(0, sigma).cdf).statistic < dkw(clients)
    # The standard deviation of a sample deviation is sigma / sqrt(2 n).
    assert shadow.std() == pytest.approx(sigma, abs=5 * sigma / math.sqrt(2 * clients))


def test_shadowing_of_a_client_does_not_depend_on_the_crowd_or_the_sites():
    law = IndependentShadowing()
    many, few = (law.standard(np.zeros((k, 2)), sites, Streams(1)) for k, sites in ((12, 3), (5, 1)))
    np.testing.assert_array_equal(many[:5, :1], few)
    assert np.unique(many).size == many.size


@pytest.mark.parametrize(
    ("carrier_hz", "distance_m", "loss_db"),
    [
        # 20 log10(f / MHz) + 20 log10(d / km) + 32.4478
        (1e9, 1000.0, 60.0 + 0.0 + 32.4478),
        (2e9, 100.0, 66.0206 - 20.0 + 32.4478),
        (28e9, 50.0, 88.9432 - 26.0206 + 32.4478),
    ],
)
def test_free_space_by_hand(carrier_hz, distance_m, loss_db):
    assert float(FreeSpace(carrier_hz=carrier_hz).loss_db(distance_m)) == pytest.approx(loss_db, abs=1e-3)
    np.testing.assert_array_equal(FreeSpace(carrier_hz=carrier_hz).loss_db([0.0, 1e-4]), [0.0, 0.0])


@pytest.mark.parametrize("options", [{"exponent": 0.0}, {"reference_distance_m": 0.0}, {"exponnent": 2.0}])
def test_impossible_laws_are_refused(options):
    with pytest.raises(ValidationError):
        PATH_LOSSES.make({"kind": "log-distance", **options})
