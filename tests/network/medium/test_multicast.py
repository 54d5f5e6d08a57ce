"""Multicast to clients of which some hear the beginning only, against a walk from block to block."""

import math
from dataclasses import replace

import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st

from fedsim.network import Cell, ModulationAndCoding, NoFading, Rayleigh
from fedsim.network.medium.multicast import ConstantPace, LeastRate, Multicast
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.rounds.effects.audit.audit import check_book
from fedsim.streams import Streams
from tests.support.media import built, ends_of, finish, opened, played
from tests.support.step_by_step import transfer_over_blocks_s

SNR = np.array([10.0, 4.0, 30.0])


def channel(coherence_s=0.2, rate=SHANNON_LIMIT, snr=SNR):
    return Channel(snr, 1e6, Rayleigh(coherence_s=coherence_s), "fading-downlink", Streams(3), rate)


@pytest.mark.parametrize("rate", [SHANNON_LIMIT, ModulationAndCoding()], ids=["shannon", "outages"])
@given(start_s=st.floats(0, 50), bits=st.floats(1.0, 2e7), clients=st.sets(st.integers(0, 2), min_size=1))
def test_times_agree_with_a_walk_block_by_block(rate, start_s, bits, clients):
    link = channel(rate=rate, snr=SNR / (1.0 if rate is SHANNON_LIMIT else 6.0))
    pace = LeastRate(link, np.array(sorted(clients)), start_s)
    expected_s = transfer_over_blocks_s(
        lambda block: min(float(link.rate_bps(client, block)) for client in clients), 0.2, start_s, bits
    )
    assert pace.time_s(bits) == pytest.approx(expected_s, rel=1e-9, abs=1e-9)


@given(start_s=st.floats(0, 50), bits=st.lists(st.floats(0.0, 3e7), min_size=1, max_size=6))
def test_bits_are_the_inverse_of_times_in_any_order_of_questions(start_s, bits):
    one, other = (LeastRate(channel(), np.arange(3), start_s) for _ in range(2))
    times = [one.time_s(number) for number in bits]
    for time_s, number in zip(reversed(times), reversed(bits), strict=True):
        assert other.bits(time_s) == pytest.approx(number, rel=1e-9, abs=1e-3)
    assert [other.time_s(number) for number in bits] == times


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


def heard(script, link, *, faded):
    """Return ends, waits and bits by number of line of messages one after another, block after block."""
    free_s, ends, waits, bits_of = 0.0, {}, {}, dict.fromkeys(range(len(script)), 0.0)
    for came_s in sorted({line[0] for line in script}):
        begins_s = max(came_s, free_s)
        members = [i for i, line in enumerate(script) if line[0] == came_s and line[4] > begins_s]
        clients = [script[i][1] for i in members]

        def rate_bps(block, clients=clients):
            return min((link.rate_bps(clients, block) if faded else link.ergodic_rate_bps[clients]).tolist())

        left_s = []
        for i in members:
            _, _, bits, delay_s, cancel_s = script[i]
            last_s = begins_s + transfer_over_blocks_s(rate_bps, 0.5, begins_s, bits)
            edges = np.unique([begins_s, cancel_s, *np.arange(math.ceil(begins_s / 0.5) * 0.5, cancel_s, 0.5)])
            carried = sum(rate_bps(int(edge / 0.5)) * step for edge, step in zip(edges, np.diff(edges), strict=False))
            bits_of[i], waits[i] = min(bits, carried) if cancel_s < last_s else bits, begins_s - came_s
            left_s.append(min(last_s, cancel_s))
            if last_s + delay_s <= cancel_s:
                ends[i] = last_s + delay_s
        free_s = max(left_s, default=free_s)
    return ends, waits, bits_of


@given(seed=st.integers(0, 2**32 - 1), faded=st.booleans())
def test_messages_go_one_after_another_to_those_who_listen_and_at_the_least_rate(seed, faded):
    """Of a message some ask for the beginning alone, and it ends when the last of them has it or has given up."""
    luck = np.random.default_rng(seed)
    link = replace(channel(0.5, snr=10 ** luck.uniform(-0.5, 2, 4)), bandwidth_hz=10.0)
    script = [
        (came_s, client, luck.choice([30.0, 60.0, 100.0]), luck.choice([0.0, 0.25]), cancel_s)
        for came_s in luck.uniform(0, 6, luck.integers(1, 4)).cumsum()
        for client in luck.permutation(4)[: luck.integers(1, 5)].tolist()
        for cancel_s in (came_s + luck.choice([luck.uniform(0.1, 20), 100.0]),)
    ]
    env = simpy.Environment()
    medium = Multicast(env, 10.0, link if faded else None)
    lines = [
        (i, came_s, (bits, link.ergodic_rate_bps[client] / 10.0, delay_s, client), cancel_s)
        for i, (came_s, client, bits, delay_s, cancel_s) in enumerate(script)
    ]
    ends, flows = played(env, medium.send, lines)
    expected_s, waits, bits_of = heard(script, link, faded=faded)
    assert ends == pytest.approx(expected_s)
    assert {i: flow.sent_bits() for i, flow in flows.items()} == pytest.approx(bits_of)
    assert {i: flows[i].queued_s() for i in waits} == pytest.approx(waits, abs=1e-9)
    assert [flows[i].arrives_s() for i in ends] == pytest.approx(list(ends.values()))
    check_book("downlink", medium.medium.book())


def test_nothing_at_all_is_heard_at_once():
    env = simpy.Environment()
    medium = Multicast(env, 1.0)
    copies = {"nothing": medium.send(0.0, 0.0), "all": medium.send(4.0, 2.0)}
    ends = ends_of(env, copies)
    env.run(until=20.0)
    assert ends == {"nothing": 0.0, "all": 2.0}


def test_a_cell_takes_the_least_of_each_block_or_by_name_the_least_mean():
    place = np.array([[300.0, 0.0], [100.0, 0.0]])
    cells = {
        rule: Cell(downlink={"sharing": rule, "bandwidth_hz": 1e6}, fading=Rayleigh(coherence_s=0.1), access="none")
        for rule in ("multicast", "multicast-rateless")
    }
    links = built(cells["multicast"], place, 4)
    took_s = {}
    for rule, cell in cells.items():
        medium, env = opened(cell, place, 4)
        took_s[rule] = max(finish(env, *(medium.downlink(client, 3e6) for client in range(2))))
    rate = links.downlink.rate_bps(np.arange(2)[:, None], np.arange(200)).min(axis=0)
    blocks = int(np.searchsorted(np.cumsum(rate) * 0.1, 3e6))
    left = 3e6 - rate[:blocks].sum() * 0.1
    assert took_s["multicast"] == pytest.approx(blocks * 0.1 + left / rate[blocks], abs=2e-6)
    assert took_s["multicast-rateless"] == pytest.approx(3e6 / links.downlink.ergodic_rate_bps.min(), abs=2e-6)
    assert took_s["multicast"] > took_s["multicast-rateless"]
