"""The least rate of several clients over fading blocks, against a walk block by block."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.network import ModulationAndCoding, NoFading, Rayleigh
from fedsim.network.medium.multicast import ConstantPace, LeastRate
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.streams import Streams
from tests.support.step_by_step import transfer_over_blocks_s

SNR = np.array([10.0, 4.0, 30.0])


def channel(coherence_s=0.2, rate=SHANNON_LIMIT, snr=SNR):
    return Channel(snr, 1e6, Rayleigh(coherence_s=coherence_s), "fading-downlink", Streams(3), rate)


@given(start_s=st.floats(0, 50), bits=st.floats(1.0, 2e7), clients=st.sets(st.integers(0, 2), min_size=1))
@settings(max_examples=60)
def test_times_agree_with_a_walk_block_by_block(start_s, bits, clients):
    link = channel()
    pace = LeastRate(link, np.array(sorted(clients)), start_s)
    expected_s = transfer_over_blocks_s(
        lambda block: min(float(link.rate_bps(client, block)) for client in clients), 0.2, start_s, bits
    )
    assert pace.time_s(bits) == pytest.approx(expected_s, rel=1e-9, abs=1e-9)


@given(start_s=st.floats(0, 50), bits=st.lists(st.floats(0.0, 3e7), min_size=1, max_size=6))
@settings(max_examples=60)
def test_bits_are_the_inverse_of_times_in_any_order_of_questions(start_s, bits):
    one, other = (LeastRate(channel(), np.arange(3), start_s) for _ in range(2))
    times = [one.time_s(number) for number in bits]
    for time_s, number in zip(reversed(times), reversed(bits), strict=True):
        assert other.bits(time_s) == pytest.approx(number, rel=1e-9, abs=1e-3)
    assert [other.time_s(number) for number in bits] == times


def test_one_client_has_the_time_of_its_own_link():
    link, start_s = channel(), np.array([0.37, 12.0])
    alone = link.transfer_s(np.array([1, 1]), start_s, 5e6)
    found = [LeastRate(link, np.array([1]), float(instant)).time_s(5e6) for instant in start_s]
    np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_an_outage_of_one_client_is_a_pause_for_all():
    link = channel(rate=ModulationAndCoding(), snr=np.array([1000.0, 0.3]))
    rate = link.rate_bps(np.arange(2)[:, None], np.arange(400)).min(axis=0)
    out = int(np.flatnonzero(rate == 0)[0])
    pace = LeastRate(link, np.arange(2), 0.2 * out)
    assert pace.bits(0.15) == 0.0
    on = out + int(np.flatnonzero(rate[out:] > 0)[0])
    assert pace.time_s(1.0) == pytest.approx(0.2 * (on - out) + 1.0 / rate[on], rel=1e-9)


def test_cases_in_closed_form():
    link = Channel(SNR, 1e6, NoFading(), "fading-downlink", Streams(0))
    pace = LeastRate(link, np.array([0, 2]), 5.0)
    assert pace.time_s(2e6 * math.log2(11)) == pytest.approx(2.0, rel=1e-12)
    assert pace.bits(3.0) == pytest.approx(3e6 * math.log2(11), rel=1e-12)
    pace = LeastRate(channel(snr=np.array([0.0, 10.0])), np.arange(2), 0.0)
    assert pace.time_s(0.0) == 0.0
    assert math.isinf(pace.time_s(1.0)), "links that carry nothing never end"
    assert ConstantPace(0.0).time_s(1.0) == math.inf
    link = channel(coherence_s=1e-6)
    pace = LeastRate(link, np.array([0, 2]), 1e10)
    assert pace.time_s(1e6) == pytest.approx(1e6 / link.ergodic_rate_bps[0], rel=1e-12)
