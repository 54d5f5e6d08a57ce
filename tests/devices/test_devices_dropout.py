"""Dropouts: a constant hazard, or never."""

import math

import numpy as np
import pytest
from scipy import stats

from fedsim.devices import DROPOUTS, Hazard, Never
from fedsim.streams import Streams


def test_never():
    law = DROPOUTS.make("never")
    assert law == Never()
    assert not law.possible
    np.testing.assert_array_equal(law.time_to_dropout_s(np.arange(3), 1, Streams(0)), [math.inf] * 3)


@pytest.mark.statistical
def test_hazard_is_exponential():
    clients = 20_000
    law = Hazard(rate_per_s=0.25)
    assert law.possible
    times = law.time_to_dropout_s(np.arange(clients), 1, Streams(1))
    limit = math.sqrt(math.log(2 / 1e-6) / (2 * clients))  # Dvoretzky-Kiefer-Wolfowitz at 1e-6
    assert stats.kstest(times, stats.expon(scale=4.0).cdf).statistic < limit


@pytest.mark.statistical
def test_survival_of_a_participation():
    times = np.array([Hazard(rate_per_s=0.5).time_to_dropout_s(np.arange(20), r, Streams(2)) for r in range(1, 1001)])
    share = math.exp(-1)
    assert np.mean(times > 2.0) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / times.size))


def test_draws_do_not_depend_on_the_cohort():
    law, streams = Hazard(rate_per_s=1.0), Streams(3)
    everyone = law.time_to_dropout_s(np.arange(10), 4, streams)
    np.testing.assert_array_equal(law.time_to_dropout_s(np.array([8, 1]), 4, streams), everyone[[8, 1]])
    assert not np.any(law.time_to_dropout_s(np.arange(10), 5, streams) == everyone)
