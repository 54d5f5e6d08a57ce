"""Multicast to clients of which some hear the beginning only, worked by hand."""

import pytest
import simpy

from fedsim.network.medium.multicast import Multicast


def ends_of(env, copies):
    ends = {}
    for name, copy in copies.items():
        copy.done.callbacks.append(lambda _, name=name: ends.setdefault(name, env.now))
    return ends


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
    """The first message takes 6 s; of the second, 4 bits at 2 bit/s, a quarter is heard by 6.5 s."""
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
