"""Planned participations against plain sums: one wait a client, cut by a dropout or by the server."""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from simpy import Environment

from fedsim.clock import call_after
from fedsim.devices import Always
from fedsim.history.outcomes import NOT_CUT, Outcome
from fedsim.rounds.clients.clients import Clients
from fedsim.rounds.clients.participations import Participations
from fedsim.rounds.effects.contract import Effect, Effects, Limit
from fedsim.rounds.effects.of_parts import of_dropout
from fedsim.rounds.plan import Look, Plan
from fedsim.rounds.run import Run
from fedsim.rounds.workload import Workload
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.worlds import CountingLearner, FixedCompute, FixedDropout, FixedLinks

BITS = (8.0, 16.0)
# Multiples of 1/4 add up exactly in any order, so that ties between ends, dropouts and the server are frequent.
quarters = st.integers(0, 12).map(lambda number: number / 4)
eighths = quarters.map(lambda quarter: quarter + 0.125)
never = st.just(math.inf)
clients = st.lists(st.tuples(quarters, quarters, quarters, quarters | never), min_size=1, max_size=6)


class Watching(Effect):
    """Asks for the start of each phase, and ends nothing."""

    starts = frozenset({0, 1, 2})

    def limit(self, plan, phase, members):
        return Limit()


def sent(env, lines, on_end=None, effects=(), *, all_awaited=False):
    """Return the participations of clients with times of their phases, and of leaving, on a clock."""
    down_s, work_s, up_s, leaves_s = np.array([(*line, math.inf)[:4] for line in lines]).T
    size = len(lines)
    streams, links, work = Streams(0), FixedLinks(down_s, up_s), FixedCompute(work_s)
    setup = RunSetup(size, streams)
    run = Run(env, setup, links, work, Always().build(setup), Workload(CountingLearner(np.full(size, 10))))
    run.effects = Effects([*of_dropout(FixedDropout(leaves_s), run), *effects])
    plan = Plan(np.arange(size), 1, 1, Look(env.now, 1), bits=BITS, samples=np.ones(size), compute_s=work_s)
    plan.waits_for_all = all_awaited
    return Participations(Clients(run), plan, on_end)


def run(lines, stops_s, effects=()):
    """Return the participations of clients, and their ends in order; the server stops waiting at an instant."""
    env, ended = Environment(initial_time=1.0), []
    participations = sent(env, lines, lambda i, delivered: ended.append((i, delivered, env.now)), effects)
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


@given(clients, quarters.map(lambda quarter: quarter + 0.125) | never)
def test_planned_participations_are_the_sums_of_their_phases(lines, stops_s):
    """The server stops between the multiples of 1/4, so that no end ties with it."""
    participations, ended = run(lines, stops_s)
    assert sorted(i for i, *_ in ended) == list(range(len(lines)))
    assert [time for *_, time in ended] == sorted(time for *_, time in ended)
    plan = participations.plan
    for i, line in enumerate(lines):
        outcome, cut_in, end_s, spent_s, bits = worked(*line, stops_s)
        assert (plan.outcome[i], plan.cut_in[i]) == (outcome, cut_in), line
        assert participations.ended_s[i] == 1.0 + end_s
        assert plan.spent_s[:, i].tolist() == spent_s
        assert participations.sent_bits[:, i] == pytest.approx(bits)


def columns(participations):
    plan = participations.plan
    return [plan.outcome, plan.cut_in, participations.ended_s, plan.spent_s, participations.sent_bits]


@given(clients, eighths | never)
def test_one_wait_is_the_same_as_waits_whose_starts_are_seen(lines, stops_s):
    """Phases that are planned when they begin are the same as phases planned ahead."""
    lines = [(*line[:3], math.inf) for line in lines]
    (plain, order), (watched, same) = run(lines, stops_s), run(lines, stops_s, [Watching()])
    timed = [i for i, line in enumerate(lines) if sum(line[:3]) > 0]
    assert sorted(end for end in order if end[0] in timed) == sorted(end for end in same if end[0] in timed)
    for one, other in zip(columns(plain), columns(watched), strict=True):
        np.testing.assert_array_equal(one[..., timed], other[..., timed])


def test_milestones_come_with_the_delivery_that_reaches_them():
    env, seen = Environment(), []
    participations = sent(env, [(0.0, 3.0, 0.0), (0.0, 1.0, 0.0), (0.0, 2.0, 0.0)])
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
    participations = sent(env, [line[:3] for line in lines], all_awaited=all_awaited)
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


@example([(0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.25, 0.0)], math.inf, (0.125, 2))
@given(clients, eighths | never, st.none() | st.tuples(eighths, st.integers(1, 6)))
def test_one_event_for_the_last_end_is_the_same_as_one_for_each_client(lines, stops_s, asks):
    """Also if the server stops before, or asks for a smaller number of clients while they work."""
    (one, at_s), (each, same_s) = (awaited(lines, stops_s, asks, all_awaited=shares) for shares in (True, False))
    assert at_s == same_s
    for one_column, other in zip(columns(one), columns(each), strict=True):
        np.testing.assert_array_equal(one_column, other)
    np.testing.assert_array_equal(one.arrived, each.arrived)


def test_what_has_ended_by_an_instant_is_known_before_the_one_event():
    """Ends at 1 s + (0.5 s, 2 s, 0.75 s): at 1.6 s the first, at 2 s the first and the third, at 3 s all."""
    env = Environment(initial_time=1.0)
    members = sent(env, [(0.25, 0.25, 0.0), (1.0, 0.5, 0.5), (0.25, 0.25, 0.25)], all_awaited=True)
    everyone, seen = members.delivered(3), []
    for at_s in (0.6, 1.0):
        call_after(env, at_s, lambda _: seen.append((members.ended_s.tolist(), members.all_delivered)))
    env.run(until=everyone)
    nan = math.nan
    np.testing.assert_equal(seen, [([1.5, nan, nan], False), ([1.5, nan, 1.75], False)])
    assert (env.now, members.ended_s.tolist(), members.all_delivered) == (3.0, [1.5, 3.0, 1.75], True)
