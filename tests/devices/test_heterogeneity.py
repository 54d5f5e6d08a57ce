"""Work counted in operations: laws of speed, jitter, load, the dial of heterogeneity, FedScale's rule."""

import math
import pickle

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim import simulate
from fedsim.devices import COMPUTE_TIMES, HETEROGENEITY_LAWS
from fedsim.devices.heterogeneity import mean_slowdown, slowdown
from fedsim.errors import DataError, ScenarioError
from fedsim.network import NETWORKS
from fedsim.streams import Streams
from tests.support.bounds import dkw
from tests.support.media import built, of_crowd
from tests.support.short_runs import timed

CLIENTS = 20_000
KS_LIMIT = dkw(CLIENTS)
EACH = np.arange(CLIENTS)
FIXED = {"spread": "fixed", "jitter": "fixed"}


def times(clients=CLIENTS, seed=1, flops_per_sample=1e6, **options):
    law = COMPUTE_TIMES.make({"kind": "flops", "flops_per_s": 1e9, **FIXED, **options})
    return of_crowd(law, clients, seed, flops_per_sample=flops_per_sample)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("table", "oracle"),
    [
        ({"kind": "log-normal", "sigma": 0.6}, stats.lognorm(0.6, scale=math.exp(-0.18))),
        ({"kind": "shifted-exponential", "shift": 0.4}, stats.expon(0.4, 0.6)),
    ],
    ids=["log-normal", "shifted-exponential"],
)
@pytest.mark.parametrize("slot", ["spread", "jitter"])
def test_laws_of_devices_and_of_rounds(table, oracle, slot):
    found = times(**{slot: table})
    factor = found.duration_s(EACH, 3, np.full(CLIENTS, 1000.0))  # a mean of 1 s
    assert stats.kstest(factor, oracle.cdf).statistic < KS_LIMIT
    assert oracle.mean() == pytest.approx(1.0)
    assert factor.mean() == pytest.approx(1.0, abs=5 * oracle.std() / math.sqrt(CLIENTS))
    again = found.duration_s(EACH, 4, np.full(CLIENTS, 1000.0))
    assert np.array_equal(factor, again) == (slot == "spread"), "devices keep their factor, rounds do not"


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("table", "deviation"),
    [
        # Standard deviations of the laws spread by h, in closed form.
        ({"kind": "log-normal", "sigma": 0.3}, lambda h: math.sqrt(math.expm1((0.3 * h) ** 2))),
        ({"kind": "shifted-exponential", "shift": 0.75}, lambda h: 0.25 * h),
    ],
)
def test_heterogeneity_raises_the_spread_at_a_constant_mean(table, deviation):
    for dial in (0.0, 0.5, 1.0, 2.0, 4.0):
        mean_s = times(spread=table, heterogeneity=dial).expected_s(np.full(CLIENTS, 1000.0))
        expected = deviation(dial)
        assert mean_s.mean() == pytest.approx(1.0, abs=5 * expected / math.sqrt(CLIENTS) + 1e-12)
        # The fourth moments of these laws keep the relative error of a standard deviation below 10 %.
        assert mean_s.std() == pytest.approx(expected, rel=0.1, abs=1e-12)


@pytest.mark.statistical
def test_stragglers_are_a_share_and_so_many_times_slower():
    """A tenth is ten times slower: the others take 1 / 1.9 of the mean, spread by half 1 + (1 / 1.9 - 1) / 2."""
    table = {"kind": "stragglers", "share": 0.1, "times_slower": 10.0}
    for dial, fast, slow in ((1.0, 1 / 1.9, 10 / 1.9), (0.5, (1 + 1 / 1.9) / 2, (1 + 10 / 1.9) / 2), (0.0, 1.0, 1.0)):
        mean_s = times(spread=table, heterogeneity=dial).expected_s(np.full(CLIENTS, 1000.0))
        np.testing.assert_allclose(np.unique(np.round(mean_s, 12)), sorted({round(fast, 12), round(slow, 12)}))
        share = 0.1 if dial else 0.0
        found = np.count_nonzero(mean_s > 1 + 1e-9) / CLIENTS
        assert found == pytest.approx(share, abs=5 * math.sqrt(0.09 / CLIENTS) if dial else 0)
        assert 0.9 * fast + 0.1 * slow == pytest.approx(1.0)


