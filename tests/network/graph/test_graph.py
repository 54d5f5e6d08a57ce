"""The graph network: routes, builders, files, refusals, times by hand."""

import itertools
import json

import networkx as nx
import numpy as np
import pytest
import simpy
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS
from fedsim.network.graph.graph import Graph
from fedsim.network.topology.generators import Given, TwoTier, hexagonal_sites
from fedsim.network.topology.topology import Topology, read_graph
from tests.support.media import built, finish, opened

ACCESS = {"downlink_bps": 8e6, "uplink_bps": 2e6, "delay_s": 0.01}
STAR = {"kind": "star", "backhaul": {"capacity_bps": 1e7, "delay_s": 0.02}}
NOWHERE = np.zeros((3, 2))


def times(air, env, transfers):
    """Start transfers (way, client, bits) now and return when each has arrived."""
    return finish(env, *(getattr(air, way)(client, bits) for way, client, bits in transfers))


def wire(capacity_bps=1e6, delay_s=0.0, **more):
    return {"capacity_bps": capacity_bps, "delay_s": delay_s, **more}


def test_a_star_by_hand():
    links = built(Graph(topology=STAR, access=ACCESS), NOWHERE)
    assert links.shared == (True, True)
    # Alone: 1 Mbit at 8 and at 2 Mbit/s, and 30 ms; two downlinks share 10 Mbit/s of backhaul at 5 each.
    np.testing.assert_allclose(links.expected_downlink_s(1e6), 0.125 + 0.03)
    np.testing.assert_allclose(links.uplink_s(np.array([2, 0]), 1, np.zeros(2), 1e6), 0.5 + 0.03)
    for transfers, ends in (
        ([("downlink", 0, 1e6)], [0.155]),
        ([("downlink", 0, 1e6), ("downlink", 1, 1e6)], [0.23, 0.23]),
        # The two ways of a wire have the whole capacity each.
        ([("downlink", 0, 1e6), ("uplink", 1, 1e6)], [0.155, 0.53]),
    ):
        env = simpy.Environment()
        assert times(links.open(env), env, transfers) == pytest.approx(ends, rel=1e-12)


TIERS = {"cells": 2, "site_distance_m": 100.0, "fronthaul": wire(5e6, 0.001), "backhaul": wire(1e6, 0.1)}
TWO_TIER = {"kind": "two-tier", **TIERS}


def test_two_tiers_by_hand():
    places = [[0.0, 1.0], [2.0, 0.0], [99.0, 0.0]]
    transfers = [("uplink", 0, 1e6), ("uplink", 1, 1e6), ("uplink", 2, 1e6)]
    # To the cloud: two share 1 Mbit/s of backhaul, one has the other cell's to itself; 10 + 1 + 100 ms.
    air, env = opened(Graph(topology=TWO_TIER, access=ACCESS), places)
    assert times(air, env, transfers) == pytest.approx([2.111, 2.111, 1.111])
    # To the edge: each has its access of 2 Mbit/s, as the fronthaul carries 5.
    air, env = opened(Graph(topology=TWO_TIER, access=ACCESS, server="edge-server"), places)
    assert times(air, env, transfers) == pytest.approx([0.511] * 3)
    # What an edge server has gathered goes on to the cloud in one piece.
    gathered = air.transfer("edge-0", "cloud", 3e6)
    began_s = env.now
    env.run(until=gathered.done)
    assert env.now - began_s == pytest.approx(3.1)


def test_a_mesh_hops_and_pays_each_relay_twice():
    mesh = {"kind": "mesh", "range_m": 100.0, "hop": wire(6e6, 0.001), "backhaul": wire(1e9, 0.01), "radio_bps": 6e6}
    places = [[90.0, 0.0], [180.0, 0.0]]
    network = Graph(topology=mesh)
    links = built(network, places)
    # Client 1 goes over client 0, whose radio carries every bit twice: 3 Mbit/s.
    assert links.expected_uplink_s(3e6).tolist() == pytest.approx([0.5 + 0.011, 1.0 + 0.012])
    air, env = opened(network, places)
    # Together the relay's radio is full: r + 2 r = 6, so 2 Mbit/s each; client 0 then is done at 1 s with 2 Mbit,
    # and client 1 has 3 Mbit/s for the rest of its 5: at 2 s.
    assert times(air, env, [("uplink", 0, 2e6), ("uplink", 1, 5e6)]) == pytest.approx([1.011, 2.012])


