"""Flows on the clock: times by hand, conservation, cancelling, waiting for a way."""

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from fedsim.network.medium.fluid import Fluid
from fedsim.network.topology.flow_state import Route
from tests.support.media import ends_of, finish, played


def route(*links, delay_s=0.0):
    return Route(links, (1.0,) * len(links), delay_s)


def test_a_flow_alone_takes_its_bits_over_the_narrowest_link_and_the_delay_once():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0, 4.0]))
    assert finish(env, fluid.begin(20.0, route(0, 1, delay_s=0.5))) == [5.5]


def test_a_latecomer_slows_the_first_by_hand():
    # Alone at 10 for 1 s; both at 5 until the first has sent its other 10 at 3 s; the second has 10 left: 4 s.
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0]))
    first = fluid.begin(20.0, route(0))
    env.run(until=1.0)
    second = fluid.begin(20.0, route(0))
    env.run(until=2.0)
    assert first.rate_bps() == second.rate_bps() == 5.0
    assert first.sent_bits() == 15.0
    assert finish(env, first, second) == [3.0, 4.0]
    assert first.sent_bits() == second.sent_bits() == 20.0
    assert first.rate_bps() == second.rate_bps() == 0.0


def test_cancelling_frees_the_link_and_never_triggers():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0]))
    gone, other = (fluid.begin(20.0, route(0)) for _ in range(2))
    env.run(until=2.0)
    gone.cancel()
    gone.cancel()
    # The other has 10 left at 2 s and the link for itself.
    assert finish(env, other) == [3.0]
    assert gone.sent_bits() == 10.0
    assert not gone.done.triggered
    other.cancel()
    assert other.sent_bits() == 20.0


def test_a_flow_cancelled_while_its_last_bit_travels_is_never_done():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0]))
    flow = fluid.begin(10.0, route(0, delay_s=1.0))
    env.run(until=1.5)
    assert flow.sent_bits() == 10.0
    flow.cancel()
    env.run()
    assert not flow.done.triggered


def test_no_bits_take_the_delay_and_need_a_way():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0]))
    flows = {"now": fluid.begin(0.0, route(0, delay_s=0.25)), "later": fluid.begin(0.0, None)}
    ends = ends_of(env, flows)
    env.run(until=2.0)
    assert ends == {"now": 0.25}
    fluid.move(flows["later"], route(0, delay_s=0.25))
    env.run()
    assert ends == {"now": 0.25, "later": 2.25}


def test_what_is_left_goes_another_way():
    # 5 s on a link of 2 carry 10 bits; then nothing for 3 s; the other 10 take 1 s on a link of 10.
    env = simpy.Environment()
    fluid = Fluid(env, np.array([2.0, 10.0]))
    flow = fluid.begin(20.0, route(0, delay_s=9.0))
    env.run(until=5.0)
    fluid.move(flow, None)
    assert (flow.rate_bps(), flow.sent_bits()) == (0.0, 10.0)
    env.run(until=8.0)
    fluid.move(flow, route(1, delay_s=0.5))
    assert finish(env, flow) == [9.5]


def test_a_way_lost_at_the_instant_of_the_last_bit_stops_nothing():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([2.0]))
    flow = fluid.begin(20.0, route(0))
    env.run(until=10.0)  # SimPy stops before the events of this instant
    fluid.move(flow, None)
    env.run()
    assert flow.done.triggered


def test_a_capacity_that_changes():
    # 10 bits in 1 s; nothing for 2 s; the other 10 at 5.
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0]))
    flow = fluid.begin(20.0, route(0))
    env.run(until=1.0)
    fluid.set_capacity(0, 0.0)
    env.run(until=3.0)
    fluid.set_capacity(0, 5.0)
    assert finish(env, flow) == [5.0]


@pytest.mark.parametrize("bits", [-1.0, np.inf, np.nan])
def test_sizes_that_are_none_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        Fluid(simpy.Environment(), np.ones(1)).begin(bits, route(0))


def sharing_a_star(sizes, starts, server_bps, access_bps):
    """Return the arrivals of equal sharing over a server's link, worked out in small steps of the textbook's fluid."""
    left, now, ends = dict(enumerate(sizes)), 0.0, {}
    while left:
        active = [i for i in left if starts[i] <= now]
        rate = min(access_bps, server_bps / len(active)) if active else 0.0
        comes = min((starts[i] for i in left if starts[i] > now), default=np.inf)
        goes = min((now + left[i] / rate for i in active), default=np.inf)
        following = min(comes, goes)
        for i in active:
            left[i] -= rate * (following - now)
            if now + (left[i] + rate * (following - now)) / rate <= following * (1 + 1e-12):
                ends[i] = following
                del left[i]
        now = following
    return [ends[i] for i in range(len(sizes))]


@given(
    st.lists(st.tuples(st.floats(1.0, 100.0), st.floats(0.0, 20.0)), min_size=1, max_size=12),
    st.floats(1.0, 20.0),
    st.floats(1.0, 20.0),
)
def test_flows_on_a_star_equal_processor_sharing(transfers, server_bps, access_bps):
    env = simpy.Environment()
    clients = len(transfers)
    fluid = Fluid(env, np.array([access_bps] * clients + [server_bps]))
    lines = [(i, start_s, (bits, route(i, clients)), None) for i, (bits, start_s) in enumerate(transfers)]
    ends, _ = played(env, fluid.begin, lines)
    expected = sharing_a_star(*zip(*transfers, strict=True), server_bps, access_bps)
    np.testing.assert_allclose([ends[i] for i in range(clients)], expected, rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_bits_are_conserved_and_no_link_is_overloaded(seed):
    luck = np.random.default_rng(seed)
    env = simpy.Environment()
    capacity = luck.uniform(1.0, 10.0, 5)
    fluid = Fluid(env, capacity)
    carried = np.zeros(5)
    flows = []

    def client():
        yield env.timeout(luck.uniform(0, 5))
        links = tuple(luck.permutation(5)[: luck.integers(1, 4)].tolist())
        flow = fluid.begin(luck.uniform(1, 30), route(*links))
        flows.append(flow)
        yield flow.done | env.timeout(luck.uniform(1, 20))
        flow.cancel()
        carried[list(links)] += flow.sent_bits()
        assert 0 <= flow.sent_bits() <= flow.bits

    def auditor():
        for _ in range(40):
            yield env.timeout(0.5)
            assert np.all(fluid.load_bps() <= capacity * (1 + 1e-9))

    env.process(auditor())
    for _ in range(15):
        env.process(client())
    env.run()
    assert all(flow.sent_bits() == flow.bits for flow in flows if flow.done.triggered)
    assert np.all(carried <= capacity * env.now * (1 + 1e-9))
    assert not fluid.transfers


def test_all_that_wait_for_a_link_are_told_of_its_first_transfer_and_each_once():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([10.0, 10.0, 10.0]))
    waiting = [fluid.in_use(links) for links in ([0], [0], [0, 1], [1])]
    fluid.begin(10.0, route(0))
    assert [event.triggered for event in waiting] == [True, True, True, False]
    fluid.begin(10.0, route(1))
    assert waiting[3].triggered
    assert fluid.in_use([1, 2]).triggered, "one in use already"
    assert not fluid.in_use([2]).triggered


def test_one_event_waits_and_rates_are_worked_out_once_an_instant():
    env = simpy.Environment()
    fluid = Fluid(env, np.array([1e3]))
    for i in range(100):
        fluid.begin(10.0 * (1 + i // 50), route(0))
    env.run()
    # 100 come together, 50 go together, 50 go together.
    assert fluid.recomputed == 3
