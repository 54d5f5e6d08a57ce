"""Edge servers in scenario files: what is taken, what it becomes, and what is refused with which words."""

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import PartError, ScenarioError
from fedsim.rounds.hierarchy.grouping import Grouping
from tests.support.field_values import CONSTANT_ACCESS, TWO_TIER
from tests.support.short_runs import timed

WIRE = {"kind": "link", "rate_bps": 1e6, "delay_s": 0.01}
ORDER = {"kind": "order", "count": 2}
GRAPH = {"kind": "graph", "topology": TWO_TIER, "access": CONSTANT_ACCESS}
AT_EDGES = {**GRAPH, "server": "edge-server"}
WALK = {"kind": "random-waypoint", "slowest_m_per_s": 1.0, "fastest_m_per_s": 2.0, "pause_s": 0.0, "radius_m": 60.0}
LATENCY = {"kind": "latency", "downlink": "zero", "uplink": "zero"}


def scenario(edges, **tables):
    rounds = tables.pop("rounds", {})
    crowd = {"clients": 6, "placement": {"kind": "disc", "radius_m": 60.0}}
    usual = {"crowd": crowd, "network": "cell", "devices": {}, "rounds": {"count": 2, "edges": edges, **rounds}}
    return timed(bits=1e5, samples=20, cohort=4, **{**usual, **tables})


def test_edges_survive_a_round_trip_and_a_changed_value():
    made = scenario(
        {"grouping": ORDER, "rounds": 3, "merging": {"kind": "asynchronous", "mixing": 0.1 + 0.2}, "backhaul": WIRE}
    )
    read = Scenario.from_toml(made.to_toml())
    assert read == made
    assert read.digest() == made.digest()
    changed = made.replace({"rounds.edges.merging": "synchronous", "rounds.edges.grouping.count": 3})
    assert changed.describe()["rounds"]["edges"] == {
        "grouping": {"kind": "order", "count": 3},
        "rounds": 3,
        "merging": {"kind": "synchronous", "absent": "wait"},
        "server": {"kind": "fedavg"},
        "backhaul": WIRE,
    }
    assert made.replace({"rounds.edges.merging.kind": "synchronous"}) == made.replace(
        {"rounds.edges.merging": "synchronous"}
    )


def test_a_flat_scenario_says_nothing_of_edges():
    assert "edges" not in scenario(None).describe()["rounds"]
    assert simulate(scenario(None)).edge_rounds is None
    assert simulate(scenario(None)).edge_participations is None


