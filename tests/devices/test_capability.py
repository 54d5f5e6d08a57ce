"""Generated devices against the published statistics of FedScale's table and of phones."""

import math

import numpy as np
import pytest
from scipy import stats

from fedsim.devices import COMPUTE_TIMES
from fedsim.network import NETWORKS
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.media import of_crowd

CLIENTS = 40_000
EACH = np.arange(CLIENTS)

# FedScale's published entries: ms per sample and kbit/s.
MS = [153, 149, 29, 176, 44, 21, 82, 162]
KBPS = [2210, 13508, 6924, 32546, 42360, 11154, 82504, 5648]


def fedscale(clients, seed):
    """Return milliseconds per sample and kbit/s, recovered from seconds; a sample is worked on three times."""
    streams = Streams(seed)
    work = COMPUTE_TIMES.make({"kind": "fedscale", "batch_size": 1, "steps": 1}).build(RunSetup(clients, streams))
    links = NETWORKS.make("fedscale").build(RunSetup.at(np.zeros((clients, 2)), streams))
    return work.expected_s(np.zeros(clients)) * 1000 / 3, 1 / links.expected_uplink_s(1024.0)


@pytest.fixture(scope="module")
def devices():
    return fedscale(CLIENTS, 1)


@pytest.mark.statistical
def test_compute_times_and_rates_are_independent(devices):
    """Published: Pearson 0.0024 and Spearman 0.0030 over 500,000 devices, which is none."""
    ms, kbps = devices
    for correlation in (stats.pearsonr, stats.spearmanr):
        assert correlation(ms, kbps).statistic == pytest.approx(0.0, abs=4 / math.sqrt(CLIENTS))


def test_the_published_entries_could_be_drawn():
    """Eight of each: no test at 1 % tells them from the generated ones, their medians apart by a factor of two."""
    ms, kbps = fedscale(CLIENTS, 2)
    assert stats.ks_2samp(MS, ms).pvalue > 0.01
    assert stats.ks_2samp(KBPS, kbps).pvalue > 0.01
    # Deviation of the logarithm 1.17 of eight, 1.10 generated: a chi-squared with seven degrees of freedom.
    ratio = 7 * np.log(KBPS).var(ddof=1) / np.log(kbps).var()
    assert 0.05 < stats.chi2(7).cdf(ratio) < 0.95


@pytest.mark.statistical
def test_quantiles_of_phones():
    """Share of generated phones up to each published quantile of 978, in ms, and the tails themselves."""
    phones = of_crowd(COMPUTE_TIMES.make({"kind": "fedscale", "law": "phones"}), CLIENTS, 3)
    ms = phones.expected_s(np.ones(CLIENTS)) * 1000 / 3
    published = {0.01: 49, 0.05: 60, 0.1: 69, 0.25: 96, 0.5: 172, 0.75: 309, 0.9: 476, 0.95: 559, 0.99: 1650}
    for level, value in published.items():
        assert (ms <= value).mean() == pytest.approx(level, abs=0.015), value
    low, high, highest = np.quantile(ms, [0.01, 0.95, 0.99])
    assert low == pytest.approx(49, rel=0.06)
    assert high == pytest.approx(559, rel=0.09)
    # Two standard errors of the sample's own 99 % quantile are about a quarter of it.
    assert highest == pytest.approx(1650, rel=0.3)
    assert np.log(ms).mean() == pytest.approx(5.19, abs=0.02)
    assert np.log(ms).std() == pytest.approx(0.78, abs=0.02)
