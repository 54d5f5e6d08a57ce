"""Latency networks: independence of draws, spread over clients, and the two-speed population of PAUSE."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.network import NETWORKS, Constant, LatencyNetwork, LogNormal, ShiftedExponential, TwoSpeed
from fedsim.testing import check_network
from tests.support.bounds import dkw
from tests.support.media import built


def stand(clients):
    return np.zeros((clients, 2))


def zeros(client):
    return np.zeros(client.size)


SPREAD = LatencyNetwork(
    downlink=LogNormal(median_s=0.1, sigma=0.4), uplink=ShiftedExponential(shift_s=0.2, scale_s=0.3), spread_sigma=0.6
)


def test_draws_do_not_depend_on_the_cohort_or_the_crowd():
    small, large = built(SPREAD, stand(20), 1), built(SPREAD, stand(27), 1)
    everyone, some = np.arange(20), np.array([13, 2, 7])
    for ask in ("downlink_s", "uplink_s"):
        all_20 = getattr(small, ask)(everyone, 4, zeros(everyone), 0.0)
        np.testing.assert_array_equal(getattr(large, ask)(everyone, 4, zeros(everyone), 0.0), all_20)
        np.testing.assert_array_equal(getattr(small, ask)(some, 4, zeros(some), 1e9), all_20[some])
    np.testing.assert_array_equal(large.expected_uplink_s(0.0)[:20], small.expected_uplink_s(0.0))


def test_the_contract_is_kept_where_clients_differ():
    check_network(SPREAD, draws=1000, rtol=0.0)


def test_directions_are_drawn_independently():
    same = LatencyNetwork(downlink=LogNormal(median_s=1.0, sigma=1.0), uplink=LogNormal(median_s=1.0, sigma=1.0))
    client = np.arange(2000)
    links = built(same, stand(2000), 5)
    down, up = (np.log(ask(client, 1, zeros(client), 0.0)) for ask in (links.downlink_s, links.uplink_s))
    # The correlation of 2000 independent pairs has a standard deviation of 1 / sqrt(2000).
    assert abs(np.corrcoef(down, up)[0, 1]) < 5 / math.sqrt(2000)


@pytest.mark.statistical
def test_spread_is_log_normal_with_mean_one_and_common_to_both_directions():
    clients, sigma = 20_000, 0.5
    network = LatencyNetwork(downlink=Constant(value_s=2.0), uplink=Constant(value_s=3.0), spread_sigma=sigma)
    links = built(network, stand(clients), 3)
    client = np.arange(clients)
    factor = links.downlink_s(client, 1, zeros(client), 0.0) / 2.0
    np.testing.assert_allclose(links.uplink_s(client, 9, zeros(client), 0.0) / 3.0, factor, rtol=1e-12)
    assert stats.kstest(factor, stats.lognorm(sigma, scale=math.exp(-(sigma**2) / 2)).cdf).statistic < dkw(clients)
    # Variance of a log-normal with mean 1: exp(sigma^2) - 1.
    assert np.mean(factor) == pytest.approx(1.0, abs=5 * math.sqrt(math.expm1(sigma**2) / clients))


def centres_by_hand(fast, slow):
    return [0.05 + 0.15 * (i + 1) / fast for i in range(fast)] + [0.70 + 0.20 * (j + 1) / slow for j in range(slow)]


@pytest.mark.parametrize(("clients", "fast", "slow"), [(30, 15, 15), (300, 150, 150), (7, 3, 4), (1, 0, 1)])
def test_two_speed_centres(clients, fast, slow):
    links = built(TwoSpeed(std_s=0.0), stand(clients))
    client = np.arange(clients)
    by_hand = centres_by_hand(fast, slow)
    np.testing.assert_allclose(links.uplink_s(client, 1, zeros(client), 0.0), by_hand, rtol=1e-12)
    np.testing.assert_allclose(links.expected_uplink_s(0.0), by_hand, rtol=1e-12)
    np.testing.assert_array_equal(links.downlink_s(client, 1, zeros(client), 0.0), np.zeros(clients))
    np.testing.assert_array_equal(links.expected_downlink_s(0.0), np.zeros(clients))


def test_two_speed_expectation_is_that_of_a_floored_normal():
    links = built(TwoSpeed(), stand(30))
    for centre, found in zip(centres_by_hand(15, 15), links.expected_uplink_s(0.0), strict=True):
        theory = stats.norm(centre, 0.05).expect(lambda x: max(0.05, x), lb=0.05) + 0.05 * stats.norm.cdf(
            0.05, centre, 0.05
        )
        assert found == pytest.approx(theory, rel=1e-9)


def test_two_speed_luck_does_not_depend_on_the_crowd():
    deep = TwoSpeed(floor_s=0.0, fast_from_s=5.0, fast_to_s=6.0, slow_from_s=7.0, slow_to_s=8.0)
    client = np.arange(10)
    luck = [
        links.uplink_s(client, 3, zeros(client), 0.0) - links.expected_uplink_s(0.0)[:10]
        for links in (built(deep, stand(10), 4), built(deep, stand(50), 4))
    ]
    np.testing.assert_allclose(luck[0], luck[1], atol=1e-12)


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"kind": "latency", "downlink": "zero"}, ("uplink",)),
        ({"kind": "latency", "downlink": "zero", "uplink": "normall"}, ("uplink",)),
        ({"kind": "latency", "downlink": "zero", "uplink": "zero", "spread_sigma": -1.0}, ("spread_sigma",)),
        ({"kind": "pause-two-speed", "std_s": -0.1}, ("std_s",)),
        ({"kind": "pause-two-speed", "fast_from_s": 0.3}, ()),
        ({"kind": "pause-two-speed", "std": 0.1}, ("std",)),
    ],
)
def test_wrong_settings_are_refused_by_path(table, path):
    with pytest.raises(ValidationError) as caught:
        NETWORKS.make(table)
    assert caught.value.errors()[0]["loc"] == path
    assert path or "fast_from_s = 0.3 is not allowed" in str(caught.value)


@pytest.mark.statistical
def test_two_speed_draws_are_normal_around_each_clients_centre():
    links, slow = built(TwoSpeed(), stand(20_000), 2), np.arange(10_000, 20_000)
    centred_s = links.uplink_s(slow, 3, zeros(slow), 0.0) - centres_by_hand(10_000, 10_000)[10_000:]
    assert stats.kstest(centred_s, stats.norm(0.0, 0.05).cdf).statistic < dkw(slow.size)
    assert centred_s.std() == pytest.approx(0.05, rel=4 / math.sqrt(2 * slow.size))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("clients", "cohort", "chosen", "reported_s"),
    [
        *((30, 30, "uniform", 0.94), (30, 5, "uniform", 0.84), (30, 5, "fastest", 0.14)),
        *((300, 15, "uniform", 0.905), (300, 15, "fastest", 0.144)),
    ],
)
def test_two_speed_round_times_are_those_in_the_logs_of_the_reference_code(clients, cohort, chosen, reported_s):
    """Means of some 300 rounds, printed with two or three digits."""
    links, rng = built(TwoSpeed(), stand(clients), 2), np.random.default_rng(11)
    cohorts = [rng.permutation(clients)[:cohort] if chosen == "uniform" else np.arange(cohort) for _ in range(3000)]
    took_s = np.array([links.uplink_s(row, r, zeros(row), 0.0).max() for r, row in enumerate(cohorts, start=1)])
    assert took_s.mean() == pytest.approx(reported_s, abs=5 * took_s.std() / math.sqrt(300) + 0.005)