FEDAT = {"grouping": {"kind": "latency", "count": 2}, "merging": "fedat", "backhaul": "none"}
SITE = {"grouping": "site", "backhaul": "network"}
WRONG = {
    "no backhaul": ({"grouping": ORDER}, {}, ["rounds.edges.backhaul", "is missing"]),
    "no grouping": ({"backhaul": "none"}, {}, ["rounds.edges.grouping", "is missing"]),
    "no edge rounds": ({"grouping": ORDER, "backhaul": "none", "rounds": 0}, {}, ["rounds.edges.rounds", "0"]),
    "tiers in any order": (
        {**FEDAT, "grouping": ORDER},
        {},
        ["rounds.edges.merging", "'fedat'", "rounds.edges.grouping = 'order' has none", "grouping = 'latency'"],
    ),
    "a rule over the whole crowd": (
        {"grouping": ORDER, "backhaul": "none"},
        {"rounds": {"policy": {"kind": "safa", "max_wait_s": 5.0}}, "selector": "all"},
        ["rounds.policy", "'safa'", "this policy needs all clients at one server"],
    ),
    "more edges than clients": (
        {"grouping": {"kind": "order", "count": 7}, "backhaul": "none"},
        {},
        ["rounds.edges.grouping.count", "7", "1 to crowd.clients = 6"],
    ),
    "more tiers than clients": (
        {"grouping": {"kind": "latency", "count": 8}, "backhaul": "none"},
        {},
        ["rounds.edges.grouping.count", "8", "1 to crowd.clients = 6"],
    ),
    "edges for other clients": (
        {"grouping": {"kind": "given", "edge": [0, 1]}, "backhaul": "none"},
        {},
        ["rounds.edges.grouping.edge", "[0, 1]", "one number for each of the 6 clients"],
    ),
    "edges with gaps": (
        {"grouping": {"kind": "given", "edge": [0, 0, 0, 2, 2, 2]}, "backhaul": "none"},
        {},
        ["rounds.edges.grouping.edge", "from 0 without gaps"],
    ),
    "sites without places": (
        {"grouping": "site", "backhaul": WIRE},
        {"network": LATENCY},
        ["rounds.edges.grouping", "'site'", "needs sites at which transfers end, and network = 'latency' has none"],
    ),
    "sites of a graph that ends at the cloud": (
        {"grouping": "site", "backhaul": "none"},
        {"network": GRAPH},
        [
            "rounds.edges.grouping",
            "needs sites at which transfers end, and network = 'graph' has none",
            "server = 'edge-server'",
        ],
    ),
    "blocks over a graph's edge servers": (
        {"grouping": ORDER, "backhaul": "network"},
        {"network": AT_EDGES},
        ["rounds.edges.grouping", "'order'", "end at the nearest edge server", "allowed: 'site'"],
    ),
    "clients that move": (
        SITE,
        {"network": {**AT_EDGES, "mobility": WALK}},
        ["network.mobility: 'RandomWaypoint'", "would send to other edge servers than their own"],
    ),
    "twice to the cloud": (
        {"grouping": ORDER, "backhaul": WIRE},
        {"network": GRAPH},
        ["rounds.edges.backhaul", "'link'", "models would travel there twice", "allowed: 'none'"],
    ),
    "models over the air": (
        {"grouping": ORDER, "backhaul": "network"},
        {},
        ["rounds.edges.backhaul", "needs routes between edge servers and cloud", "network = 'cell' has none", "'link'"],
    ),
    "a wire for models of unknown size": (
        {"grouping": ORDER, "backhaul": WIRE},
        {"network": LATENCY, "learning": {"kind": "none", "samples_per_client": 20}},
        ["learning.model_bits", "rounds.edges.backhaul needs the size of the model"],
    ),
    "a law over updates": (
        {"grouping": ORDER, "backhaul": "none", "merging": {"kind": "asynchronous", "staleness": "deviation"}},
        {},
        ["rounds.edges.merging.staleness", "compares stale updates with fresh ones"],
    ),
    "an unknown merging": (
        {"grouping": ORDER, "backhaul": "none", "merging": "asynchron"},
        {},
        ["rounds.edges.merging", "did you mean 'asynchronous'"],
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_makes_no_sense_is_refused_before_work_starts(what):
    edges, tables, words = WRONG[what]
    with pytest.raises(ScenarioError) as refused:
        scenario(edges, **tables)
    for word in words:
        assert word in str(refused.value)


def test_an_edge_too_small_for_the_least_number_of_updates_is_refused_when_it_is_known():
    edges = {"grouping": {"kind": "given", "edge": [0, 0, 1, 1, 1, 1]}, "backhaul": "none"}
    with pytest.raises(ScenarioError, match=r"rounds\.minimum_updates: 3 .* edge server 0 has 2 clients"):
        simulate(scenario(edges, rounds={"minimum_updates": 3}))
    assert simulate(scenario(edges, rounds={"minimum_updates": 2})).rounds.num_rows == 2


class Halves(Grouping):
    """A user's grouping that leaves out a number or a client."""

    what: str

    def edges_of(self, links, expected_s):
        return {"gap": expected_s * 0 + 1, "short": expected_s[1:], "below": expected_s * 0 - 1}[self.what].astype(int)


def test_a_grouping_of_ones_own_is_looked_at():
    for what, error, words in (
        ("gap", ScenarioError, "leaves edge server 0 without"),
        ("short", PartError, r"of shape \(5,\)\n.*whole numbers of shape \(6,\)"),
        ("below", PartError, "of at least 0"),
    ):
        with pytest.raises(error, match=words):
            simulate(scenario({"grouping": Halves(what=what), "backhaul": "none"}))


@pytest.mark.parametrize(
    ("network", "edges", "count"),
    [
        ({"kind": "5g-midband"}, {"grouping": "site", "backhaul": WIRE}, 7),
        (AT_EDGES, SITE, 2),
        (AT_EDGES, {**SITE, "backhaul": WIRE}, 2),
        (GRAPH, FEDAT, 2),
        ({**GRAPH, "mobility": WALK}, FEDAT, 2),
        ("cell", {"grouping": "site", "backhaul": "none"}, 1),
        ({"kind": "cell", "uplink": {"sharing": "equal"}}, {"grouping": "site", "backhaul": "none"}, 1),
    ],
)
def test_what_goes_together_runs(network, edges, count):
    """More clients than the smallest edge has are asked for: it sends all it has."""
    crowd = {"clients": 40, "placement": {"kind": "disc", "radius_m": 250.0}}
    history = simulate(scenario(edges, network=network, crowd=crowd, results={"audit": True}))
    assert sorted(set(history.column("edge_rounds", "edge"))) == list(range(count))
    assert history.rounds.num_rows == 2
