"""Compute times: speeds over clients, jitter over rounds."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.devices import COMPUTE_TIMES, Devices, Never, Rate
from tests.support.bounds import dkw
from tests.support.media import of_crowd

CLIENTS = 20_000
KS_LIMIT = dkw(CLIENTS)


@pytest.mark.statistical
def test_speeds_are_log_normal_around_the_median():
    times = of_crowd(Rate(samples_per_s=50.0, spread_sigma=0.5), CLIENTS, 1)
    speed = 1 / times.expected_s(np.ones(CLIENTS))
    assert stats.kstest(speed, stats.lognorm(0.5, scale=50.0).cdf).statistic < KS_LIMIT


@pytest.mark.statistical
def test_jitter_is_log_normal_with_mean_one():
    sigma = 0.3
    times = of_crowd(Rate(samples_per_s=1.0, spread_sigma=0.0, jitter_sigma=sigma), CLIENTS, 2)
    jitter = times.duration_s(np.arange(CLIENTS), 5, np.ones(CLIENTS))
    assert stats.kstest(jitter, stats.lognorm(sigma, scale=math.exp(-(sigma**2) / 2)).cdf).statistic < KS_LIMIT
    # Variance of a log-normal with mean 1: exp(sigma^2) - 1.
    assert jitter.mean() == pytest.approx(1.0, abs=5 * math.sqrt(math.expm1(sigma**2) / CLIENTS))


def test_time_is_samples_over_speed_by_hand():
    times = of_crowd(Rate(samples_per_s=40.0, spread_sigma=0.0, jitter_sigma=0.0), 2)
    np.testing.assert_allclose(times.duration_s(np.array([1, 0]), 1, np.array([20.0, 80.0])), [0.5, 2.0])
    np.testing.assert_allclose(times.expected_s(np.array([20.0, 80.0])), [0.5, 2.0])
    times = of_crowd(COMPUTE_TIMES.make("zero"), 4)
    np.testing.assert_array_equal(times.duration_s(np.array([0, 3]), 1, np.array([5.0, 5.0])), [0.0, 0.0])
    np.testing.assert_array_equal(times.expected_s(np.ones(4)), np.zeros(4))
    devices = Devices()
    assert np.all(of_crowd(devices.compute, 5).expected_s(np.ones(5)) > 0)
    assert devices.dropout == Never()


SPREAD = {"kind": "shifted-exponential", "shift": 0.5}


@pytest.mark.parametrize(
    ("tables", "may_lose_clients"),
    [
        ({"compute": {"kind": "rate", "samples_per_s": 7}, "dropout": {"kind": "hazard", "rate_per_s": 0.1}}, True),
        ({"compute": {"kind": "flops", "flops_per_s": 1e9, "spread": SPREAD}}, False),
        ({"availability": "always"}, False),
        ({"availability": {"kind": "markov", "mean_on_s": 4, "mean_off_s": 5}}, True),
        ({"availability": "diurnal"}, True),
        ({"availability": "flash"}, True),
    ],
)
def test_who_may_lose_clients(tables, may_lose_clients):
    assert Devices(**tables).may_lose_clients == may_lose_clients


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"compute": "rate"}, ("compute", "samples_per_s")),
        ({"compute": {"kind": "rate", "samples_per_s": 0.0}}, ("compute", "samples_per_s")),
        ({"compute": {"kind": "rate", "samples_per_s": 1.0, "jitter_sigma": -0.1}}, ("compute", "jitter_sigma")),
        ({"compute": "raet"}, ("compute",)),
        ({"dropout": {"kind": "hazard", "rate_per_s": 0.0}}, ("dropout", "rate_per_s")),
        ({"dropout": "hazard"}, ("dropout", "rate_per_s")),
        ({"battery": 1}, ("battery",)),
        ({"compute": {"kind": "flops"}}, ("compute", "flops_per_s")),
        ({"compute": {"kind": "flops", "flops_per_s": 1e9, "load": 0.5}}, ("compute", "load")),
        ({"compute": {"kind": "flops", "flops_per_s": 1e9, "heterogeneity": -1.0}}, ("compute", "heterogeneity")),
        ({"compute": {"kind": "flops", "flops_per_s": 1e9, "spread": "normal"}}, ("compute", "spread")),
        ({"compute": {"kind": "fedscale", "steps": 3}}, ("compute",)),
        ({"availability": {"kind": "bernoulli", "probability": 0.0}}, ("availability", "probability")),
        ({"availability": {"kind": "markov", "mean_on_s": 1.0}}, ("availability", "mean_off_s")),
        ({"availability": {"kind": "diurnal", "share_by_hour": [0.1] * 23}}, ("availability", "share_by_hour")),
        ({"availability": {"kind": "flash", "never_share": 1.5}}, ("availability", "never_share")),
        ({"availability": "sometimes"}, ("availability",)),
    ],
)
def test_wrong_settings_are_refused_by_path(table, path):
    with pytest.raises(ValidationError) as caught:
        Devices.model_validate(table)
    assert caught.value.errors()[0]["loc"] == path
