"""Outage bursts, losses and handovers on the clock, and paths of moving clients."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.network.graph.graph import Graph
from fedsim.network.medium import failures
from fedsim.network.medium.failures import Outage, OutageBursts
from fedsim.network.topology.mobility import RandomWaypoint, Trace, Walk, standing
from tests.support.media import ACCESS, STAR, finish, of_crowd, opened, played
from tests.support.step_by_step import flows_by_events


def chance(luck):
    """Return a graph of clients, routers and a cloud, some with radios, and losses of its nodes and edges."""
    graph = nx.Graph()
    graph.add_node("cloud", kind="cloud")
    for number in range(6):
        radio = {"radio_bps": luck.uniform(2, 10)} if luck.random() < 0.4 else {}
        kind = {"kind": "client", "client": number, "relays": luck.random() < 0.4} if number < 3 else {"kind": "router"}
        graph.add_node(f"n{number}", **kind, **radio)
    always = [("cloud", "n3"), ("n3", "n0"), ("n3", "n1"), ("n3", "n2")]
    for edge in [*always, *(edge for edge in itertools.combinations(graph, 2) if luck.random() < 0.4)]:
        capacity_bps, delay_s = luck.uniform((1, 0.01), (10, 1))
        graph.add_edge(*edge, capacity_bps=capacity_bps, delay_s=delay_s, wireless=luck.random() < 0.5)
    things = [
        *({"node": f"n{luck.integers(6)}"} for _ in range(2)),
        *({"edge": edge} for edge in list(graph.edges)[:3]),
    ]
    lost = [things[number] for number in luck.integers(len(things), size=luck.integers(7))]
    spans_s = luck.uniform((0, 0.1), (20, 10), (len(lost), 2)).tolist()
    losses = [
        {"kind": "loss", "from_s": f, "duration_s": d, **thing} for thing, (f, d) in zip(lost, spans_s, strict=True)
    ]
    return graph, losses


def way(graph, source, target, lost):
    """Return the links of the fastest way that works, radios as often as they send or receive, and its delay."""
    works = graph.copy()
    works.remove_edges_from([loss["edge"] for loss in lost if "edge" in loss])
    idle = [name for name, node in graph.nodes.items() if node["kind"] == "client" and not node["relays"]]
    works.remove_nodes_from({*idle, *(loss.get("node") for loss in lost)} - {source, target})
    works.remove_nodes_from([loss["node"] for loss in lost if loss.get("node") in works])
    if source not in works or target not in works or not nx.has_path(works, source, target):
        return None
    path, links = nx.shortest_path(works, source, target, weight="delay_s"), {}
    for ends in itertools.pairwise(path):
        links[ends] = 1.0
        for name in ends if graph.edges[ends]["wireless"] else ():
            if "radio_bps" in graph.nodes[name]:
                links[name] = links.get(name, 0.0) + 1.0
    return links, nx.path_weight(works, path, "delay_s")


@given(st.integers(0, 2**32 - 1))
def test_transfers_over_what_fails_take_the_best_way_left_event_by_event(seed):
    luck = np.random.default_rng(seed)
    graph, losses = chance(luck)
    air, env = opened(Graph(topology=graph, trouble=losses), np.zeros((3, 2)))
    lines, events = [], [(0.0, "capacity", name, node.get("radio_bps")) for name, node in graph.nodes.items()]
    for one, other, edge in graph.edges(data=True):
        events += [(0.0, "capacity", ends, edge["capacity_bps"]) for ends in ((one, other), (other, one))]
    changes_s = [instant_s for loss in losses for instant_s in np.cumsum([loss["from_s"], loss["duration_s"]])]
    for flow in range(luck.integers(1, 8)):
        (start_s, bits), client = luck.uniform((0, 1), (15, 40)), luck.integers(3)
        cancel_s = start_s + luck.uniform(0.1, 15) if luck.random() < 0.3 else None
        ends = (f"n{client}", "cloud") if luck.random() < 0.6 else ("cloud", f"n{client}")
        lines.append((flow, start_s, ("downlink" if ends[0] == "cloud" else "uplink", client, bits), cancel_s))

        def way_at(at_s, ends=ends):
            return way(graph, *ends, [one for one in losses if 0 <= at_s - one["from_s"] < one["duration_s"] - 1e-9])

        events.append((start_s, "begin", flow, bits, way_at(start_s)))
        events += [(at_s, "move", flow, way_at(at_s)) for at_s in changes_s if at_s > start_s]
        events += [] if cancel_s is None else [(cancel_s, "cancel", flow)]
    found_s, _ = played(env, lambda name, *what: getattr(air, name)(*what), lines, 400.0)
    assert found_s == pytest.approx(flows_by_events({}, events)[0], rel=1e-6)


def test_causes_of_trouble_slow_down_and_multiply():
    burst = {"kind": "outage-bursts", "mean_good_s": 1e-3, "mean_bad_s": 1e9, "bad_factor": 0.25}
    air, env = opened(Graph(topology=STAR, access=ACCESS, trouble=[burst]), [[0.0, 0.0]])
    assert finish(env, air.uplink(0, 1e6)) == pytest.approx([4.0])
    air, env = opened(Graph(topology=STAR, access=ACCESS), [[0.0, 0.0]])
    (_, links), *_ = air.edges()
    air.scale(links, 0, 0.5)
    air.scale(links, 1, 0.5)
    assert finish(env, air.uplink(0, 1e6)) == pytest.approx([4.0])


class Watched(OutageBursts):
    """Outage bursts that write down when an edge turns good or bad."""

    def start(self, air, number):
        air.log = []
        scale = air.scale
        air.scale = lambda links, cause, factor: (
            air.log.append((air.env.now, tuple(links), factor)),
            scale(links, cause, factor),
        )
        super().start(air, number)


def sojourns(seed, clients, until_s, busy_from_s=0.0, **options):
    network = Graph(topology=STAR, access=ACCESS, trouble=[Watched(**options)])
    air, env = opened(network, np.zeros((clients, 2)), seed)
    if busy_from_s is not None:
        if busy_from_s:
            env.run(until=busy_from_s)
        for client in range(clients):
            air.downlink(client, 1e12)
    env.run(until=until_s)
    by_link = {}
    for time_s, links, factor in air.log:
        by_link.setdefault(links, []).append((time_s, factor))
    return by_link


@pytest.mark.statistical
def test_sojourns_and_the_share_of_bad_time_follow_theory():
    good_s, bad_s, until_s, clients = 3.0, 1.0, 400.0, 20
    found = sojourns(5, clients, until_s, mean_good_s=good_s, mean_bad_s=bad_s)
    assert len(found) == clients
    times = {1.0: [], 0.0: []}
    bad_time = 0.0
    for changes in found.values():
        assert all(before[1] != after[1] for before, after in itertools.pairwise(changes))
        for (start, factor), (end, _) in itertools.pairwise([*changes, (until_s, None)]):
            bad_time += (end - start) * (factor == 0.0)
        for (start, factor), (end, _) in itertools.pairwise(changes):
            times[factor].append(end - start)
    for factor, mean_s in ((1.0, good_s), (0.0, bad_s)):
        # An exponential's standard deviation is its mean. Sojourns cut off at the end are left out, which
        # lowers the mean by at most about one sojourn in the number per edge.
        number = len(times[factor])
        assert abs(np.mean(times[factor]) / mean_s - 1) < 4 / math.sqrt(number) + 2 * clients / number
    # Variance of the share of a stationary two-state process over T: 2 p q tau / T, with 1 / tau = 1 / good + 1 / bad.
    p, tau_s = bad_s / (good_s + bad_s), 1 / (1 / good_s + 1 / bad_s)
    sigma = math.sqrt(2 * p * (1 - p) * tau_s / (until_s * clients))
    assert abs(bad_time / (until_s * clients) - p) < 4 * sigma


@pytest.mark.statistical
def test_an_edge_is_bad_at_the_start_as_often_as_later():
    number = 3000
    found = sojourns(1, number, 1e-9, mean_good_s=1.0, mean_bad_s=4.0)
    bad = sum(changes[0][1] == 0.0 for changes in found.values())
    assert abs(bad / number - 0.8) < 4 * math.sqrt(0.8 * 0.2 / number)


def test_bursts_strike_the_edges_named_and_a_further_client_changes_none():
    options = {"mean_good_s": 1.0, "mean_bad_s": 1.0}
    few, many = (sojourns(2, clients, 20.0, **options) for clients in (3, 5))
    assert list(few.values()) == list(many.values())[:3]
    assert len({tuple(changes) for changes in many.values()}) == 5
    only = sojourns(2, 3, 20.0, **options, edges=[("cloud", "bs-0")])
    assert len(only) == 1
    with pytest.raises(ScenarioError, match="no edge 'client-0' - 'cloud'"):
        sojourns(2, 3, 20.0, **options, edges=[("client-0", "cloud")])


def test_idle_edges_sleep_and_wake_up_in_the_state_that_they_would_have_had():
    options = {"mean_good_s": 1.0, "mean_bad_s": 1.0}
    always = sojourns(7, 20, 120.0, **options)
    asleep = sojourns(7, 20, 120.0, busy_from_s=None, **options)
    assert all(len(changes) == 1 for changes in asleep.values())
    later = sojourns(7, 20, 120.0, busy_from_s=100.0, **options)
    for links, changes in always.items():
        state = [factor for time_s, factor in changes if time_s <= 100.0][-1]
        since = [(time_s, factor) for time_s, factor in changes if time_s > 100.0]
        np.testing.assert_allclose(later[links][1:], [(100.0, state), *since], rtol=1e-12)


def test_a_sleep_of_too_many_bursts_is_refused(monkeypatch):
    monkeypatch.setattr(failures, "MOST_SOJOURNS", 20)
    bursts = {"kind": "outage-bursts", "mean_good_s": 1.0, "mean_bad_s": 1.0}
    air, env = opened(Graph(topology=STAR, access=ACCESS, trouble=[bursts]), [[0.0, 0.0]])
    env.run(until=100.0)
    air.uplink(0, 1e6)
    with pytest.raises(ScenarioError, match=r"access of client 0 would be good and bad more than 20 .* at 100 s"):
        env.run(until=101.0)


def test_wireless_edges_have_the_names_of_their_ends_and_both_directions():
    """A chain of three radios 80 m apart, each of which reaches 100 m; the link to the cloud is a wire."""
    wire = {"capacity_bps": 1e6, "delay_s": 0.0}
    mesh = {"kind": "mesh", "range_m": 100.0, "hop": wire, "backhaul": wire}
    air, _ = opened(Graph(topology=mesh), [[80.0, 0.0], [160.0, 0.0]])
    assert [name for name, _ in air.edges()] == ["bs-0 - client-0", "client-0 - client-1"]
    ends = [(air.topology.names[link.tail], air.topology.names[link.head]) for link in air.topology.links]
    between = [sorted(ends[number] for number in links) for _, links in air.edges()]
    pairs = (("bs-0", "client-0"), ("client-0", "client-1"))
    assert between == [[(one, other), (other, one)] for one, other in pairs]


def test_random_waypoints_join_up_stay_within_and_keep_to_the_speeds():
    settings = RandomWaypoint(radius_m=50.0, slowest_m_per_s=1.0, fastest_m_per_s=3.0, pause_s=4.0)
    legs = list(itertools.islice(of_crowd(settings, 1)(2, (5.0, 6.0)), 100))
    assert legs[0].place_m == (5.0, 6.0)
    for before, after in itertools.pairwise(legs):
        took_s = before.end_s - before.start_s
        end = np.array(before.place_m) + took_s * np.array(before.velocity_m_per_s)
        np.testing.assert_allclose(end, after.place_m, atol=1e-9)
        assert after.start_s == before.end_s
        assert math.hypot(*after.place_m) <= 50.0
        speed = math.hypot(*before.velocity_m_per_s)
        assert (speed == 0 and took_s == pytest.approx(4.0)) or 1 - 1e-9 <= speed <= 3 + 1e-9
    again = list(itertools.islice(of_crowd(settings, 1)(2, (5.0, 6.0)), 100))
    assert again == legs
    assert list(itertools.islice(of_crowd(settings, 1, 1)(2, (5.0, 6.0)), 100)) != legs


def test_a_walk_is_where_its_legs_are_also_when_asked_ahead_and_back():
    movement = of_crowd(RandomWaypoint(radius_m=50.0, slowest_m_per_s=1.0, fastest_m_per_s=3.0, pause_s=4.0), 1)
    legs = list(itertools.takewhile(lambda leg: leg.start_s < 900, movement(2, (5.0, 6.0))))
    walk = Walk(movement(2, (5.0, 6.0)))
    assert not walk.stands
    for times in (np.zeros(1), np.arange(0.0, 300.0, 7.0), np.arange(3.0, 90.0, 0.3), np.array([450.0, 451.0, 800.0])):
        for time_s, place in zip(times, walk.at(times, times[0]), strict=True):
            leg = [leg for leg in legs if leg.start_s <= time_s][-1]
            expected = np.array(leg.place_m) + (time_s - leg.start_s) * np.array(leg.velocity_m_per_s)
            np.testing.assert_allclose(place, expected, atol=1e-9)
    still = Walk(standing(0, (1.0, 2.0)))
    assert still.stands
    assert still.at(np.array([0.0, 1e9]), 0.0).tolist() == [[1.0, 2.0]] * 2


@pytest.mark.statistical
def test_waypoints_are_uniform_over_the_disc():
    movement = of_crowd(RandomWaypoint(radius_m=1.0, slowest_m_per_s=1.0, fastest_m_per_s=2.0), 1)
    places = np.array([leg.place_m for leg in itertools.islice(movement(0, (0.0, 0.0)), 1, 4001)])
    # The squared radius and the two coordinates: means 1/2 and 0, variances 1/12 and 1/4.
    assert abs((places**2).sum(axis=1).mean() - 0.5) < 4 * math.sqrt(1 / 12 / 4000)
    assert np.all(np.abs(places.mean(axis=0)) < 4 * math.sqrt(0.25 / 4000))


@pytest.mark.parametrize(
    ("part", "options"),
    [
        (Outage, {"from_s": 1.0, "duration_s": 1.0}),
        (Outage, {"from_s": 1.0, "duration_s": 1.0, "node": "a", "edge": ("a", "b")}),
        (OutageBursts, {"mean_good_s": 1.0, "mean_bad_s": 1.0, "bad_factor": 1.0}),
        (OutageBursts, {"mean_good_s": 0.0, "mean_bad_s": 1.0}),
        (RandomWaypoint, {"radius_m": 1.0, "slowest_m_per_s": 2.0, "fastest_m_per_s": 1.0}),
        (RandomWaypoint, {"radius_m": 1.0, "slowest_m_per_s": 0.0, "fastest_m_per_s": 1.0}),
        (Trace, {}),
        (Trace, {"points": [[0, 1.0, 0.0, 0.0], [0, 1.0, 1.0, 1.0]]}),
    ],
)
def test_wrong_options_are_refused(part, options):
    with pytest.raises(ValidationError):
        part(**options)
