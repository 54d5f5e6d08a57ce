"""Media against brute force in fractions, and at their edges by hand."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st

from fedsim.errors import AuditError, PartError
from fedsim.network.medium.disciplines import DISCIPLINE, EqualSharing, FirstCome, MinimumMakespan
from fedsim.network.medium.gain_sharing import EqualWithPower, GainSharing
from fedsim.network.medium.multicast import Multicast
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.medium.wifi import RateFair
from fedsim.rounds.effects.audit.audit import check_book
from tests.support.media import finish, played

PRIMES = (97, 101, 103, 107, 109, 113, 127, 131)


class Kinds:
    """Users by their efficiency as a whole number, and gains by how many are present."""

    def __init__(self, gains=None):
        self.gains = gains or {}

    def kind(self, efficiency):
        return int(efficiency)

    def among(self, users):
        return np.array(self.gains.get(users, [1.0] * 9))


class Gained(GainSharing):
    """Equal shares with gains of a test."""

    def gains_of(self, channel):
        return None


GAINS = {users: [1.0 + kind * (users - 1) / 16 for kind in range(9)] for users in range(1, 9)}
RULES = {
    "equal": EqualSharing,
    "fair": lambda: Gained(Kinds()),
    "gained": lambda: Gained(Kinds(GAINS)),
    "first-come": FirstCome,
    "together": MinimumMakespan,
    "rate-fair": RateFair,
}


@pytest.mark.parametrize("make", [*RULES.values(), Multicast], ids=[*RULES, "multicast"])
def test_nothing_takes_no_time_and_a_dead_link_holds_nobody_up(make):
    env = simpy.Environment()
    medium = Multicast(env, 1.0) if make is Multicast else SharedSpectrum(env, 1.0, make())
    dead, empty, alive = medium.send(1.0, 0.0), medium.send(0.0, 0.0), medium.send(1.0, 0.5)
    env.run(until=5.0)
    assert (dead.done.triggered, empty.done.triggered, alive.done.triggered) == (False, True, True)
    assert (dead.sent_bits(), empty.sent_bits(), alive.sent_bits()) == (0.0, 0.0, 1.0)
    dead.cancel()
    assert dead.sent_bits() == 0.0


@pytest.mark.parametrize("make", RULES.values(), ids=RULES)
def test_a_message_arrives_after_its_delay_and_the_medium_is_free_meanwhile(make):
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1.0, make())
    late, lost = medium.send(2.0, 1.0, 10.0), medium.send(0.0, 1.0, 10.0)
    env.run(until=2.0)
    lost.cancel()
    assert finish(env, late, medium.send(2.0, 1.0)) == [12.0, 4.0]
    assert not lost.done.triggered


@pytest.mark.parametrize("make", RULES.values(), ids=RULES)
def test_a_transfer_given_up_while_its_last_bit_travels_is_never_done_and_counts_as_lost(make):
    """Two Hz s at 1 Hz end at 2 s and travel for 10 s; at 5 s they are given up."""
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1.0, make())
    transfer = medium.send(2.0, 1.0, 10.0)
    env.run(until=5.0)
    assert (medium.book().received, medium.book().lost, medium.present) == (2.0, 0.0, 0)
    transfer.cancel()
    transfer.cancel()
    env.run(until=100.0)
    book = medium.book()
    assert not transfer.done.triggered
    assert (transfer.sent_bits(), transfer.work_done) == (2.0, 2.0)
    assert (book.carried, book.received, book.lost, book.under_way) == (2.0, 0.0, 2.0, 0.0)
    check_book("uplink", book)


def shares(rule, script, left):
    """Return the work of each line that a second does."""
    if rule == "first-come":
        weight = {line: int((script[line][0], line) == min((script[line][0], line) for line in left)) for line in left}
    elif rule == "together":
        weight = left
    elif rule == "rate-fair":
        weight = {line: Fraction(1, script[line][2]) for line in left}
    else:
        gains = GAINS[len(left)] if rule == "gained" else [1] * 9
        return {line: Fraction(gains[script[line][2]]) / len(left) for line in left}
    return {line: Fraction(weight[line]) / sum(weight.values()) for line in left}


def brute_force(rule, script):
    """Return ends, work done, waits and the most of a band of 1 Hz, in exact arithmetic from change to change."""
    left, ends, waits, gained, now = {}, {}, {}, Fraction(0), Fraction(0)
    done = {line: Fraction(0) for line in range(len(script))}
    changes = sorted({Fraction(t) for start, *_, cancel in script for t in (start, cancel) if t is not None})
    while changes or left:
        share = shares(rule, script, left) if left else {}
        until = min((left[line] / share[line] for line in left if share[line]), default=None)
        step = until if until is not None and (not changes or now + until <= changes[0]) else changes[0] - now
        now += step
        gained += step * (sum(share.values()) - 1 if left else 0)
        for line in list(left):
            left[line] -= step * share[line]
            done[line] += step * share[line]
            waits[line] += step * (share[line] == 0)
            if left[line] == 0:
                ends[line] = now
                del left[line]
        if changes and changes[0] == now:
            changes.pop(0)
            for line, (start, work, _, cancel) in enumerate(script):
                if cancel is not None and cancel == now:
                    left.pop(line, None)
                if start == now:
                    left[line], waits[line] = Fraction(work), Fraction(0)
    return ends, done, waits, 1000 + gained


LINES = st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 8), st.none() | st.integers(1, 9))


@pytest.mark.parametrize("rule", RULES)
@given(st.lists(LINES, min_size=1, max_size=8))
def test_ends_are_those_of_exact_arithmetic_and_nothing_gets_lost(rule, lines):
    """Cancellations lie a fraction of their own past whole seconds, so that none ties with an end.

    To cancel what has ended or was cancelled does nothing.
    """
    script = [
        (start, work, efficiency, None if after is None else start + after + Fraction(1, PRIMES[line]))
        for line, (start, work, efficiency, after) in enumerate(lines)
    ]
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1.0, RULES[rule]())
    sent = [
        (line, start, (float(work * efficiency), float(efficiency)), cancel and float(cancel))
        for line, (start, work, efficiency, cancel) in enumerate(script)
    ]
    ends, flows = played(env, medium.send, sent, 1000.0)
    for flow in flows.values():
        flow.cancel()
    expected, done, waits, most = brute_force(rule, script)
    assert ends == pytest.approx(expected, abs=1e-9)
    for line, (_, _, efficiency, _) in enumerate(script):
        flow = flows[line]
        assert (flow.sent_bits(), flow.work_done) == pytest.approx((done[line] * efficiency, done[line]), abs=1e-9)
        if line in ends:
            assert flow.queued_s() == pytest.approx(float(waits[line]), abs=1e-9)
    assert [flow.done.processed for flow in flows.values()] == [line in ends for line in flows]
    book, received = medium.book(), sum(script[line][1] for line in ends)
    assert (book.received, book.received + book.lost) == pytest.approx((received, sum(done.values())))
    assert (book.carried, book.most) == pytest.approx((sum(done.values()), most))
    assert book.presence_s == pytest.approx(book.sojourn_s)


@pytest.mark.parametrize("work", [1e16, 1e19, 1e22])
@pytest.mark.parametrize("rule", ["equal", "first-come", "together"])
def test_books_know_how_far_they_are_rounded(rule, work):
    """Of a transfer of 1e19 Hz s a float knows the work done to 2,048 Hz s, of one of 1e22 Hz s to 2^21."""
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1e6, RULES[rule]())
    medium.send(1e6, 1.0)
    env.run(until=0.3)
    endless = medium.send(work, 1.0)
    env.run(until=0.8)
    medium.send(3e5, 1.0)
    env.run(until=1.5)
    for _ in range(2):
        book = medium.book()
        check_book("uplink", book)
        assert book.rounding <= 2 * 10 * np.spacing(work), "at most ten steps with at most two or three transfers"
        endless.cancel()
    with pytest.raises(AuditError, match="uplink carried"):
        check_book("uplink", replace(book, lost=book.lost + 1e-2 + 2 * book.rounding))


def test_together_survives_a_scale_that_shrinks_again_and_again():
    """Each comes just before the others end, a million times smaller than what there was to do.

    The n-th leaves n / 2^20 Hz s of all of them, 1 / 2^20 more than there was. So the scale shrinks to 120! / 2^2400 or
    about 1e-524, which no float holds; a rescaling that forgets the older ones loses 1e-4 of what is left.
    """
    env = simpy.Environment()
    medium = SharedSpectrum(env, 1.0, MinimumMakespan())
    ends, flows = [], []
    for number in range(1, 121):
        flows.append(medium.send(1.0, 1.0))
        flows[-1].done.callbacks.append(lambda _: ends.append(env.now))
        env.run(until=env.now + 1.0 - 2.0**-20)
        assert sum(1.0 - flow.sent_bits() for flow in flows) == pytest.approx(number * 2.0**-20, rel=1e-6)
    env.run()
    assert ends == pytest.approx([120.0] * 120)
    assert medium.book().received == pytest.approx(120.0)


class Unpaired(FirstCome):
    """A rule of a user that returns the job alone."""

    def next_end(self):
        return super().next_end()[1]


def test_a_next_end_is_a_pair():
    with pytest.raises(PartError, match="allowed: a pair of the work until the next end and the job"):
        SharedSpectrum(simpy.Environment(), 1.0, DISCIPLINE.checked(Unpaired())).send(1.0, 1.0)


def test_shares_with_gains_name_themselves_where_gains_are_missing():
    with pytest.raises(RuntimeError, match=r"^EqualWithPower needs gains, or prepare\(\) with a channel"):
        EqualWithPower().join(SimpleNamespace(bits=1.0, work=1.0))
