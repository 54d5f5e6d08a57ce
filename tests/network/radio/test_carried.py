"""Bits carried over fading blocks by a time: against a plain loop over the blocks, and as the inverse of durations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.network.radio import channel as module
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.fading import NoFading, Rayleigh
from fedsim.streams import Streams

COHERENCE_S = 0.02
SNR = np.geomspace(0.05, 5000.0, 40)


def channel(fading=None):
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


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 39), st.floats(0.0, 100.0), st.floats(0.0, 2.0)), min_size=1, max_size=8))
def test_bits_are_the_sum_over_the_blocks(lines):
    client, start_s, elapsed_s = (np.array(column) for column in zip(*lines, strict=True))
    link = channel()
    expected = [by_loop(link, *line) for line in lines]
    # A block's edge is known to the resolution of the clock, 1e-14 s at 100 s, at rates below 2 Mbit/s.
    np.testing.assert_allclose(link.carried_bits(client, start_s, elapsed_s), expected, rtol=1e-9, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.floats(1.0, 1e6), st.floats(0.0, 50.0))
def test_a_transfer_has_carried_its_bits_when_it_ends(bits, start_s):
    link, client, starts_s = channel(), np.arange(SNR.size), np.full(SNR.size, start_s)
    carried = link.carried_bits(client, starts_s, link.transfer_s(client, starts_s, bits))
    np.testing.assert_allclose(carried, bits, rtol=1e-9, atol=1e-6)


def test_many_blocks_are_drawn_in_chunks_and_the_rest_goes_at_the_mean_rate(monkeypatch):
    monkeypatch.setattr(module, "MOST_BLOCKS", 300)
    link, client, start_s = channel(), np.arange(SNR.size), np.full(SNR.size, 0.013)
    for elapsed_s in (5.0, 20.0):
        drawn_s = min(elapsed_s, 0.007 + 299 * COHERENCE_S)
        expected = [by_loop(link, one, 0.013, drawn_s) for one in client.tolist()]
        expected += link.ergodic_rate_bps * (elapsed_s - drawn_s)
        found = link.carried_bits(client, start_s, np.full(SNR.size, elapsed_s))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    took_s = link.transfer_s(client, start_s, 2e6)
    np.testing.assert_allclose(link.carried_bits(client, start_s, took_s), 2e6, rtol=1e-9)


def test_without_fading_bits_are_rate_times_time_and_without_time_there_are_none():
    link, client, elapsed_s = channel(NoFading()), np.arange(SNR.size), np.linspace(0.0, 3.0, SNR.size)
    expected = 1e5 * np.log2(1 + SNR) * elapsed_s
    np.testing.assert_allclose(link.carried_bits(client, np.ones(SNR.size), elapsed_s), expected)
    assert channel().carried_bits(client, np.ones(SNR.size), np.zeros(SNR.size)).tolist() == [0.0] * SNR.size


def test_a_result_does_not_depend_on_the_other_clients_of_the_call():
    link, rng = channel(), np.random.default_rng(0)
    client, start_s, elapsed_s = rng.integers(0, 40, 500), rng.uniform(0, 9, 500), rng.exponential(1.0, 500)
    together = link.carried_bits(client, start_s, elapsed_s)
    alone = [link.carried_bits(client[i : i + 1], start_s[i : i + 1], elapsed_s[i : i + 1])[0] for i in range(500)]
    assert together.tolist() == pytest.approx(alone, rel=1e-12)
