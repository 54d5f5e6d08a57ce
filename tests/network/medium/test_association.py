"""Handover by event A3 and reselection when a cell fails, by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.network.graph.graph import Graph
from fedsim.network.topology.handover import HandoverRule, Watch
from tests.support.media import ACCESS, LOST, TWO_CELLS, WALK, finish, opened


# At 10 m/s from a station to the other, 100 m away, and back. With 37.6 dB per decade of distance the other is 3 dB
# stronger where the distances are as 10^(3 / 37.6) = 1.20169 to 1: at 54.580 m, so at 5.458 s, and back at 15.458 s.
@pytest.mark.parametrize(
    ("rule", "times_s"),
    [
        # First measured at 5.6 s; after 0.2 s it has not been long enough, after 0.4 s it has.
        ({}, [6.0, 16.0]),
        ({"measured_every_s": 0.001}, [5.715, 15.715]),
        ({"time_to_trigger_s": 0.0}, [5.6, 15.6]),
        ({"time_to_trigger_s": 1.0}, [6.6, 16.6]),
        # In the middle the two are equally strong, which is not stronger.
        ({"hysteresis_db": 0.0, "time_to_trigger_s": 0.0}, [5.2, 15.2]),
        # 15 dB: 10^(15 / 37.6) = 2.5056 to 1, at 71.474 m.
        ({"hysteresis_db": 15.0}, [7.6, 17.6]),
        ({"time_to_trigger_s": 5.12}, [10.8]),
    ],
)
def test_handovers_by_hand(rule, times_s):
    network = Graph(topology=TWO_CELLS, access=ACCESS, mobility=WALK, handover=rule)
    air, env = opened(network, [[0.0, 0.0], [1.0, 0.0]])
    air.uplink(0, 1e9)
    air.downlink(1, 1e9)
    env.run(until=100.0)
    names = itertools.cycle(["bs-0", "bs-1"])
    ways = itertools.pairwise(itertools.islice(names, len(times_s) + 1))
    found = [(handover.client, handover.from_station, handover.to_station) for handover in air.handovers]
    if len(times_s) == 1:  # still stronger 5.12 s after it was first, though the client is on its way back
        found = found[:1]
    assert found == [(0, *way) for way in ways]
    assert [handover.time_s for handover in air.handovers][: len(times_s)] == pytest.approx(times_s, abs=1e-9)


def test_a_client_with_nothing_on_its_way_is_attached_to_the_strongest_when_it_begins():
    air, env = opened(Graph(topology=TWO_CELLS, access=ACCESS, mobility=WALK), [[0.0, 0.0]])
    env.run(until=5.1)
    assert air.handovers == []
    air.uplink(0, 1.0)
    # 51 m from one station and 49 m from the other: no hysteresis binds it to where it has been.
    (_, up), names = air._attached.access[0], air.topology.names
    assert names[air.topology.links[up].head] == "bs-1"
    env.run(until=5.11)
    assert air.handovers == []


def test_a_handover_interrupts_a_transfer_and_frees_the_old_cell():
    network = Graph(topology={**TWO_CELLS, "radio_bps": 1e6}, access=ACCESS, mobility=WALK, interruption_s=0.5)
    air, env = opened(network, [[0.0, 0.0], [0.0, 0.0]])
    # Both at 0.5 Mbit/s until 6 s. The one that stays has 1 Mbit left and the cell for itself: 7 s. The other
    # has 1 Mbit left too, waits until 6.5 s, and has the new cell for itself: 7.5 s.
    assert finish(env, air.uplink(1, 4e6), air.uplink(0, 4e6)) == pytest.approx([7.0, 7.5])
    # One that begins during the interruption waits for its end, and then shares the cell with what was left.
    air, env = opened(network, [[0.0, 0.0], [0.0, 0.0]])
    first = air.uplink(0, 6.1e6)
    env.run(until=6.2)
    assert finish(env, air.downlink(0, 1e3), first) == pytest.approx([6.502, 6.601])


@pytest.mark.parametrize("third_fails_s", [None, 11.3, 11.4, 11.5])
def test_news_of_a_third_cell_neither_hastens_nor_delays_a_handover_by_a3(third_fails_s):
    # On with the other cell at 2 s, and back by A3: measured as stronger from 11.2 s on, for 0.4 s at 11.6 s.
    other = [{**LOST, "node": "bs-2", "from_s": third_fails_s, "duration_s": 40.0}] if third_fails_s else []
    topology, rule = {**TWO_CELLS, "cells": 2 + len(other)}, {"reselect_after_s": 1.0}
    network = Graph(topology=topology, access=ACCESS, handover=rule, trouble=[LOST, *other])
    air, env = opened(network, [[10.0, 0.0]])
    assert finish(env, air.uplink(0, 20e6)) == pytest.approx([21.0])
    assert [change.to_station for change in air.handovers] == ["bs-1", "bs-0"]
    assert [change.time_s for change in air.handovers] == pytest.approx([2.0, 11.6])


@pytest.mark.parametrize(
    ("access", "rule", "bits", "end_s", "changes"),
    [
        # 1 Mbit by 1 s; nothing until the cell is back at 11 s.
        ({}, {}, 4e6, 14.0, []),
        # On with the other cell at 2 s.
        ({}, {"reselect_after_s": 1.0}, 4e6, 5.0, [(2.0, "bs-1")]),
        ({}, {"reselect_after_s": 0.0}, 4e6, 4.0, [(1.0, "bs-1")]),
        # The other cell is 90 m away.
        ({"reach_m": 89.0}, {"reselect_after_s": 1.0}, 4e6, 14.0, []),
        ({"reach_m": 91.0}, {"reselect_after_s": 1.0}, 4e6, 5.0, [(2.0, "bs-1")]),
        # The old cell is back before the client has found another.
        ({}, {"reselect_after_s": 10.5}, 4e6, 14.0, []),
    ],
)
def test_a_client_of_a_lost_cell_looks_for_another_or_waits(access, rule, bits, end_s, changes):
    network = Graph(topology=TWO_CELLS, access={**ACCESS, **access}, handover=rule, trouble=[LOST])
    air, env = opened(network, [[10.0, 0.0]])
    assert finish(env, air.uplink(0, bits)) == pytest.approx([end_s])
    assert [(change.time_s, change.to_station) for change in air.handovers] == [
        (pytest.approx(time_s), station) for time_s, station in changes
    ]


def test_who_begins_while_the_nearest_cell_is_lost_begins_with_another_if_it_may():
    for rule, end_s in (({"reselect_after_s": 3.0}, 6.0), ({}, 12.0)):
        network = Graph(topology=TWO_CELLS, access=ACCESS, handover=rule, trouble=[LOST])
        air, env = opened(network, [[10.0, 0.0]])
        env.run(until=5.0)
        assert finish(env, air.uplink(0, 1e6)) == pytest.approx([end_s])
        assert air.handovers == []


def test_a_search_goes_on_while_other_cells_fail_and_ends_when_one_in_reach_is_back():
    three = {**TWO_CELLS, "cells": 3}
    trouble = [
        LOST,
        {"kind": "loss", "node": "bs-1", "from_s": 1.5, "duration_s": 4.0},
        {"kind": "loss", "node": "bs-2", "from_s": 1.7, "duration_s": 20.0},
    ]
    network = Graph(topology=three, access=ACCESS, handover={"reselect_after_s": 1.0}, trouble=trouble)
    air, env = opened(network, [[10.0, 0.0]])
    # Searches of 1 s end at 2, 3.2, 4.4 and 5.6 s, each begun 0.2 s after one in vain; bs-1 is back at 5.5 s.
    assert finish(env, air.uplink(0, 2e6)) == pytest.approx([6.6])
    assert air.handovers == [(pytest.approx(5.6), 0, "bs-0", "bs-1")]


def steps_of_a3(rule, times_s, signal_db, serving):
    """Work event A3 out measurement by measurement, as the standard defines it."""
    running = {}
    for row, time_s in enumerate(times_s):
        for station in range(signal_db.shape[1]):
            entering = station != serving and signal_db[row, station] - rule.hysteresis_db > signal_db[row, serving]
            if not entering:
                running.pop(station, None)
            else:
                running.setdefault(station, time_s)
        ready = [s for s, since in running.items() if time_s - since >= rule.time_to_trigger_s - 1e-9]
        if ready:
            return row, max(ready, key=lambda s: (signal_db[row, s], -s))
    return None


@given(
    st.integers(1, 40),
    st.integers(1, 4),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([0.0, 0.1, 0.25, 0.6, 2.0]),
    st.integers(0, 2**32 - 1),
    st.integers(1, 39),
)
def test_a_watch_is_event_a3_measurement_by_measurement(rows, stations, hysteresis, trigger, seed, cut):
    rule = HandoverRule(hysteresis_db=hysteresis, time_to_trigger_s=trigger, measured_every_s=0.1)
    rng = np.random.default_rng(seed)
    signal = np.cumsum(rng.integers(-2, 3, (rows, stations)), axis=0).astype(float)
    times = rule.ticks_s(3.14, rows)
    never = np.full(stations, np.inf)
    expected = steps_of_a3(rule, times, signal, 0)
    assert Watch.over(rule, times, signal, 0, never).first() == expected
    # The same in two pieces.
    if 0 < cut < rows:
        early = Watch.over(rule, times[:cut], signal[:cut], 0, never)
        since = early.since_at(times[cut - 1], never)
        late = Watch.over(rule, times[cut:], signal[cut:], 0, since).first()
        assert (early.first() or (None if late is None else (late[0] + cut, late[1]))) == expected


@given(st.floats(0, 1e6), st.sampled_from([0.04, 0.1, 0.2, 1 / 3, 1.0]))
def test_ticks_are_the_next_multiples_of_the_period(now_s, period_s):
    ticks = HandoverRule(measured_every_s=period_s).ticks_s(now_s, 5)
    assert ticks.shape == (5,)
    assert now_s < ticks[0] <= now_s + period_s * (1 + 1e-9)
    np.testing.assert_allclose(ticks / period_s, np.round(ticks / period_s), rtol=1e-12)
    again = HandoverRule(measured_every_s=period_s).ticks_s(float(ticks[0]), 4)
    np.testing.assert_array_equal(again, ticks[1:])