def test_the_dial_stops_where_a_law_cannot_be_spread_further():
    with pytest.raises(ValidationError, match="stragglers"):
        times(spread={"kind": "stragglers", "share": 0.1, "times_slower": 10.0}, heterogeneity=1.9 / 0.9)
    with pytest.raises(ValidationError, match=r"heterogeneity = 5\.0 is not allowed; shifted-exponential"):
        times(spread={"kind": "shifted-exponential", "shift": 0.75}, heterogeneity=5.0)
    with pytest.raises(ValidationError, match="log-normal"):
        times(spread={"kind": "log-normal", "sigma": 5.0}, heterogeneity=3.0)
    times(heterogeneity=1e6)


@pytest.mark.statistical
def test_background_load_slows_down():
    load = 0.2
    u = Streams(3).uniform("test", EACH)
    idle = 1 / slowdown(u, load)
    assert stats.kstest(idle, stats.beta(4.0, 1.0).cdf).statistic < KS_LIMIT
    # The slowdown is a Pareto law with exponent 4: mean 4/3, variance 4 / (9 * 2) = 2/9.
    assert mean_slowdown(load) == pytest.approx(stats.pareto(4.0).mean())
    found = times(load=load)
    slow = found.duration_s(EACH, 1, np.full(CLIENTS, 1000.0))
    assert slow.min() >= 1.0
    assert slow.mean() == pytest.approx(4 / 3, abs=5 * math.sqrt(2 / 9 / CLIENTS))
    np.testing.assert_allclose(found.expected_s(np.full(CLIENTS, 1000.0)), 4 / 3)
    assert not np.array_equal(slow, found.duration_s(EACH, 2, np.full(CLIENTS, 1000.0)))


# FedScale's published entries: ms per sample and kbit/s.
PUBLISHED = [
    *((153, 2210), (149, 13508), (29, 6924), (176, 32546)),
    *((44, 42360), (21, 11154), (82, 82504), (162, 5648)),
]


@pytest.fixture
def capacities(tmp_path):
    table = {k: {"computation": float(c), "communication": b} for k, (c, b) in enumerate(PUBLISHED)}
    file = tmp_path / "client_device_capacity"
    file.write_bytes(pickle.dumps(table))
    return str(file)


@pytest.mark.parametrize(
    ("parameters", "batch", "steps", "valid"),
    [
        (11.18e6, 10, 1, 5),
        (11.18e6, 10, 20, 3),
        (2.24e6, 10, 1, 8),
        (2.24e6, 10, 20, 5),
        (5.55e6, 20, 1, 7),
        (5.55e6, 20, 20, 3),
        (21.3e6, 16, 1, 3),
        (21.3e6, 16, 20, 2),
    ],
)
def test_fedscales_mode_agrees_with_its_formula_on_published_devices(capacities, parameters, batch, steps, valid):
    """How many of the eight published devices finish within 100 s, and each one's time by hand."""
    entry = {"path": capacities, "mapping": "sequential"}
    scenario = timed(
        clients=8,
        bits=32 * parameters,
        network={"kind": "fedscale", **entry},
        devices={"compute": {"kind": "fedscale", "batch_size": batch, "steps": steps, **entry}},
        rounds={"count": 2, "policy": {"kind": "deadline", "deadline_s": 100.0}},
    )
    history = simulate(scenario)
    assert history.column("rounds", "delivered").tolist() == [valid, valid]
    kbit = 32 * parameters / 1024
    by_hand = [3 * batch * steps * c / 1000 + 2 * kbit / b for c, b in PUBLISHED]
    rows = history.participations.to_pylist()[:8]
    for row, expected in zip(rows, by_hand, strict=True):
        assert row["end_s"] == pytest.approx(min(expected, 100.0))