def test_routes_have_the_least_delay_and_ties_go_to_fewer_hops_then_lower_numbers():
    graph = nx.Graph()
    graph.add_node("cloud", kind="cloud")
    graph.add_node("c", kind="client", client=0)
    graph.add_nodes_from("pqr", kind="router")
    for delay_s, way in ((1.0, ("c", "q", "cloud")), (1.0, ("c", "p", "cloud")), (0.5, ("c", "r", "p"))):
        nx.add_path(graph, way, **wire(delay_s=delay_s))
    topology = Topology()
    read_graph(graph, topology)
    for source, target in (("c", "cloud"), ("cloud", "c")):
        found = topology.route(topology.node(source), topology.node(target))
        nodes = {topology.names[end] for number in found.links for end in _ends(topology, number)}
        assert nodes == {"c", "p", "cloud"}
        assert found.delay_s == 2.0


def _ends(topology, number):
    return topology.links[number].tail, topology.links[number].head


@given(st.integers(0, 2**32 - 1))
def test_delays_of_routes_are_those_of_networkx(seed):
    luck = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(9, 0.35, seed=int(luck.integers(2**31)), directed=bool(luck.integers(2)))
    for node in graph:
        graph.nodes[node].update({"kind": "router"})
    for one, other in graph.edges:
        graph.edges[one, other].update(wire(delay_s=float(luck.integers(0, 4))))
    topology = Topology()
    read_graph(graph, topology)
    for source, target in itertools.permutations(range(9), 2):
        found = topology.route(topology.node(str(source)), topology.node(str(target)))
        if found is None:
            assert not nx.has_path(graph, source, target)
        else:
            assert found.delay_s == nx.shortest_path_length(graph, source, target, weight="delay_s")
            walked = [_ends(topology, number) for number in found.links]
            assert walked[0][0] == source
            assert walked[-1][1] == target
            assert all(before[1] == after[0] for before, after in itertools.pairwise(walked))


def test_nothing_passes_through_a_client_that_does_not_relay():
    graph = nx.Graph()
    graph.add_node("cloud", kind="cloud")
    graph.add_node("a", kind="client", client=0)
    graph.add_node("b", kind="client", client=1)
    graph.add_edge("a", "cloud", **wire(delay_s=0.25))
    graph.add_edge("a", "b", **wire())
    with pytest.raises(ScenarioError, match=r"client 1 \(node 'b'\) has no route to the server"):
        built(Graph(topology=graph), np.zeros((2, 2)))
    graph.nodes["a"]["relays"] = True
    assert built(Graph(topology=graph), np.zeros((2, 2))).expected_uplink_s(0.0).tolist() == [
        0.25,
        0.25,
    ]


def small_graph(directed=False):
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_node("cloud", kind="cloud")
    graph.add_node("bs", kind="base-station", x_m=0.0, y_m=0.0)
    for i in range(3):
        graph.add_node(f"phone-{i}", kind="client", client=i)
        graph.add_edge("bs", f"phone-{i}", capacity_bps=8e6, delay_s=0.01, wireless=True)
    graph.add_edge("cloud", "bs", capacity_bps=10_000_000, delay_s=0.02)
    if directed:
        for one, other in list(graph.edges):
            graph.add_edge(other, one, **{**graph.edges[one, other], "capacity_bps": np.float64(1e6)})
    return graph


