"""Laws of rounds, against theory; tolerances follow from the size of the sample."""

import math

import numpy as np
import pytest

from fedsim import simulate
from tests.support.short_runs import timed

EXPONENTIAL = {"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": 1.0}
LOG_NORMAL = {"kind": "log-normal", "median_s": 1.0, "sigma": 1.0}
SIGMAS = 4.5

pytestmark = pytest.mark.statistical


def run(policy, *, count, clients, cohort=None, uplink=EXPONENTIAL, **rounds):
    """Run rounds in which clients only send, each for a random time."""
    return simulate(
        timed(
            clients=clients,
            bits=1.0,
            cohort=cohort,
            network={"kind": "latency", "downlink": "zero", "uplink": uplink},
            rounds={"count": count, "policy": policy, **rounds},
        )
    )


def order_statistic(k, n):
    """Return mean and variance of the k-th smallest of n exponential numbers of mean 1 (Renyi 1953)."""
    steps = 1.0 / np.arange(n, n - k, -1)
    return steps.sum(), (steps**2).sum()


def close(values, mean, variance):
    return abs(np.mean(values) - mean) < SIGMAS * math.sqrt(variance / len(values))


@pytest.mark.parametrize("n", [4, 25])
def test_waiting_for_all_takes_the_expected_maximum(n):
    history = run("wait-for-all", count=300, clients=n)
    assert close(history.column("rounds", "duration_s"), *order_statistic(n, n))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "over_selection"), [(1, 10.0), (7, 10 / 7), (10, 1.3), (10, 1.0)])
def test_the_k_fastest_take_the_order_statistic(k, over_selection):
    asked = math.ceil(round(k * over_selection, 9))
    policy = {"kind": "k-fastest", "k": k, "over_selection": over_selection}
    history = run(policy, count=1000, clients=30, cohort=1)
    assert set(history.column("rounds", "selected")) == {asked}
    assert set(history.column("rounds", "delivered")) == {k}
    assert close(history.column("rounds", "duration_s"), *order_statistic(k, asked))


def test_a_quorum_takes_the_order_statistic():
    history = run({"kind": "quorum", "share": 0.31, "max_wait_s": 100.0}, count=300, clients=10)
    assert close(history.column("rounds", "duration_s"), *order_statistic(4, 10))


@pytest.mark.parametrize("deadline_s", [0.1, 1.0, 3.0])
def test_a_deadline_lets_in_what_the_distribution_says(deadline_s):
    rounds, clients = 150, 20
    history = run({"kind": "deadline", "deadline_s": deadline_s}, count=rounds, clients=clients)
    share = 1 - math.exp(-deadline_s)
    delivered = history.column("participations", "outcome") == "delivered"
    assert delivered.size == rounds * clients
    assert close(delivered, share, share * (1 - share))
    # A round lasts min(D, longest), whose mean is the integral of 1 - F(t) ** n from 0 to D.
    t = np.linspace(0, deadline_s, 20_001)
    survival = 1 - (1 - np.exp(-t)) ** clients
    mean_s = np.trapezoid(survival, t)
    variance = np.trapezoid(2 * t * survival, t) - mean_s**2
    assert close(history.column("rounds", "duration_s"), mean_s, max(variance, 1e-12))


def test_late_clients_that_finish_are_out_of_reach_for_as_long_as_they_work():
    """Deadline 1 s for all of 30: a client alternates between rounds in which it delivers, and late ones that take
    1 + Exp(1) s by the loss of memory. It starts at the first whole second after that, so that the number of
    rounds from one start to the next is 1 + floor(X) for X exponential, of mean 1 / (1 - 1 / e) (geometric).
    """
    history = run({"kind": "deadline", "deadline_s": 1.0}, count=60, clients=30, late="drop")
    by_client = np.lexsort((history.column("participations", "start_s"), history.column("participations", "client")))
    client = history.column("participations", "client")[by_client]
    number = history.column("participations", "round")[by_client]
    apart = np.diff(number)[np.diff(client) == 0]
    p = 1 - math.exp(-1)
    assert close(apart, 1 / p, (1 - p) / p**2)


BUFFERS = [(10, 20, EXPONENTIAL), (1, 20, EXPONENTIAL), (7, 5, LOG_NORMAL), (3, 1, LOG_NORMAL), (25, 60, LOG_NORMAL)]


@pytest.mark.slow
@pytest.mark.parametrize(("buffer", "concurrency", "uplink"), BUFFERS)
def test_mean_staleness_of_fedbuff_by_littles_law(buffer, concurrency, uplink):
    """A model is made once in K arrivals, while concurrency - 1 others are at work, and each of them becomes one
    version staler: the mean staleness is (concurrency - 1) / K, whatever the distribution. Over a finite run the sum
    over all models is exact, if those that are at work at the end are counted as stale as they have become.
    """
    count = 100
    history = run(
        {"kind": "fedbuff", "buffer": buffer, "concurrency": concurrency}, count=count, clients=80, uplink=uplink
    )
    fate = history.column("participations", "fate")
    staleness = history.column("participations", "staleness")[np.isin(fate, ["used", "stale-used"])]
    assert staleness.size == count * buffer
    at_work = fate == "wasted-late"
    assert np.count_nonzero(at_work) == concurrency - 1
    ages = count - history.column("participations", "start_version")[at_work]
    assert staleness.sum() + ages.sum() == count * (concurrency - 1)


def test_staleness_of_fedasync_by_littles_law():
    history = run({"kind": "fedasync", "concurrency": 12}, count=100, clients=40)
    fate = history.column("participations", "fate")
    merged = np.isin(fate, ["used", "stale-used"])
    ages = 100 - history.column("participations", "start_version")[~merged]
    assert history.column("participations", "staleness")[merged].sum() + ages.sum() == 100 * 11


@pytest.mark.parametrize("uplink", [EXPONENTIAL, LOG_NORMAL], ids=["exponential", "log-normal"])
def test_concurrency_is_kept_at_all_times(uplink):
    """Little's law in time: the sojourns add up to concurrency times the length of the run."""
    history = run({"kind": "fedbuff", "buffer": 4, "concurrency": 15}, count=40, clients=40, uplink=uplink)
    sojourns_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    assert sojourns_s.sum() == pytest.approx(15 * history.column("rounds", "end_s")[-1], rel=1e-9)


@pytest.mark.slow
def test_throughput_of_fedbuff():
    """By the loss of memory, arrivals from N at work are a Poisson process of rate N."""
    buffer, concurrency, count = 10, 20, 200
    history = run({"kind": "fedbuff", "buffer": buffer, "concurrency": concurrency}, count=count, clients=100)
    mean_s, variance = buffer / concurrency, buffer / concurrency**2
    assert close(history.column("rounds", "duration_s"), mean_s, variance)
