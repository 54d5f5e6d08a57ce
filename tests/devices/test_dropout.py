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


@pytest.mark.statistical
def test_each_phase_has_its_own_hazard():
    """Survival of the phases, 2, 5 and 4 s long, is exp(-rate * time), and within a phase dropouts follow its rate."""
    clients = 40_000
    law = PhaseHazard(downlink_per_s=0.1, compute_per_s=0.04, uplink_per_s=0.3)
    phases_s = np.repeat([[2.0], [5.0], [4.0]], clients, axis=1)
    gone_s = law.time_to_dropout_s(np.arange(clients), 1, Streams(4), phases_s)
    hazard = {0.5: 0.05, 2.0: 0.2, 3.0: 0.24, 7.0: 0.4, 8.0: 0.7, 11.0: 1.6}
    for time_s, summed in hazard.items():
        share = math.exp(-summed)
        error = 5 * math.sqrt(share * (1 - share) / clients)
        assert np.mean(gone_s > time_s) == pytest.approx(share, abs=error)


@pytest.mark.statistical
def test_a_phase_without_hazard_is_safe_and_equal_rates_are_the_plain_hazard():
    clients = np.arange(2000)
    phases_s = np.stack([np.full(2000, 1.0), np.linspace(0.1, 9.0, 2000), np.full(2000, 5.0)])
    only_work = PhaseHazard(downlink_per_s=0.0, compute_per_s=2.0, uplink_per_s=0.0)
    gone_s = only_work.time_to_dropout_s(clients, 1, Streams(5), phases_s)
    lost = np.isfinite(gone_s)
    assert np.all((gone_s[lost] >= 1.0) & (gone_s[lost] <= 1.0 + phases_s[1, lost]))
    share = 1 - np.exp(-2.0 * phases_s[1])
    assert lost.mean() == pytest.approx(share.mean(), abs=5 * math.sqrt(0.25 / 2000))
    alike = PhaseHazard(downlink_per_s=0.3, compute_per_s=0.3, uplink_per_s=0.3)
    plain = Hazard(rate_per_s=0.3).time_to_dropout_s(clients, 2, Streams(5))
    np.testing.assert_allclose(alike.time_to_dropout_s(clients, 2, Streams(5), phases_s), plain, rtol=1e-12)
    endless = np.stack([np.full(2000, np.inf), *phases_s[1:]])
    np.testing.assert_allclose(alike.time_to_dropout_s(clients, 2, Streams(5), endless), plain, rtol=1e-12)


def test_no_hazard_at_all_is_refused():
    with pytest.raises(ValidationError, match="at least one above 0"):
        PhaseHazard(downlink_per_s=0.0, compute_per_s=0.0, uplink_per_s=0.0)
    law = PhaseHazard(downlink_per_s=1.0, compute_per_s=0.0, uplink_per_s=0.0)
    with pytest.raises(ValueError, match="phases_s"):
        law.time_to_dropout_s(np.arange(2), 1, Streams(0))
