"""Models between edge servers and cloud: over wired links, and over a network's links."""

import numpy as np
import pytest
import simpy

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.rounds import BACKHAULS
from fedsim.rounds.hierarchy.backhaul import BACKHAUL, ThroughNetwork, Wire
from tests.support.short_runs import timed
from tests.support.stories import rows
from tests.support.worlds import FixedLinks


def test_a_wired_link_takes_its_delay_and_the_time_for_the_bits():
    env = simpy.Environment()
    carry = Wire(rate_bps=4.0, delay_s=0.5).open(env, FixedLinks([], []), None, 10.0)
    flow = carry(0, True)
    env.run(until=1.0)
    assert flow.sent_bits() == 4.0
    env.run(until=2.75)
    assert flow.sent_bits() == 10.0, "the last bit is on its way"
    assert not flow.done.processed
    env.run(until=3.5)
    assert flow.done.processed
    assert (env.now, flow.sent_bits()) == (3.5, 10.0)
    cut = carry(0, False)
    env.run(until=4.0)
    cut.cancel()
    env.run(until=9.0)
    assert cut.sent_bits() == 2.0


def test_a_backhaul_of_ones_own_is_told_edge_and_direction():
    asked = []

    class Own(Wire):
        def open(self, env, links, medium, bits):
            carry = super().open(env, links, medium, bits)
            return lambda edge, up: (asked.append((edge, up)), carry(edge, up))[1]

    carry = BACKHAUL.checked(Own(rate_bps=4.0, delay_s=0.5)).open(simpy.Environment(), FixedLinks([], []), None, 10.0)
    for edge, up in ((1, True), (0, False)):
        assert carry(edge, up).sent_bits() == 0.0
    assert asked == [(1, True), (0, False)]


def test_a_network_of_clients_alone_carries_no_models():
    with pytest.raises(ScenarioError, match="'network' is not allowed with a network in which only clients send"):
        ThroughNetwork().open(simpy.Environment(), FixedLinks([], []), None, 10.0)


def test_every_kind_states_what_it_requires():
    requires = {kind: BACKHAULS.load(kind).requires for kind in BACKHAULS.builtin}
    assert requires == {"link": {"model-bits"}, "network": {"model-bits", "routes"}, "none": frozenset()}


def node(name, kind, **options):
    return {"id": name, "kind": kind, **options}


def link(source, target, capacity_bps, delay_s=0.0):
    return {"source": source, "target": target, "capacity_bps": capacity_bps, "delay_s": delay_s}


# Two clients at edge server ``east`` and one at ``west``; both reach the cloud through a router, over one link.
GRAPH = {
    "kind": "given",
    "nodes": [
        node("cloud", "cloud"),
        node("router", "router"),
        node("west", "edge-server"),
        node("east", "edge-server"),
        node("nobody", "edge-server"),
        *(node(f"client-{i}", "client", client=i) for i in range(3)),
    ],
    "edges": [
        link("cloud", "router", 500.0, 0.25),
        link("router", "west", 4000.0),
        link("router", "east", 4000.0),
        link("router", "nobody", 4000.0, 9.0),
        link("client-0", "east", 1000.0),
        link("client-1", "west", 250.0),
        link("client-2", "east", 1000.0),
    ],
}


def scenario(**tables):
    network = {"kind": "graph", "topology": GRAPH, "server": "edge-server"}
    rounds = {"count": 1, "edges": {"grouping": "site", "backhaul": "network"}}
    return timed(clients=3, bits=1000.0, samples=10, **{"network": network, "rounds": rounds, **tables})


def test_models_share_the_networks_links_and_edges_are_those_that_serve():
    """Edge 0 is ``west`` with client 1, edge 1 ``east`` with clients 0 and 2; ``nobody`` serves no client.

    Down: 1,000 bits each over 500 bit/s shared by two: 4 s and the delay of 0.25 s. A client of ``east`` alone on its
    link of 1,000 bit/s takes 1 s each way, the client of ``west`` 4 s. Up: ``east`` begins at 6.25 s with the link to
    itself, 2.25 s, until 8.5 s; ``west`` begins at 12.25 s and takes 2.25 s too.
    """
    history = simulate(scenario())
    assert rows(history.participations, "edge", "client") == [(1, 0), (1, 2), (0, 1)]
    names = ("edge", "downlink_s", "uplink_s", "end_s", "downlink_bits", "uplink_bits")
    assert [tuple(np.round(row, 9)) for row in rows(history.edge_participations, *names)] == [
        (0, 4.25, 2.25, 14.5, 1000.0, 1000.0),
        (1, 4.25, 2.25, 8.5, 1000.0, 1000.0),
    ]
    weights = history.column("edge_participations", "weight").tolist()
    assert weights == pytest.approx([1 / 3, 2 / 3])


def test_a_wired_link_beside_the_graph_is_not_shared():
    wire = {"kind": "link", "rate_bps": 500.0, "delay_s": 0.25}
    history = simulate(scenario(rounds={"count": 1, "edges": {"grouping": "site", "backhaul": wire}}))
    assert history.column("edge_participations", "downlink_s").tolist() == [2.25, 2.25]


def test_a_lost_link_delays_models():
    """The link to the cloud is lost from 1 to 21 s, while models are on their way down."""
    trouble = {"kind": "loss", "edge": ["cloud", "router"], "from_s": 1.0, "duration_s": 20.0}
    network = {"kind": "graph", "topology": GRAPH, "server": "edge-server", "trouble": [trouble]}
    history = simulate(scenario(network=network))
    assert history.column("edge_participations", "downlink_s").tolist() == pytest.approx([24.25, 24.25])


def test_a_graph_without_a_route_to_one_cloud_is_refused():
    def graph(nodes, links):
        topology = {"kind": "given", "nodes": nodes, "edges": links}
        return scenario(network={"kind": "graph", "topology": topology, "server": "edge-server"})

    nodes, links = GRAPH["nodes"], GRAPH["edges"]
    with pytest.raises(ScenarioError, match="there are 0 nodes of kind cloud"):
        simulate(graph(nodes[1:], links[1:]))
    with pytest.raises(ScenarioError, match="edge server 'west' has no route to and from the cloud"):
        simulate(graph(nodes, links[1:]))