@pytest.mark.parametrize("directed", [False, True])
def test_one_graph_by_networkx_graphml_json_and_toml(tmp_path, directed):
    graph = small_graph(directed)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges"), default=float))
    (tmp_path / "old.json").write_text(json.dumps(nx.node_link_data(graph, edges="links"), default=float))
    networks = [Graph(topology=graph)] + [
        NETWORKS.make({"kind": "graph", "topology": {"kind": "file", "path": str(tmp_path / name)}})
        for name in ("g.graphml", "g.json", "old.json")
    ]
    networks.append(NETWORKS.make(NETWORKS.describe(networks[0])))
    for network in networks:
        links = built(network, NOWHERE)
        np.testing.assert_allclose(links.expected_downlink_s(8e6), 1.03)
        np.testing.assert_allclose(links.expected_uplink_s(8e6), 8.03 if directed else 1.03)


def altered(change):
    graph = small_graph()
    change(graph)
    return graph


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.edges["bs", "cloud"].pop("delay_s"), r"edge 'cloud' - 'bs': delay_s is missing"),
        (lambda g: g.edges["bs", "phone-1"].pop("capacity_bps"), r"edge 'bs' - 'phone-1': capacity_bps is missing"),
        (lambda g: g.edges["bs", "cloud"].update(capacity_bps=0.0), r"edge 'cloud' - 'bs': capacity_bps = 0.0"),
        (lambda g: g.edges["bs", "cloud"].update(delay_s="1"), r"edge 'cloud' - 'bs': delay_s = '1'"),
        (lambda g: g.edges["bs", "cloud"].update(delay=1.0), r"edge 'cloud' - 'bs': delay = 1.0 .*did you mean"),
        (lambda g: g.nodes["bs"].pop("kind"), r"node 'bs': kind is missing"),
        (lambda g: g.nodes["bs"].update(kind="cellar"), r"node 'bs': kind = 'cellar'"),
        (lambda g: g.nodes["phone-1"].pop("client"), r"node 'phone-1': client is the number"),
        (lambda g: g.remove_node("phone-1"), r"client 1 has no node"),
        (lambda g: g.nodes["phone-1"].update(client=2), r"client 1 has no node"),
        (lambda g: g.nodes["phone-1"].update(client=7), r"client 1 has no node"),
        (lambda g: g.add_node("x", kind="client", client=3), r"there are 4 nodes of kind client"),
        (lambda g: g.nodes["cloud"].update(kind="router"), r"exactly one cloud"),
        (lambda g: g.remove_edge("bs", "phone-2"), r"client 2 \(node 'phone-2'\) has no route to the server"),
        (lambda g: g.add_edge("bs", "bs", **wire()), r"edge 'bs' - 'bs' .* two different nodes"),
    ],
)
def test_graphs_that_lack_something_are_refused_by_name(tmp_path, change, message):
    graph = altered(change)
    with pytest.raises(ScenarioError, match=message):
        built(Graph(topology=graph), NOWHERE)
    path = tmp_path / "in-a-file.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    with pytest.raises(ScenarioError, match=message) as caught:
        built(Graph(topology={"kind": "file", "path": str(path)}), NOWHERE)
    assert all(line.startswith(f"network: {path}: ") for line in str(caught.value).splitlines())


