"""Dropouts: a constant hazard, or never."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.devices import DROPOUTS, Hazard, Never
from fedsim.devices.dropout import PhaseHazard
from fedsim.streams import Streams
from tests.support.bounds import dkw


def test_never():
    law = DROPOUTS.make("never")
    assert law == Never()
    assert not law.possible
    np.testing.assert_array_equal(law.time_to_dropout_s(np.arange(3), 1, Streams(0)), [math.inf] * 3)


@pytest.mark.statistical
def test_hazard_is_exponential():
    law = Hazard(rate_per_s=0.25)
    assert law.possible
    times = law.time_to_dropout_s(np.arange(20_000), 1, Streams(1))
    assert stats.kstest(times, stats.expon(scale=4.0).cdf).statistic < dkw(times.size)


def test_draws_do_not_depend_on_the_cohort():
    law, streams = Hazard(rate_per_s=1.0), Streams(3)
    ids = law.time_to_dropout_s(np.arange(10), 4, streams)
    np.testing.assert_array_equal(law.time_to_dropout_s(np.array([8, 1]), 4, streams), ids[[8, 1]])
    assert not np.any(law.time_to_dropout_s(np.arange(10), 5, streams) == ids)


@pytest.mark.parametrize(
    "rates", [(0.1, 0.04, 0.3), (0.0, 2.0, 0.0), (0.3, 0.3, 0.3), (0.0, 0.0, 1.0), (0.2, 0.0, 0.0)]
)
@pytest.mark.parametrize("downlink_s", [2.0, math.inf])
def test_hazards_of_phases_add_up_to_that_of_the_client_one_after_another(rates, downlink_s):
    """The hazard up to a dropout is exponential with mean 1; the last phase goes on as long as it may."""
    law = PhaseHazard(**dict(zip(("downlink_per_s", "compute_per_s", "uplink_per_s"), rates, strict=True)))
    lengths_s = np.stack([np.full(500, downlink_s), np.linspace(0.1, 9.0, 500), np.full(500, 5.0)])
    found_s = law.time_to_dropout_s(np.arange(500), 1, Streams(5), lengths_s)
    hazards = Hazard(rate_per_s=1.0).time_to_dropout_s(np.arange(500), 1, Streams(5))
    for found, hazard, lengths in zip(found_s, hazards, lengths_s.T, strict=True):
        now_s, left, gone_s = 0.0, hazard, math.inf
        for rate, length in zip(rates, [*lengths[:-1], math.inf], strict=True):
            if rate and gone_s == math.inf and left <= rate * length:
                gone_s = now_s + left / rate
            left -= rate * length if rate else 0.0
            now_s += length
        assert found == pytest.approx(gone_s, rel=1e-9)


def test_no_hazard_at_all_is_refused():
    with pytest.raises(ValidationError, match="at least one above 0"):
        PhaseHazard(downlink_per_s=0.0, compute_per_s=0.0, uplink_per_s=0.0)
    law = PhaseHazard(downlink_per_s=1.0, compute_per_s=0.0, uplink_per_s=0.0)
    with pytest.raises(ValueError, match="phases_s"):
        law.time_to_dropout_s(np.arange(2), 1, Streams(0))