@pytest.mark.statistical
def test_fedscales_generator():
    law = COMPUTE_TIMES.make({"kind": "fedscale", "batch_size": 1, "steps": 1})
    assert not law.requires
    ms = of_crowd(law, CLIENTS, 1).expected_s(np.zeros(CLIENTS)) * 1000 / 3
    np.testing.assert_allclose(ms, np.round(ms))
    assert (ms.min().round(), ms.max().round()) == (15, 199)
    assert stats.kstest(ms, stats.randint(15, 200).cdf).statistic < KS_LIMIT + 1 / 185
    kbps = 1 / built(NETWORKS.make("fedscale"), np.zeros((CLIENTS, 2)), 1).expected_uplink_s(1024.0)
    # Published: a rank correlation of 0.003 over 500,000 devices, which is none.
    assert abs(stats.spearmanr(ms, kbps).statistic) < 4 / math.sqrt(CLIENTS)
    phones = COMPUTE_TIMES.make({"kind": "fedscale", "law": "phones"})
    assert phones.requires == {"samples"}
    ms = of_crowd(phones, CLIENTS, 1).expected_s(np.ones(CLIENTS)) * 1000 / 3
    classes = ((0.282, 78.3, 0.26), (0.537, 193.0, 0.441), (0.118, 439.1, 0.194), (0.063, 760.9, 0.985))

    def mixture(x):
        return sum(share * stats.lognorm(sigma, scale=median).cdf(x) for share, median, sigma in classes)

    assert stats.kstest(ms, mixture).statistic < KS_LIMIT
    # Quantiles of 978 phones as published, in ms.
    published = {0.01: 49, 0.05: 60, 0.1: 69, 0.25: 96, 0.5: 172, 0.75: 309, 0.9: 476, 0.95: 559, 0.99: 1650}
    for level, value in published.items():
        assert mixture(value) == pytest.approx(level, abs=0.015)
    # FedScale's devices take the same time in every round.
    found = of_crowd(phones, 9, 1)
    ids, work = np.arange(9), np.full(9, 20.0)
    np.testing.assert_array_equal(found.duration_s(ids, 1, work), found.duration_s(ids, 2, work))


def test_bad_capacities_are_refused(tmp_path):
    for name, content in {
        "list": [1],
        "nothing": {},
        "word": {1: {"computation": "x", "communication": 2}},
        "half": {1: {"computation": 1}},
        "zero": {1: {"computation": 0, "communication": 2}},
        "negative": {1: {"computation": -1, "communication": 2}},
        "huge": {1: {"computation": 1 << 4000, "communication": 2}},
    }.items():
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(DataError, match=name):
            of_crowd(COMPUTE_TIMES.make({"kind": "fedscale", "path": str(tmp_path / f"{name}.pkl")}), 2)


def test_operations_must_be_known():
    with pytest.raises(ScenarioError, match="counts the operations"):
        times(flops_per_sample=None)
    crowd = {"clients": 3, "devices": {"compute": {"kind": "flops", "flops_per_s": 1e6, **FIXED}}}
    with pytest.raises(ScenarioError, match=r"learning\.flops_per_sample"):
        timed(**crowd, samples=10)
    known = timed(**crowd, learning={"kind": "none", "samples_per_client": 10, "flops_per_sample": 2e5})
    assert simulate(known).column("participations", "compute_s").tolist() == pytest.approx([2.0] * 3)
    # An MLP of 64-8-10 does 2 * (64 * 8 + 8 * 10) operations forward and three times as many in training.
    learns = {"data": "digits", "model": {"kind": "mlp", "hidden": [8]}, "local": {"batch_size": 50}}
    history = simulate(timed(**crowd, learning=learns))
    samples = 1437 // 3  # each client's whole data set in one epoch
    computed = history.column("participations", "compute_s")
    assert computed.max() == pytest.approx(samples * 3 * 2 * (64 * 8 + 8 * 10) / 1e6, rel=0.01)


def test_measured_factors_are_divided_by_their_mean_and_each_equally_likely():
    """Times 1, 2, 3, 6 have the mean 3; levels up to 1/4, 1/2, 3/4 and 1 give them in their order."""
    law = HETEROGENEITY_LAWS.make({"kind": "empirical", "values": [3.0, 1.0, 6.0, 2.0]})
    levels = np.array([0.01, 0.25, 0.26, 0.5, 0.51, 0.99])
    np.testing.assert_allclose(law.factor(levels), np.array([1, 1, 2, 2, 3, 6]) / 3)
    np.testing.assert_allclose(law.factor(levels, 0.5), (1 + np.array([1, 1, 2, 2, 3, 6]) / 3) / 2)
    # The least factor is 1/3, two thirds below 1.
    assert law.allows(1.49)
    assert not law.allows(1.5)