def test_what_a_file_lacks_on_the_clock_is_refused_with_the_file(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps(nx.node_link_data(small_graph(), edges="edges")))
    for trouble in ({"node": "bs-9"}, {"edge": ["bs", "bs-9"]}, {"edge": ["cloud", "phone-1"]}):
        loss = {"kind": "loss", "from_s": 1.0, "duration_s": 1.0, **trouble}
        network = Graph(topology={"kind": "file", "path": str(path)}, trouble=[loss])
        with pytest.raises(ScenarioError, match=f"network: {path}: there is no (node|edge) "):
            opened(network, NOWHERE)[1].run(until=2.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not valid JSON"),
        ("a.json", "[" * 100_000, "not valid JSON"),
        ("a.json", "[]", "not a node-link graph"),
        ("a.json", '{"nodes": [{"kind": "cloud"}], "edges": []}', "node number 0: id = None"),
        ("a.json", '{"nodes": [{"id": "a"}, {"id": "a"}], "edges": []}', "node 'a' occurs twice"),
        ("a.json", '{"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "b"}]}', "there is no node 'b'"),
        ("a.json", '{"multigraph": true, "nodes": [], "edges": []}', "multigraph"),
        (
            "a.json",
            '{"nodes": [{"id": 1, "kind": "cloud"}, {"id": 2, "kind": "router"}],'
            ' "edges": [{"source": 1, "target": 2, "capacity_bps": NaN, "delay_s": 0}]}',
            "edge '1' - '2': capacity_bps = nan",
        ),
        ("a.graphml", "<graphml", "not valid GraphML"),
        ("a.graphml", '<!DOCTYPE g [<!ENTITY a "b">]><graphml/>', "document type"),
        ("a.graphml", "<other/>", "not valid GraphML"),
        ("a.txt", "", "ends in .graphml or .json"),
        ("b.json", None, "cannot be read"),
    ],
)
def test_files_that_are_no_graph_are_refused(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    network = Graph(topology={"kind": "file", "path": str(tmp_path / name)})
    with pytest.raises(ScenarioError, match=message):
        built(network, NOWHERE)


def test_base_stations_need_places_and_the_graph_no_clients_where_access_attaches_them():
    with pytest.raises(ScenarioError, match="node 'phone-0' is not allowed"):
        built(Graph(topology=small_graph(), access=ACCESS), NOWHERE)
    graph = nx.Graph([("bs", "cloud", wire())])
    graph.nodes["cloud"]["kind"] = "cloud"
    graph.nodes["bs"].update(kind="base-station", x_m=0.0)
    with pytest.raises(ScenarioError, match="node 'bs': x_m or y_m is missing"):
        built(Graph(topology=graph, access=ACCESS), NOWHERE)
    graph.nodes["bs"].update(kind="router")
    with pytest.raises(ScenarioError, match="no base station"):
        built(Graph(topology=graph, access=ACCESS), NOWHERE)


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"topology": {"kind": "ring"}}, ("topology",)),
        ({"topology": {"kind": "star", "backhaul": {"capacity_bps": 1.0}}}, ("topology", "backhaul", "delay_s")),
        ({"topology": STAR, "access": {**ACCESS, "uplink_bps": 0.0}}, ("access", "uplink_bps")),
        ({"topology": STAR, "server": "fog"}, ("server",)),
        ({"topology": STAR, "trouble": [{"kind": "flood"}]}, ("trouble", 0)),
        ({"topology": STAR, "mobility": {"kind": "trace", "points": [[0, 0.0, 0.0, 0.0]]}}, ()),
    ],
)
def test_wrong_settings_are_refused_by_path(table, path):
    with pytest.raises(ValidationError) as caught:
        NETWORKS.make({"kind": "graph", **table})
    assert caught.value.errors()[0]["loc"] == path


def test_a_multigraph_is_refused():
    with pytest.raises(ValidationError, match="multigraph"):
        Graph(topology=nx.MultiGraph())
    with pytest.raises(ScenarioError, match="itself"):
        opened(Graph(topology=STAR, access=ACCESS), NOWHERE)[0].transfer("bs-0", "bs-0", 1.0)
    with pytest.raises(ScenarioError, match="no node 'bs-9'"):
        opened(Graph(topology=STAR, access=ACCESS), NOWHERE)[0].transfer("bs-9", "bs-0", 1.0)


def test_hexagonal_sites_are_as_far_apart_as_said():
    sites = hexagonal_sites(19, 500.0)
    apart = np.hypot(*(sites[:, None] - sites[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_allclose(apart.min(axis=1), 500.0)
    assert np.unique(np.round(np.hypot(*sites.T), 6)).tolist() == pytest.approx([0.0, 500.0, 500 * 3**0.5, 1000.0])


def test_builders_say_all_that_a_graph_must():
    graph = TwoTier.model_validate(TIERS).graph(NOWHERE)
    assert Given.of(graph).graph(NOWHERE).adj == graph.adj
    assert sorted(graph) == ["bs-0", "bs-1", "cloud", "edge-0", "edge-1"]
