"""Links with a transport: handshakes, headers and slow start by hand; the server's link by progressive filling."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from simpy import Environment

from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS
from fedsim.network.fedscale import RateLinks
from fedsim.network.transport.transport import Tcp
from fedsim.streams import Streams
from fedsim.testing import check_network
from tests.support.media import built, played
from tests.support.step_by_step import flows_by_events

PLAIN = {"overhead": 0.0, "header_bytes": 0.0, "handshakes": 0, "rtt_s": 1e-6}


def over(rates_bps, streams=None, **options):
    return Tcp(**options).over(RateLinks(np.array(rates_bps, dtype=float)), streams or Streams(0))


def test_a_slow_link_is_full_from_the_start_worked_by_hand():
    """1 Mbit/s and 50 ms hold 50 kbit, less than ten segments of 11,584 bits: no slow start, 2 round trips before."""
    links = over([1e6], rtt_s=0.05, overhead=0.1, header_bytes=100.0)
    by_hand_s = (1e6 + 800) * 1.1 / 1e6
    only, start_s = np.array([0]), np.zeros(1)
    assert links.uplink_s(only, 1, start_s, 1e6)[0] == pytest.approx(by_hand_s)
    assert links.downlink_s(only, 1, start_s, 1e6)[0] == pytest.approx(by_hand_s + 0.1)
    assert links.expected_downlink_s(1e6)[0] == pytest.approx(by_hand_s + 0.1)


def test_a_fast_link_waits_for_slow_start_worked_by_hand():
    """At 1 Gbit/s the windows 10, 15 and 22.5 of three round trips are sent in far less than 100 ms each."""
    segments = 10 * (1.5**3 - 1) / 0.5
    links = over([1e9], rtt_s=0.1, overhead=0.0, header_bytes=0.0, segment_bytes=1448)
    took_s = links.uplink_s(np.array([0]), 1, np.zeros(1), segments * 1448 * 8)
    assert took_s[0] == pytest.approx(0.3)


def test_a_small_window_holds_a_fast_link_back():
    """16 segments in 100 ms, whatever the link carries."""
    links = over([1e9], rtt_s=0.1, window_bytes=16 * 1448, overhead=0.0, header_bytes=0.0)
    ten_s, twenty_s = (links.uplink_s(np.array([0]), 1, np.zeros(1), bits)[0] for bits in (1e7, 2e7))
    assert twenty_s - ten_s == pytest.approx(1e7 / (16 * 1448 * 8 / 0.1))


def test_bits_of_a_message_cut_short_do_not_count_waits_and_headers():
    """1 Mbit/s: 0.1 s of handshakes before the downlink, and (1 Mbit + 800) * 1.1 bits for a message of 1 Mbit."""
    links = over([1e6], rtt_s=0.05, overhead=0.1, header_bytes=100.0)

    def carried(elapsed_s, up):
        elapsed_s = np.array(elapsed_s)
        only = np.zeros(elapsed_s.size, dtype=np.int64)
        return links.carried_bits(only, 1, np.full(elapsed_s.size, 3.0), elapsed_s, 1e6, up=up).tolist()

    payload = 1e6 / ((1e6 + 800) * 1.1)
    assert carried([0.0, 0.5, 1.0], up=True) == pytest.approx([0.0, 5e5 * payload, 1e6 * payload])
    assert carried([0.05, 0.1, 0.6, 1.1], up=False) == pytest.approx([0.0, 0.0, 5e5 * payload, 1e6 * payload])
    assert carried([1.10088], up=True) == pytest.approx([1e6])


def test_bits_of_a_fast_link_come_after_the_round_trips_of_slow_start():
    """Three windows of 10, 15 and 22.5 segments take 0.3 s, of which the link at 1 Gbit/s needs the last 0.55 ms."""
    links = over([1e9], rtt_s=0.1, overhead=0.0, header_bytes=0.0, segment_bytes=1448)
    bits = 47.5 * 1448 * 8
    half_s = 0.5 * bits / 1e9
    elapsed_s = np.array([0.2, 0.3 - 2 * half_s, 0.3 - half_s, 0.3])
    found = links.carried_bits(np.zeros(4, dtype=np.int64), 1, np.zeros(4), elapsed_s, bits, up=True)
    assert found.tolist() == pytest.approx([0.0, 0.0, bits / 2, bits], abs=1.0)


def ends(links, bits, starts_s, way="uplink", cancels_s=None):
    """Return the instants at which messages of some bits, one of each client, have arrived, and those by number."""
    env = Environment()
    lines = zip(starts_s, enumerate(bits), cancels_s or [None] * len(bits), strict=True)
    return played(env, getattr(links.open(env), way), [(sent[0], start_s, sent, gone) for start_s, sent, gone in lines])


FLOW = st.tuples(
    st.floats(1e5, 1e7),
    st.floats(1e5, 1e7),
    st.floats(0.0, 3.0),
    st.none() | st.floats(0.01, 3.0).map(lambda s: s + 0.0317),
)


@given(
    flows=st.lists(FLOW, min_size=1, max_size=8),
    capacity=st.floats(1e5, 5e7),
    way=st.sampled_from(["uplink", "downlink"]),
    busy=st.sampled_from([0.0, 0.25]),
)
def test_flows_share_what_background_leaves_of_the_server_max_min_fairly(flows, capacity, way, busy):
    """Some are given up, with so many bits sent."""
    rates, bits, starts_s, after_s = zip(*flows, strict=True)
    cancels_s = [None if after is None else start_s + after for start_s, after in zip(starts_s, after_s, strict=True)]
    limit = {"ingress_bps" if way == "uplink" else "egress_bps": capacity, "background": {"least": busy, "most": busy}}
    links = over(rates, server=limit, **{**PLAIN, "first_window": 1})
    ways = [({client: 1.0, "server": 1.0}, 0.0) for client in range(len(flows))]
    events = [(start_s, "begin", client, bits[client], ways[client]) for client, start_s in enumerate(starts_s)]
    events += [(at_s, "cancel", client) for client, at_s in enumerate(cancels_s) if at_s is not None]
    expected_s, seen = flows_by_events({**dict(enumerate(rates)), "server": (1 - busy) * capacity}, events)
    found_s, sent = ends(links, bits, starts_s, way, cancels_s)
    assert found_s == pytest.approx(expected_s, rel=1e-3, abs=1e-3)
    for client, flow in sent.items():
        left_bits = 0.0 if client in expected_s else seen[-1][client]
        assert flow.sent_bits() == pytest.approx(bits[client] - left_bits, rel=1e-3, abs=1e-3 * rates[client])


def test_random_background_is_integrated_over_its_intervals():
    streams, other = Streams(5), {"least": 0.0, "most": 0.9, "interval_s": 0.5}
    links = over([1e9], streams, server={"ingress_bps": 1e6, "background": other}, **PLAIN)
    left_bps = 1e6 * (1 - 0.9 * streams.uniform("server-background-ingress", np.arange(40)))
    carried = np.concatenate([[0.0], np.cumsum(left_bps * 0.5)])
    start_s, bits = 1.2, 4e6
    before = np.interp(start_s, 0.5 * np.arange(41), carried)
    expected_s = np.interp(before + bits, carried, 0.5 * np.arange(41))
    assert ends(links, [bits], [start_s])[0][0] == pytest.approx(expected_s, rel=1e-3)
    assert ends(links, [bits], [start_s])[0] == ends(links, [bits], [start_s])[0]


LAW = {"kind": "log-normal", "median_s": 1.0, "sigma": 0.2}
NETS = {
    "latency": {"kind": "latency", "downlink": LAW, "uplink": LAW},
    "fedscale": {"kind": "fedscale"},
    "cell": {"kind": "cell"},
    "shared cell": {"kind": "cell", "downlink": {"sharing": "multicast"}, "uplink": {"sharing": "equal"}},
    "graph": {
        "kind": "graph",
        "topology": {"kind": "star", "backhaul": {"capacity_bps": 1e8, "delay_s": 0.01}},
        "access": {"downlink_bps": 1e6, "uplink_bps": 1e6, "delay_s": 0.01},
    },
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_every_network_with_a_transport_keeps_the_contract(name, loss):
    check_network({**NETS[name], "transport": {"rtt_s": 0.04, "loss": loss}}, bits=1e8)


@pytest.mark.parametrize("name", ["latency", "fedscale", "cell"])
def test_the_server_of_every_network_with_links_of_its_own_keeps_the_contract(name):
    server = {"ingress_bps": 3e6, "egress_bps": 4e6, "background": {"least": 0.1, "most": 0.1}}
    check_network({**NETS[name], "transport": {"server": server}}, bits=1e8)


def test_a_latency_network_with_a_transport_needs_the_size_of_the_model():
    assert NETWORKS.make(NETS["latency"]).requires == frozenset()
    assert NETWORKS.make({**NETS["latency"], "transport": "tcp"}).requires == {"model-bits"}


@pytest.mark.parametrize("name", ["shared cell", "graph"])
def test_a_limit_of_the_server_is_refused_where_links_are_shared(name):
    network = NETWORKS.make({**NETS[name], "transport": {"server": {"ingress_bps": 1e6}}})
    with pytest.raises(
        ScenarioError, match=r"network\.transport\.server\.ingress_bps = 1000000.0 is not allowed where"
    ):
        built(network, np.ones((3, 2)))
