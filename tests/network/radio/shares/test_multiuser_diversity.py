"""Multi-user diversity against harmonic numbers, an integral over the density of the best gain, and sampled blocks."""

import math

import numpy as np
import pytest
import simpy
from scipy.integrate import quad

from fedsim.network import Cell, ModulationAndCoding, Nakagami, NoFading, Rayleigh, Shannon
from fedsim.network.radio.shares.multiuser_diversity import DiversityGain, efficiency_of_best
from tests.support.media import built

LIMIT = Shannon(snr_gap_db=0.0, ceiling="none")


def gain_at(rate, fading, snr, users):
    snr = np.array([snr])
    gains = DiversityGain(rate, fading, snr)
    return float(gains.among(users)[gains.kind(float(efficiency_of_best(rate, fading, snr, 1)[0]))])


@pytest.mark.parametrize("users", [1, 2, 5, 30, 1000])
def test_gain_at_low_snr_is_the_harmonic_number(users):
    harmonic = sum(1 / k for k in range(1, users + 1))
    assert gain_at(LIMIT, Rayleigh(), 1e-9, users) == pytest.approx(harmonic, rel=1e-6 if users <= 8 else 1e-3)


@pytest.mark.parametrize(
    ("law", "gap", "ceiling", "slack"), [(LIMIT, 1.0, 60.0, 1e-8), (Shannon(), 10**0.3, 7.4, 2e-5)]
)
@pytest.mark.parametrize("users", [1, 2, 8, 30, 1000])
def test_efficiency_is_the_integral_of_its_tail(users, law, gap, ceiling, slack):
    """The efficiency is above x bit/s/Hz where the largest of n exponential gains is above (2^x - 1) gap / SNR."""

    def mean(snr, users):
        def tail(x):
            return -math.expm1(users * math.log1p(-math.exp(-(2**x - 1) * gap / snr))) if x > 0 else 1.0

        points = [math.log2(1 + snr * gain / gap) for gain in (0.1, 1.0, 10.0)]
        return quad(tail, 0, ceiling, epsrel=1e-11, limit=400, points=[x for x in points if x < ceiling] or None)[0]

    snr = 10 ** (np.arange(-10.0, 45.0, 5.0) / 10)
    theory = np.array([mean(level, users) for level in snr])
    np.testing.assert_allclose(efficiency_of_best(law, Rayleigh(), snr, users), theory, atol=slack)
    gains = [gain_at(law, Rayleigh(), level, users) * mean(level, 1) for level in snr]
    np.testing.assert_allclose(gains, theory, rtol=0.002)


def test_without_fading_there_is_no_gain():
    assert [gain_at(LIMIT, NoFading(), 3.0, users) for users in (1, 7, 500)] == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.statistical
@pytest.mark.parametrize("users", [2, 7, 40])
@pytest.mark.parametrize("level_db", [-8.0, 4.0, 20.0])
def test_a_table_of_schemes_against_blocks_sampled_one_by_one(level_db, users):
    rate, blocks = ModulationAndCoding(), 100_000
    gain = np.random.default_rng(users).gamma(2.0, 0.5, (blocks, users))
    best = rate.efficiency(10 ** (level_db / 10) * gain.max(axis=1))
    found = efficiency_of_best(rate, Nakagami(m=2.0), np.array([10 ** (level_db / 10)]), users)
    assert float(found[0]) == pytest.approx(best.mean(), abs=5 * best.std() / math.sqrt(blocks) + 0.002 * 4.8)


def test_the_clock_gives_each_client_its_own_gain_by_the_cells_rate_law():
    """Three clients 12 dB apart; each alone, and each with the others there for all of its transfer."""
    rate, fading = ModulationAndCoding(), Rayleigh()
    down = {"sharing": "max-relative-snr", "bandwidth_hz": 1e6, "fading_in_shares": "mean"}
    cell = Cell(downlink=down, uplink=down, rate=rate, fading=fading, shadowing_sigma_db=0.0)
    places = np.array([[300.0, 0.0], [625.0, 0.0], [1300.0, 0.0]])
    links = built(cell, places)
    snr = links.downlink.snr
    best = efficiency_of_best(rate, fading, snr, 3)
    alone = efficiency_of_best(rate, fading, snr, 1)
    assert np.all(np.diff(best / alone) > 0.15)  # the weaker, the more is gained
    env = simpy.Environment()
    air = links.open(env)
    flows = [air.downlink(client, 1e7) for client in range(3)]
    env.run(until=1.5)
    sent = [flow.sent_bits() for flow in flows]
    # A third of the time of 1 MHz, in good blocks.
    np.testing.assert_allclose(sent, 1.5 * 1e6 / 3 * best, rtol=0.01)
