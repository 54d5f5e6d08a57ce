"""Multicast to clients of which some hear the beginning only, worked by hand."""

import numpy as np
import pytest
import simpy

from fedsim.network import Cell, Rayleigh
from fedsim.network.medium.multicast import Multicast
from fedsim.network.radio.channel import Channel
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.media import ends_of, finish, opened


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
    links = cells["multicast"].build(RunSetup.at(place, Streams(4)))
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
