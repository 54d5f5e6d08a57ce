"""Planned participations against plain sums: one wait a client, cut by a dropout or by the server."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simpy import Environment

from fedsim.clock import call_after
from fedsim.history.outcomes import NOT_CUT, Outcome
from fedsim.rounds.clients.interruptions import Interruptions
from fedsim.rounds.clients.participation import Participations

BITS = (8.0, 16.0)
NOTHING_ENDS_EARLY = Interruptions((0.0, 0.0, 0.0), None, {}, None, ())
# Multiples of 1/4 add up exactly in any order, so that ties between ends, dropouts and the server are frequent.
quarters = st.integers(0, 12).map(lambda number: number / 4)
never = st.just(math.inf)
clients = st.lists(st.tuples(quarters, quarters, quarters, quarters | never), min_size=1, max_size=6)


def steadily(planned_s):
    """Return what tells the bits of transfers that carry them in proportion to time."""

    def carried(phase, member, _start_s, elapsed_s):
        return BITS[phase // 2] * elapsed_s / planned_s[phase, member]

    return carried


def run(lines, stops_s, interruptions=None):
    """Return the participations of clients, and their ends in order; the server stops waiting at an instant."""
    env, ended = Environment(initial_time=1.0), []
    *phases_s, leaves_s = np.array(lines).T
    planned_s = np.array(phases_s)
    participations = Participations(
        env,
        planned_s,
        leaves_s,
        {},
        BITS,
        planned_s[1],
        interruptions,
        None,
        None,
        steadily(planned_s),
        lambda i, delivered: ended.append((i, delivered, env.now)),
    )
    everyone = participations.delivered(len(lines))
    if stops_s < math.inf:
        call_after(env, stops_s, lambda _: participations.cancel())
    env.run()
    assert everyone.triggered == participations.all_delivered == bool(participations.arrived.all())
    return participations, ended


def worked(down_s, work_s, up_s, leaves_s, stops_s):
    """Return outcome, phase of the cut, end, seconds and bits of a client that ends at the first of three instants."""
    phases_s, whole_s, cut_s = (down_s, work_s, up_s), down_s + work_s + up_s, min(leaves_s, stops_s)
    if whole_s <= cut_s:
        return Outcome.DELIVERED, NOT_CUT, whole_s, list(phases_s), list(BITS)
    cut_in = next(phase for phase in range(3) if cut_s < sum(phases_s[: phase + 1]))
    spent_s = [*phases_s[:cut_in], cut_s - sum(phases_s[:cut_in]), 0.0, 0.0][:3]
    share = spent_s[cut_in] / phases_s[cut_in]
    bits = [BITS[0] * (1.0 if cut_in else share), BITS[1] * (share if cut_in == 2 else 0.0)]
    return Outcome.DROPPED if leaves_s < stops_s else Outcome.LATE, cut_in, cut_s, spent_s, bits


@settings(max_examples=50, deadline=None)
@given(clients, quarters.map(lambda quarter: quarter + 0.125) | never)
def test_planned_participations_are_the_sums_of_their_phases(lines, stops_s):
    """The server stops between the multiples of 1/4, so that no end ties with it."""
    participations, ended = run(lines, stops_s)
    assert sorted(i for i, *_ in ended) == list(range(len(lines)))
    assert [time for *_, time in ended] == sorted(time for *_, time in ended)
    for i, line in enumerate(lines):
        outcome, cut_in, end_s, spent_s, bits = worked(*line, stops_s)
        assert (participations.outcome[i], participations.cut_in[i]) == (outcome, cut_in), line
        assert participations.ended_s[i] == 1.0 + end_s
        assert participations.spent_s[:, i].tolist() == spent_s
        assert participations.sent_bits[:, i] == pytest.approx(bits)


@settings(max_examples=50, deadline=None)
@given(clients, quarters | never)
def test_one_wait_is_the_same_as_waits_that_are_watched(lines, stops_s):
    """Watched waits end by other callbacks; without anything that ends them early they are the same, ties included."""
    (plain, order), (watched, same) = run(lines, stops_s), run(lines, stops_s, NOTHING_ENDS_EARLY)
    timed = [i for i, line in enumerate(lines) if sum(line[:3]) > 0]
    assert [end for end in order if end[0] in timed] == [end for end in same if end[0] in timed]
    for name in ("outcome", "cut_in", "ended_s", "spent_s", "sent_bits"):
        np.testing.assert_array_equal(getattr(plain, name)[..., timed], getattr(watched, name)[..., timed])


def test_milestones_come_with_the_delivery_that_reaches_them():
    env, seen = Environment(), []
    planned_s = np.array([[0.0, 0.0, 0.0], [3.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    participations = Participations(
        env, planned_s, None, {}, BITS, planned_s[1], None, None, None, steadily(planned_s), None
    )
    for count in (1, 2, 3):
        participations.delivered(count).callbacks.append(lambda _, count=count: seen.append((count, env.now)))
    env.run()
    assert seen == [(1, 1.0), (2, 2.0), (3, 3.0)]
    late = participations.delivered(2)
    env.run()
    assert late.processed, "a milestone that is passed is triggered at once"


def awaited(lines, stops_s, asks, *, all_awaited):
    """Return the participations of clients for whom a server waits, and when a count of them, asked late, is there."""
    env, reached = Environment(initial_time=1.0), []
    planned_s = np.array(lines).T[:3]
    participations = Participations(
        env,
        planned_s,
        None,
        {},
        BITS,
        planned_s[1],
        None,
        None,
        None,
        steadily(planned_s),
        None,
        all_awaited=all_awaited,
    )
    everyone = participations.delivered(len(lines))
    if asks is not None:
        asks_s, count = asks

        def ask(_):
            event = participations.delivered(min(count, len(lines)))
            if event.processed:  # this count was awaited before, and is there
                reached.append(env.now)
            else:
                event.callbacks.append(lambda _: reached.append(env.now))

        call_after(env, asks_s, ask)
    if stops_s < math.inf:
        call_after(env, stops_s, lambda _: participations.cancel())
    env.run()
    assert everyone.triggered == participations.all_delivered
    return participations, reached


eighths = quarters.map(lambda quarter: quarter + 0.125)


@settings(max_examples=50, deadline=None)
@example([(0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.25, 0.0)], math.inf, (0.125, 2))
@given(clients, eighths | never, st.none() | st.tuples(eighths, st.integers(1, 6)))
def test_one_event_for_the_last_end_is_the_same_as_one_for_each_client(lines, stops_s, asks):
    """Also if the server stops before, or asks for a smaller number of clients while they work."""
    (one, at_s), (each, same_s) = (awaited(lines, stops_s, asks, all_awaited=shares) for shares in (True, False))
    assert at_s == same_s
    for name in ("ended_s", "outcome", "cut_in", "spent_s", "sent_bits", "arrived"):
        np.testing.assert_array_equal(getattr(one, name), getattr(each, name), err_msg=name)


def test_what_has_ended_by_an_instant_is_known_before_the_one_event():
    """Ends at 1 s + (0.5 s, 2 s, 0.75 s): at 1.6 s the first, at 2 s the first and the third, at 3 s all."""
    env = Environment(initial_time=1.0)
    planned_s = np.array([[0.25, 1.0, 0.25], [0.25, 0.5, 0.25], [0.0, 0.5, 0.25]])
    members = Participations(
        env, planned_s, None, {}, BITS, planned_s[1], None, None, None, steadily(planned_s), None, all_awaited=True
    )
    everyone, seen = members.delivered(3), []
    for at_s in (0.6, 1.0):
        call_after(env, at_s, lambda _: seen.append((members.ended_s.tolist(), members.all_delivered)))
    env.run(until=everyone)
    nan = math.nan
    np.testing.assert_equal(seen, [([1.5, nan, nan], False), ([1.5, nan, 1.75], False)])
    assert (env.now, members.ended_s.tolist(), members.all_delivered) == (3.0, [1.5, 3.0, 1.75], True)
