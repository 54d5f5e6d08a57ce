"""Transfers over fading blocks against a slow scalar reference, their ends and edges, and the bits that they carry."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate

from fedsim.network import ModulationAndCoding, NoFading, Rayleigh
from fedsim.network.radio.channel import LAST_BLOCK, MOST_BLOCKS, SHANNON_LIMIT, Channel
from fedsim.streams import Streams
from tests.support.step_by_step import transfer_over_blocks_s

STREAM = "fading-uplink"
BANDWIDTH_HZ = 1e6


def rayleigh_channel(snr, coherence_s, seed=0):
    return Channel(
        np.atleast_1d(snr).astype(float), BANDWIDTH_HZ, Rayleigh(coherence_s=coherence_s), STREAM, Streams(seed)
    )


def bits_of_blocks(snr, coherence_s, blocks):
    """Bits that the mean rate carries in so many blocks, by quadrature."""
    rate, _ = integrate.quad(lambda g: math.log2(1 + snr * g) * math.exp(-g), 0, 60, limit=200)
    return BANDWIDTH_HZ * rate * coherence_s * blocks


@pytest.mark.parametrize("law", [SHANNON_LIMIT, ModulationAndCoding()], ids=["shannon", "outages"])
@given(st.floats(1e-3, 10.0), st.floats(0.01, 40.0), st.integers(0, 2**32 - 1))
def test_transfers_agree_with_a_walk_block_by_block(law, coherence_s, blocks, seed):
    """Block by block in plain Python, one gain at a time."""
    rng = np.random.default_rng(seed)
    snr, start_s = 10.0 ** rng.uniform(-0.8, 2.0, size=4), rng.uniform(0, 1e4, size=4)
    channel = replace(rayleigh_channel(snr, coherence_s, seed), rate=law)
    bits = float(channel.ergodic_rate_bps.min()) * coherence_s * blocks

    def rate_bps(client, block):
        gain = -math.log1p(-float(Streams(seed).uniform(STREAM, client, block)))
        return BANDWIDTH_HZ * float(law.efficiency(np.array(snr[client] * gain)))

    found = channel.transfer_s(np.arange(4), start_s, bits)
    slow = [transfer_over_blocks_s(partial(rate_bps, k), coherence_s, start_s[k], bits) for k in range(4)]
    np.testing.assert_allclose(found, slow, rtol=1e-9, atol=1e-9)


def test_a_transfer_that_ends_with_its_block():
    channel = rayleigh_channel(10.0, 1.0, seed=1)
    gain = -math.log1p(-float(Streams(1).uniform(STREAM, 0, 7)))
    bits = 0.75 * BANDWIDTH_HZ * math.log2(1 + 10.0 * gain)
    for amount in (bits * (1 - 1e-12), bits, bits * (1 + 1e-12)):
        assert channel.transfer_s(np.array([0]), np.array([7.25]), amount)[0] == pytest.approx(0.75, abs=1e-9)


@pytest.mark.parametrize("index", [1, 3, 6, 7, 49, 1000, 123_457])
def test_starts_on_a_block_boundary(index):
    # 0.1 is no binary fraction: index * 0.1 / 0.1 may round to either side of the boundary.
    channel = rayleigh_channel(3.0, 0.1, seed=2)
    bits = bits_of_blocks(3.0, 0.1, 2.5)
    on = channel.transfer_s(np.array([0]), np.array([index * 0.1]), bits)[0]
    after = channel.transfer_s(np.array([0]), np.array([index * 0.1 + 1e-9]), bits)[0]
    assert on == pytest.approx(after, abs=1e-7)


def test_a_constant_channel_takes_bits_over_rate():
    channel = Channel(np.array([1.0, 3.0]), 2e6, NoFading(), STREAM, Streams(0))
    client, start_s = np.array([1, 0]), np.array([5.0, 0.3])
    np.testing.assert_allclose(channel.transfer_s(client, start_s, 8e6), [2.0, 4.0], rtol=1e-15)
    np.testing.assert_allclose(channel.expected_s(8e6), [4.0, 2.0], rtol=1e-15)


def spread_channel(clients, seed=6):
    snr = 10.0 ** np.random.default_rng(0).uniform(-2, 4, size=40_000)[:clients]
    return rayleigh_channel(snr, 0.02, seed)


def test_times_do_not_depend_on_the_cohort_or_the_crowd_also_beyond_a_chunk():
    bits = bits_of_blocks(10.0, 0.02, 1.0)
    large, small = spread_channel(40_000), spread_channel(50)
    everyone, start_s = np.arange(40_000), np.random.default_rng(1).uniform(0, 100, size=40_000)
    together = large.transfer_s(everyone, start_s, bits)
    some = np.array([42, 3, 17, 11])
    np.testing.assert_array_equal(small.transfer_s(some, start_s[some], bits), together[some])
    for picked in (some, np.arange(3, 40_000, 4001), np.array([39_999])):
        np.testing.assert_array_equal(large.transfer_s(picked, start_s[picked], bits), together[picked])


def test_beyond_the_last_drawn_block_the_ergodic_rate_goes_on():
    snr, coherence_s, start_s = 0.5, 0.001, 0.0004
    channel = rayleigh_channel(snr, coherence_s, seed=5)
    gain = -np.log1p(-Streams(5).uniform(STREAM, 0, np.arange(MOST_BLOCKS)))
    length = np.full(MOST_BLOCKS, coherence_s)
    length[0] -= start_s
    drawn_bits = float(np.sum(BANDWIDTH_HZ * np.log2(1 + snr * gain) * length))
    drawn_s = MOST_BLOCKS * coherence_s - start_s

    def took(bits):
        return float(channel.transfer_s(np.array([0]), np.array([start_s]), bits)[0])

    per_block = bits_of_blocks(snr, coherence_s, 1.0)
    # Sums of 2**18 terms are good to 1e-10, a fraction of a block of 1e-3 s.
    for blocks in (-0.01, 0.5, 7.0, 1e6):
        ergodic = max(blocks, 0) * coherence_s
        drawn = min(blocks, 0) * per_block / (BANDWIDTH_HZ * math.log2(1 + snr * gain[-1]))
        assert took(drawn_bits + blocks * per_block) == pytest.approx(drawn_s + ergodic + drawn, abs=1e-6)
    # Stated error: a standard deviation of at most 1/1024, and as much again of the drawn blocks' own.
    doubled = took(per_block * MOST_BLOCKS * 2)
    assert doubled == pytest.approx(2 * MOST_BLOCKS * coherence_s, rel=5 / 1024)


def test_nothing_to_send_and_nothing_gets_through():
    channel = rayleigh_channel([0.0, 1.0], 0.1)
    both = np.array([0, 1])
    np.testing.assert_array_equal(channel.transfer_s(both, np.array([0.0, 3.3]), 0.0), [0.0, 0.0])
    took = channel.transfer_s(both, np.array([0.0, 3.3]), 1e6)
    assert took[0] == math.inf
    assert math.isfinite(took[1])
    np.testing.assert_array_equal(channel.expected_s(1e6) == math.inf, [True, False])
    np.testing.assert_array_equal(channel.expected_s(0.0), [0.0, 0.0])
    assert channel.transfer_s(np.array([], dtype=np.int64), np.array([]), 1e6).shape == (0,)


@pytest.mark.parametrize("fading", [NoFading(), Rayleigh(coherence_s=1.0)], ids=["none", "rayleigh"])
@pytest.mark.parametrize("snr", [1e-320, 1e-305, 1e-30])
def test_hopeless_links_take_very_long_without_a_warning(fading, snr):
    channel = Channel(np.array([snr]), BANDWIDTH_HZ, fading, STREAM, Streams(0))
    assert channel.transfer_s(np.array([0]), np.array([0.0]), 1e9)[0] > 1e30


def test_starts_that_never_come_are_answered_like_any_other():
    # A server asks for the uplink behind a hopeless downlink, too.
    channel = rayleigh_channel([10.0, 10.0, 10.0], 0.1)
    start_s = np.array([math.inf, 1e40, 3.0])
    took = channel.transfer_s(np.arange(3), start_s, 1e6)
    np.testing.assert_allclose(took[:2], 1e6 / (bits_of_blocks(10.0, 0.1, 1.0) / 0.1), rtol=1e-7)
    assert took[2] == channel.transfer_s(np.array([2]), start_s[2:], 1e6)[0]


COHERENCE_S = 0.02
SNR = np.geomspace(0.05, 5000.0, 40)


def forty_links(fading=None):
    law = Rayleigh(coherence_s=COHERENCE_S) if fading is None else fading
    return Channel(snr=SNR, bandwidth_hz=1e5, fading=law, stream="gains", streams=Streams(3))


def by_loop(link, client, start_s, elapsed_s):
    """Add up rate times time, block by block."""
    block, at_s, total = math.floor(start_s / COHERENCE_S), start_s, 0.0
    while at_s < start_s + elapsed_s:
        end_s = min((block + 1) * COHERENCE_S, start_s + elapsed_s)
        total += float(link.rate_bps(client, block)) * (end_s - at_s)
        block, at_s = block + 1, end_s
    return total


@given(st.lists(st.tuples(st.integers(0, 39), st.floats(0.0, 100.0), st.floats(0.0, 2.0)), min_size=1, max_size=8))
def test_bits_are_the_sum_over_the_blocks(lines):
    client, start_s, elapsed_s = (np.array(column) for column in zip(*lines, strict=True))
    link = forty_links()
    expected = [by_loop(link, *line) for line in lines]
    # A block's edge is known to the resolution of the clock, 1e-14 s at 100 s, at rates below 2 Mbit/s.
    np.testing.assert_allclose(link.carried_bits(client, start_s, elapsed_s), expected, rtol=1e-9, atol=1e-6)


def test_many_blocks_are_drawn_in_chunks_and_the_rest_goes_at_the_mean_rate(monkeypatch):
    monkeypatch.setattr("fedsim.network.radio.channel.MOST_BLOCKS", 300)
    link, client, start_s = forty_links(), np.arange(SNR.size), np.full(SNR.size, 0.013)
    for elapsed_s in (5.0, 20.0):
        drawn_s = min(elapsed_s, 0.007 + 299 * COHERENCE_S)
        expected = [by_loop(link, one, 0.013, drawn_s) for one in client.tolist()]
        expected += link.ergodic_rate_bps * (elapsed_s - drawn_s)
        found = link.carried_bits(client, start_s, np.full(SNR.size, elapsed_s))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    took_s = link.transfer_s(client, start_s, 2e6)
    np.testing.assert_allclose(link.carried_bits(client, start_s, took_s), 2e6, rtol=1e-9)


def test_without_fading_bits_are_rate_times_time_and_without_time_there_are_none():
    link, client, elapsed_s = forty_links(NoFading()), np.arange(SNR.size), np.linspace(0.0, 3.0, SNR.size)
    expected = 1e5 * np.log2(1 + SNR) * elapsed_s
    np.testing.assert_allclose(link.carried_bits(client, np.ones(SNR.size), elapsed_s), expected)
    assert forty_links().carried_bits(client, np.ones(SNR.size), np.zeros(SNR.size)).tolist() == [0.0] * SNR.size


EVERYONE = np.arange(4)


def four_links(fading, **options):
    return Channel(np.array([0.5, 2.0, 8.0, 30.0]), 1e6, fading, "fading", Streams(3), **options)


@pytest.mark.parametrize("time_s", [0.0, 0.19, 7.35])
def test_an_upload_within_the_block_has_the_rate_of_that_gain(time_s):
    radio = four_links(Rayleigh(coherence_s=0.1))
    gain = radio.gain_at(EVERYONE, time_s)
    # Shannon's rate over a band of 1 MHz; 1 bit ends long before the block does.
    rate_bps = 1e6 * np.log2(1 + radio.snr * gain)
    np.testing.assert_allclose(radio.transfer_s(EVERYONE, np.full(4, time_s), 1.0), 1 / rate_bps, rtol=1e-9)


def test_without_fading_and_after_the_last_block_it_is_one():
    assert four_links(NoFading()).gain_at(EVERYONE, 5.0).tolist() == [1.0] * 4
    assert four_links(Rayleigh(coherence_s=0.1)).gain_at(EVERYONE, 0.1 * 2 * LAST_BLOCK).tolist() == [1.0] * 4


def test_of_a_band_faded_in_parts_it_is_the_rate_over_the_mean():
    radio = four_links(Rayleigh(coherence_s=0.1), delay_spread_s=1e-6)
    some = np.array([3, 1])
    share = radio.rate_bps(some, 20) / radio.ergodic_rate_bps[some]
    np.testing.assert_allclose(radio.gain_at(some, 2.05), share, rtol=1e-12)
