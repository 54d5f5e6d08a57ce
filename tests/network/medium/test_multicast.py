"""Multicast to clients of which some hear the beginning only, worked by hand."""

import math

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from fedsim.network import Cell, ModulationAndCoding, NoFading, Rayleigh
from fedsim.network.medium.multicast import ConstantPace, LeastRate, Multicast
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.streams import Streams
from tests.support.media import built, ends_of, finish, opened
from tests.support.step_by_step import transfer_over_blocks_s

SNR = np.array([10.0, 4.0, 30.0])


def channel(coherence_s=0.2, rate=SHANNON_LIMIT, snr=SNR):
    return Channel(snr, 1e6, Rayleigh(coherence_s=coherence_s), "fading-downlink", Streams(3), rate)


@given(start_s=st.floats(0, 50), bits=st.floats(1.0, 2e7), clients=st.sets(st.integers(0, 2), min_size=1))
def test_times_agree_with_a_walk_block_by_block(start_s, bits, clients):
    link = channel()
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


def test_who_asks_for_fewer_bits_hears_the_beginning_of_the_same_message():
    """12 bits at 1 bit/s/Hz over 2 Hz take 6 s; 3 bits of them 1.5 s, and then their delay."""
    env = simpy.Environment()
    medium = Multicast(env, 2.0)
    copies = {"all": medium.send(12.0, 3.0), "some": medium.send(3.0, 1.0, 0.25), "more": medium.send(9.0, 2.0)}
    ends = ends_of(env, copies)
    env.run(until=1.0)
    assert [copy.sent_bits() for copy in copies.values()] == pytest.approx([2.0] * 3)
    env.run(until=1.6)
    assert copies["some"].sent_bits() == 3.0
    assert copies["some"].arrives_s() == 1.75
    env.run(until=20.0)
    assert ends == {"some": 1.75, "more": 4.5, "all": 6.0}
    assert [copy.sent_bits() for copy in copies.values()] == [12.0, 3.0, 9.0]
    book = medium.medium.book()
    assert (book.received, book.lost) == (12.0, 0.0)


def test_one_message_also_waits_for_its_turn():
    """The first message takes 6 s; of the second, 4 bits at 2 bit/s, a quarter is received by 6.5 s."""
    env = simpy.Environment()
    medium = Multicast(env, 1.0)
    first = medium.send(6.0, 1.0)
    env.run(until=1.0)
    copies = {"some": medium.send(1.0, 2.0), "all": medium.send(4.0, 2.0)}
    ends = ends_of(env, copies)
    env.run(until=20.0)
    assert first.done.processed
    assert ends == {"some": 6.5, "all": 8.0}
    assert [copy.queued_s() for copy in copies.values()] == [5.0, 5.0]


def test_the_transmission_goes_on_for_whom_it_is_and_ends_when_nobody_listens():
    env = simpy.Environment()
    medium = Multicast(env, 1.0)
    copies = {"some": medium.send(2.0, 1.0), "all": medium.send(10.0, 1.0)}
    ends = ends_of(env, copies)
    env.run(until=1.0)
    copies["all"].cancel()
    copies["all"].cancel()
    env.run(until=50.0)
    assert ends == {"some": 2.0}
    assert copies["all"].sent_bits() == 1.0
    assert medium.medium.book().lost == 2.0
    again = medium.send(3.0, 1.0)
    env.run(until=60.0)
    assert (again.done.processed, again.arrives_s()) == (True, 53.0)


def test_one_given_up_while_it_waits_is_never_begun():
    env = simpy.Environment()
    medium = Multicast(env, 1.0)
    medium.send(6.0, 1.0)
    env.run(until=1.0)
    copies = [medium.send(1.0, 2.0), medium.send(4.0, 2.0)]
    env.run(until=2.0)
    for copy in copies:
        copy.cancel()
    env.run(until=20.0)
    assert not any(copy.done.triggered for copy in copies)
    assert medium.medium.book().carried == 6.0
    assert [copy.sent_bits() for copy in copies] == [0.0, 0.0]


def test_nothing_at_all_is_heard_at_once():
    env = simpy.Environment()
    medium = Multicast(env, 1.0)
    copies = {"nothing": medium.send(0.0, 0.0), "all": medium.send(4.0, 2.0)}
    ends = ends_of(env, copies)
    env.run(until=20.0)
    assert ends == {"nothing": 0.0, "all": 2.0}


def faded(clients=3):
    """Links whose blocks last a second."""
    return Channel(np.array([10.0, 5.0, 20.0])[:clients], 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(2))


def test_the_client_that_hears_worst_in_each_block_sets_the_rate():
    channel, env = faded(), simpy.Environment()
    medium = Multicast(env, 1.0, channel)
    rate = channel.rate_bps(np.arange(3)[:, None], np.arange(60)).min(axis=0)
    carried = np.cumsum(rate)
    copies = {
        name: medium.send(bits, 1.0, 0.0, client)
        for client, (name, bits) in enumerate({"all": carried[20] + 0.5 * rate[21], "some": carried[4]}.items())
    }
    copies["third"] = medium.send(carried[20], 1.0, 0.25, 2)
    ends = ends_of(env, copies)
    env.run(until=3.5)
    assert copies["all"].sent_bits() == pytest.approx(carried[2] + 0.5 * rate[3])
    env.run(until=100.0)
    assert ends == pytest.approx({"some": 5.0, "third": 21.25, "all": 21.5})
    book = medium.medium.book()
    assert book.received == pytest.approx(21.5)


def test_a_message_that_waits_is_carried_over_the_blocks_of_its_turn():
    channel, env = faded(), simpy.Environment()
    medium = Multicast(env, 1.0, channel)
    rate = channel.rate_bps(np.arange(3)[:, None], np.arange(60)).min(axis=0)
    first = [medium.send(float(rate[:4].sum()), 1.0, 0.0, client) for client in range(3)]
    env.run(until=1.0)
    second = [medium.send(float(rate[4:6].sum()), 1.0, 0.0, client) for client in range(3)]
    assert finish(env, *first, *second) == pytest.approx([4.0] * 3 + [6.0] * 3)
    assert second[0].queued_s() == pytest.approx(3.0)


def test_who_gives_up_before_the_turn_does_not_slow_the_others():
    channel, env = faded(), simpy.Environment()
    medium = Multicast(env, 1.0, channel)
    rate = channel.rate_bps(np.arange(3)[:, None], np.arange(60))
    medium.send(float(rate[0, :3].sum()), 1.0, 0.0, 0)
    env.run(until=1.0)
    copies = [medium.send(float(rate[0, 3:5].sum()), 1.0, 0.0, client) for client in (0, 1)]
    copies[1].cancel()
    assert finish(env, copies[0]) == pytest.approx([5.0])


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
