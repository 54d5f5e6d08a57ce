"""Flows on the clock: against plain events, at instants that coincide, waiting for a link."""

import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st

from fedsim.network.medium.fluid import Fluid
from fedsim.network.topology.flow_state import Route
from tests.support.step_by_step import flows_by_events


def route(*links):
    return Route(links, (1.0,) * len(links), 0.0)


def test_a_way_lost_at_the_instant_of_the_last_bit_stops_nothing():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([2.0]))
    flow = fluid.begin(20.0, route(0))
    env.run(until=10.0)  # SimPy stops before the events of this instant
    fluid.move(flow, None)
    env.run()
    assert flow.done.triggered


@pytest.mark.parametrize("bits", [-1.0, np.inf, np.nan])
def test_sizes_that_are_none_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        Fluid(simpy.Environment(), np.ones(1)).begin(bits, route(0))


def chance(luck):
    """Return flows over four links that come, move, wait for a way and are cancelled, and capacities that change."""

    def way():
        links = luck.permutation(4)[: luck.integers(1, 4)].tolist()
        ways = [None, *[({link: luck.uniform(0.5, 2) for link in links}, luck.choice([0.0, luck.uniform(0, 3)]))] * 6]
        return ways[luck.integers(7)]

    events = [(0.0, "capacity", link, luck.uniform(1, 10)) for link in range(4)]
    for flow in range(luck.integers(1, 9)):
        at_s = luck.uniform(0, 20, luck.integers(1, 5)).cumsum()
        events.append((at_s[0], "begin", flow, luck.choice([0.0, *luck.uniform(1, 30, 3)]), way()))
        events += [(instant_s, "move", flow, way()) for instant_s in at_s[1:]]
        events += [(at_s[-1] + luck.uniform(0, 8), "cancel", flow)] * luck.integers(3)
    events += [(luck.uniform(0, 30), "capacity", link, luck.choice([0.0, luck.uniform(1, 10)])) for link in range(2)]
    return sorted(events, key=lambda event: event[0])


@given(st.integers(0, 2**32 - 1))
def test_flows_that_come_move_and_go_against_plain_events(seed):
    events = chance(np.random.default_rng(seed))
    env = simpy.Environment()
    capacity = np.ones(4)
    fluid = Fluid(env, capacity)
    flows, ends, seen = {}, {}, []

    def routed(way):
        return way and Route(tuple(way[0]), tuple(way[0].values()), way[1])

    for instant_s, what, name, *known in events:
        if instant_s > env.now:
            env.run(until=instant_s)
        if what == "begin":
            flows[name] = fluid.begin(known[0], routed(known[1]))
            flows[name].done.callbacks.append(lambda _, name=name: ends.setdefault(name, env.now))
        elif what == "move":
            fluid.move(flows[name], routed(known[0]))
        elif what == "cancel":
            flows[name].cancel()
        else:
            capacity[name] = known[0]
            fluid.set_capacity(name, known[0])
        seen.append({flow: transfer.bits - transfer.sent_bits() for flow, transfer in flows.items()})
        assert np.all(fluid.load_bps() <= capacity * (1 + 1e-9))
    env.run()
    expected_s, left = flows_by_events(dict.fromkeys(range(4), 1.0), events)
    assert ends == pytest.approx(expected_s, rel=1e-9)
    assert seen == [pytest.approx(bits, rel=1e-9, abs=1e-9) for bits in left]
    assert not any(transfer.rate_bps() for flow, transfer in flows.items() if flow in ends)


def test_all_that_wait_for_a_link_are_told_of_its_first_transfer_and_each_once():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0, 10.0, 10.0]))
    waiting = [fluid.in_use(links) for links in ([0], [0], [0, 1], [1])]
    flow = fluid.begin(10.0, route(0))
    assert [event.triggered for event in waiting] == [True, True, True, False]
    fluid.begin(10.0, route(1))
    assert waiting[3].triggered
    assert fluid.in_use([1, 2]).triggered, "one in use already"
    assert not fluid.in_use([2]).triggered
    fluid.move(flow, route(2))
    assert not fluid.in_use([0]).triggered


def test_one_event_waits_and_rates_are_worked_out_once_an_instant():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([1e3]))
    for i in range(100):
        fluid.begin(10.0 * (1 + i // 50), route(0))
    env.run()
    # 100 come together, 50 go together, 50 go together.
    assert fluid.recomputed == 3
