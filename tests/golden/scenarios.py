"""Tables of the frozen scenarios: products in which the kinds of all catalogues, with several options, meet."""

import hashlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.options import NETWORK_OPTIONS

Tables = dict[str, Any]
Rows = Iterator[tuple[str, Tables]]


def part(kind: str, **options: Any) -> Tables:
    return {"kind": kind, **options}


PARTS = tomllib.loads(Path(__file__).with_name("parts.toml").read_text())


def parts(group: str) -> dict[str, Any]:
    """Return the parts of a group by name; a table without a kind has that of its name."""
    return {name: {"kind": name, **table} if isinstance(table, dict) else table for name, table in PARTS[group].items()}


def variants(group: str) -> dict[str, list[Tables]]:
    """Return each kind of a group with each of its sets of options."""
    return {kind: [part(kind, **one) for one in options] for kind, options in PARTS[group].items()}


AVAILABILITIES, COMPUTES, DROPOUTS, ENERGIES = map(parts, ("availabilities", "computes", "dropouts", "energies"))
FADINGS, RATES, PATH_LOSSES, SHADOWINGS = map(parts, ("fadings", "rates", "path-losses", "shadowings"))
PLACEMENTS, LAWS, GROUPINGS, MERGINGS = map(parts, ("placements", "latency-laws", "groupings", "mergings"))
STALENESS, MODELS, SPLITS = map(parts, ("staleness", "models", "splits"))
FAULTS, LOCALS, MOBILITIES, PRIVACIES = (PARTS[name] for name in ("faults", "locals", "mobilities", "privacies"))
SELECTORS, TROUBLES, POLICIES, LATE = PARTS["selectors"], PARTS["troubles"], variants("policies"), variants("late")
BATTERY = ENERGIES["battery"]

TIMING = part("none", model_bits=3e5, samples_per_client=50, flops_per_sample=2e5)
DEADLINE = part("deadline", deadline_s=2.0)

OWN_LATE_RULE = ("fedasync", "fedbuff", "safa")
RULES = [
    (policy, late)
    for policy in POLICIES
    for late in (("cancel",) if policy in OWN_LATE_RULE else tuple(LATE))
    if (policy, late) != ("wait-for-all", "partial")
]
# Those that end although a client is lost.
SAFE_POLICIES = {
    policy: tables[1 if policy == "fedasync" else 0] for policy, tables in POLICIES.items() if policy != "wait-for-all"
}
SAFE = tuple(SAFE_POLICIES)
# Others would ask without end for clients with empty batteries.
SYNCHRONOUS = tuple(policy for policy in SAFE_POLICIES if policy not in OWN_LATE_RULE)

OTHER_SELECTORS: dict[str, list[Tables]] = PARTS["other-selectors"]
ALL_SELECTORS = {**OTHER_SELECTORS, **SELECTORS}
WITHOUT_COHORT = ("all", "poisson", "fedcs", "fixed-ratio")


def selector(kind: str, options: Tables) -> Tables:
    """Return the table of a selector, with a cohort of three where it has one and the options name none."""
    return part(kind, **({} if kind in WITHOUT_COHORT else {"cohort": 3}) | options)


LAW = part("log-normal", median_s=0.5, sigma=0.5)
EDGE = {"capacity_bps": 1e6, "delay_s": 0.02}
FRONT = {"capacity_bps": 1e7, "delay_s": 0.001}
TWO_TIER = part("two-tier", cells=3, site_distance_m=50.0, fronthaul=FRONT, backhaul=EDGE)
ACCESS = {"downlink_bps": 1e6, "uplink_bps": 4e5, "delay_s": 0.005}
BURSTS = part("outage-bursts", mean_good_s=5.0, mean_bad_s=1.0, bad_factor=0.1)
WALK = part("random-waypoint", radius_m=80.0, slowest_m_per_s=5.0, fastest_m_per_s=20.0)
SHARING = ("dedicated", "equal", "proportional-fair", "first-come", "minimum-makespan")
PRESETS = ("urban-macro", "indoor-office", "wifi", "nb-iot", "5g-midband")


def cell(downlink: str, uplink: str, kind: str = "cell") -> Tables:
    return part(kind, downlink={"sharing": downlink}, uplink={"sharing": uplink})


LATENCY = part("latency", downlink=LAW, uplink=LAW, spread_sigma=0.3)
GRAPH = part("graph", topology=TWO_TIER, access=ACCESS, trouble=[BURSTS])
SITES = {"inter_site_distance_m": 100.0, "load": 0.3, "rings": 1, "serving_rings": 1}
NETWORKS: dict[str, Any] = {
    "latency": LATENCY,
    "fedscale": part("fedscale", median_kbps=600.0),
    "pause-two-speed": "pause-two-speed",
    "graph": GRAPH,
    "graph-radio": {**GRAPH, "access": part("radio", spectrum="shared", delay_s=0.005)},
    "graph-moving": {
        **GRAPH,
        "mobility": WALK,
        "handover": {"reselect_after_s": 0.5, "hysteresis_db": 1.0},
        "interruption_s": 0.05,
    },
    "graph-edge-servers": {**GRAPH, "server": "edge-server"},
    **{f"cell-{rule}": cell(rule, rule) for rule in SHARING},
    "cell-multicast": cell("multicast", "equal"),
    "cell-multicast-dedicated": cell("multicast", "dedicated"),
    "cell-sites": part("cell", sites=SITES, uplink={"sharing": "equal"}),
    **{kind: cell("dedicated", "equal", kind) for kind in PRESETS},
}

SITE_GRIDS: list[Tables] = [
    {},
    {},
    {"sites": {"inter_site_distance_m": 150.0, "load": 0.4, "uplink_backoff_db": 10.0}},
    {"sites": {"inter_site_distance_m": 120.0, "rings": 0}},
    {"sites": SITES},
]

SOME_NETWORKS = ("latency", "cell-equal", "graph", "cell-multicast", "pause-two-speed", "cell-first-come", "wifi")

WIRE = part("link", rate_bps=1e6, delay_s=0.05)
AT_SERVERS = NETWORKS["graph-edge-servers"]
WAYS: dict[str, tuple[Any, Any, Any]] = {
    **{f"{name}-free": (LATENCY, grouping, "none") for name, grouping in GROUPINGS.items()},
    **{f"{name}-wire": (NETWORKS["cell-equal"], grouping, WIRE) for name, grouping in GROUPINGS.items()},
    **{f"{name}-graph": (GRAPH, grouping, "none") for name, grouping in GROUPINGS.items()},
    "site-cells": (NETWORKS["cell-sites"], "site", "none"),
    "site-cells-wire": (NETWORKS["cell-sites"], "site", WIRE),
    "site-graph": (AT_SERVERS, "site", "none"),
    "site-graph-wire": (AT_SERVERS, "site", WIRE),
    "site-graph-network": (AT_SERVERS, "site", "network"),
    "latency-default": (LATENCY, "latency", "none"),
    "one": (LATENCY, part("order", count=1), WIRE),
}


AT_EDGES = tuple(policy for policy in POLICIES if policy != "safa")


def graph_nodes(clients: int) -> tuple[list[Tables], list[Tables]]:
    """Return nodes and edges of a graph with two edge servers, and clients of its own if there are any."""
    nodes: list[Tables] = [
        {"id": "cloud", "kind": "cloud"},
        {"id": "middle", "kind": "router"},
        {"id": "edge-0", "kind": "edge-server"},
        {"id": "edge-1", "kind": "edge-server"},
        {"id": "bs-0", "kind": "base-station", "x_m": -20.0, "y_m": 0.0},
        {"id": "bs-1", "kind": "base-station", "x_m": 30.0, "y_m": 10.0, "radio_bps": 2e6},
    ]
    wires = [("cloud", "middle"), ("middle", "edge-0"), ("middle", "edge-1"), ("edge-0", "edge-1")]
    wires += [("bs-0", "edge-0"), ("bs-1", "edge-1")]
    edges = [
        {"source": one, "target": other, "capacity_bps": 1e6 + 1e5 * i, "delay_s": 0.002 * (i + 1)}
        for i, (one, other) in enumerate(wires)
    ]
    for client in range(clients):
        nodes.append({"id": f"phone-{client}", "kind": "client", "client": client})
        edge = {"capacity_bps": 3e5 + 5e4 * client, "delay_s": 0.01, "wireless": True}
        edges.append({"source": f"phone-{client}", "target": f"bs-{client % 2}", **edge})
    return nodes, edges


def given(clients: int) -> Tables:
    nodes, links = graph_nodes(clients)
    return part("given", nodes=nodes, edges=links)


LAYOUTS: dict[str, Tables] = {
    "star": part("star", backhaul=EDGE),
    "star-radio": part("star", backhaul=EDGE, radio_bps=8e5),
    "two-tier": TWO_TIER,
    "two-tier-radio": {**TWO_TIER, "cells": 5, "radio_bps": 1e6},
    "given": given(0),
    "json": part("file", path="topology.json"),
    "graphml": part("file", path="topology.graphml"),
}
CLIENT_LAYOUTS: dict[str, Tables] = {
    "mesh": part("mesh", range_m=90.0, hop={"capacity_bps": 5e5, "delay_s": 0.01}, backhaul=EDGE),
    "mesh-radio": part("mesh", range_m=60.0, hop={"capacity_bps": 9e5, "delay_s": 0.01}, backhaul=EDGE, radio_bps=7e5),
    "given-clients": given(8),
}
ACCESSES: list[Tables] = [
    ACCESS,
    part("constant", **ACCESS, exponent=3.0, reach_m=200.0),
    part("radio", delay_s=0.005),
    part("radio", delay_s=0.005, spectrum="shared", step_m=10.0, least_snr_db=-3.0),
    *(part("radio", delay_s=0.005, cell=kind, spectrum="shared") for kind in PRESETS),
    part("radio", delay_s=0.01, cell=part("cell", path_loss=PATH_LOSSES["umi"])),
    part(
        "radio",
        delay_s=0.01,
        cell=part("cell", shadowing=SHADOWINGS["correlated"], sites={"inter_site_distance_m": 150.0}),
    ),
]
HANDOVERS: list[Tables] = [
    {},
    {"handover": {"reselect_after_s": 0.5, "hysteresis_db": 1.0}, "interruption_s": 0.05},
    {"handover": {"time_to_trigger_s": 0.0, "measured_every_s": 0.1, "hysteresis_db": 0.0}, "interruption_s": 0.2},
]

PISCES = part("pisces", concurrency=3, give_up_s=5.0)
SERVER = {"ingress_bps": 9e5, "background": {"least": 0.1, "most": 0.4, "interval_s": 0.3}}
MEAN = {"fading_in_shares": "mean"}
OTHER_NETWORKS: dict[str, Tables] = {
    kind: part(kind, **NETWORK_OPTIONS.get(kind, {}))
    for kind in ("lora", "rate-traces", "satellite", "wifi-dcf", "latency", "fedscale")
} | {
    "rate-traces-shared": part("rate-traces", **NETWORK_OPTIONS["rate-traces"], sharing="equal"),
    "graph-losses": {
        **NETWORKS["graph-moving"],
        "trouble": [BURSTS, part("loss", node="bs-1", from_s=0.5, duration_s=1.0)],
    },
    "cell-server": {**cell("dedicated", "dedicated"), "transport": part("tcp", rtt_s=0.03, server=SERVER)},
    "cell-loss": {**cell("multicast", "equal"), "transport": part("tcp", rtt_s=0.03, loss=0.01)},
    "cell-rateless": cell("multicast-rateless", "first-come"),
    "cell-access": {**cell("multicast", "equal"), "access": part("grant", inactivity_s=0.2)},
    **{f"cell-{rule}": cell(rule, rule) for rule in ("max-relative-snr", "rate-fair", "dcf")},
    **{
        f"cell-{rule}-mean": part("cell", downlink={"sharing": rule, **MEAN}, uplink={"sharing": rule, **MEAN})
        for rule in ("equal", "proportional-fair", "max-relative-snr")
    },
}
OTHER_RULES: dict[str, Tables] = {
    "deadline": {"rounds": {"policy": DEADLINE, "late": "stale"}},
    "pisces": {"rounds": {"policy": PISCES, "count": 8}},
    "pisces-bound": {"rounds": {"policy": {**PISCES, "bound": 1, "max_staleness": 2}, "count": 8}},
    "secure": {"rounds": {"secure_aggregation": part("bonawitz", mask_s=0.05, server_mask_s=0.02)}},
    "secure-late": {
        "rounds": {"secure_aggregation": part("bonawitz", threshold=0.5, wait_s=0.3), "count": 4},
        "devices": {"dropout": DROPOUTS["hazard"]},
    },
    "battery": {
        "devices": {
            "energy": {**BATTERY, "receive_w": 0.05, "transmit_j_per_bit": 1e-7, "capacity_j": 0.3},
            "dropout": DROPOUTS["phase-hazard"],
        },
        "rounds": {"late": "drop"},
    },
    "faults": {"rounds": {"faults": FAULTS["everything"], "late": "drop"}},
}
OTHER_PRIVACIES: dict[str, Tables] = {
    f"{kind}-{composition}": {
        "budget": part(kind, epsilon=40.0),
        "mechanism": part("gaussian", clip=1.0),
        "composition": part(composition, delta=1e-4, most_epsilon=60.0),
    }
    for kind in ("geometric", "zeta")
    for composition in ("rdp", "pld")
} | {
    "numbers": {**PRIVACIES["coordinate"], "side_information": part("laplace", share=0.3)},
    "labels": {**PRIVACIES["coordinate"], "label_histograms": part("laplace", epsilon=1.0)},
    "counts": {**PRIVACIES["coordinate"], "label_histograms": part("laplace-counts", epsilon=1.0)},
}


# Learning


def pick(scenario: str, what: str, options: Sequence[Any]) -> Any:
    """Return one of several options; which one follows from the scenario's id and the name of the choice alone."""
    number = int.from_bytes(hashlib.sha256(f"{scenario} {what}".encode()).digest()[:8], "big")
    return options[number % len(options)]


def together(first: Tables, second: Mapping[str, Any]) -> Tables:
    """Return tables of which the second change or add values to the first; parts and local training are replaced."""
    merged = dict(first)
    for name, value in second.items():
        old = merged.get(name)
        joins = isinstance(value, Mapping) and isinstance(old, Mapping) and "kind" not in value and name != "local"
        merged[name] = together(dict(old), value) if joins and isinstance(old, Mapping) else value
    return merged


def described(scenario: str, *changes: Mapping[str, Any], **own: Any) -> tuple[str, Tables]:
    """Return the id and tables of a scenario: small, about timing only, unless the changes say otherwise."""
    tables: Tables = {
        "name": "frozen",
        "seed": pick(scenario, "seed", range(1000)),
        "crowd": {"clients": pick(scenario, "clients", (5, 6, 7, 8, 9)), "placement": part("disc", radius_m=60.0)},
        "learning": TIMING,
        "network": "pause-two-speed",
        "rounds": {"count": pick(scenario, "rounds", (2, 3, 4)), "policy": DEADLINE},
        "selector": part("uniform", cohort=3),
        "results": {"audit": True},
    }
    for change in (*changes, own):
        tables = together(tables, change)
    return scenario, tables


def rules(scenario: str, policy: str, late: str) -> Tables:
    allowed = POLICIES[policy]
    if (policy, late) == ("k-fastest", "partial"):
        allowed = [table for table in allowed if "max_wait_s" in table]
    chosen: Tables = {"policy": pick(scenario, "policy", allowed)}
    if policy not in OWN_LATE_RULE:
        chosen["late"] = pick(scenario, "late", LATE[late])
    return chosen


def lates(policy: str) -> Sequence[str]:
    return ("cancel",) if policy in OWN_LATE_RULE else ("cancel", "drop", "stale")


def some_rules(scenario: str, policies: Sequence[str] = SAFE) -> Tables:
    policy = pick(scenario, "policy", policies)
    return {"policy": SAFE_POLICIES[policy], "late": pick(scenario, "late", lates(policy))}


def some_network(scenario: str) -> Any:
    return NETWORKS[pick(scenario, "network", SOME_NETWORKS)]


# Scenarios


def cross() -> Rows:
    """Yield all pairs of policy with late rule, network and selector: each pair of the three values occurs."""
    networks = tuple(NETWORKS)
    for (i, (policy, late)), (j, kind) in itertools.product(enumerate(RULES), enumerate(SELECTORS)):
        network = networks[(i + j) % len(networks)]
        scenario = f"{policy}/{late}/{network}/{kind}"
        yield described(
            scenario,
            rounds=rules(scenario, policy, late),
            network=NETWORKS[network],
            selector=selector(kind, pick(scenario, "selector", SELECTORS[kind])),
            learning={"model_bits": pick(scenario, "bits", (1e5, 3e5))},
        )


def of_selector(block: str, kind: str, options: Sequence[Tables], networks: Sequence[str]) -> Rows:
    for (number, one), network in itertools.product(enumerate(options), networks):
        scenario = f"{block}/{kind}-{number}/{network}"
        rounds = {"count": 5, **some_rules(scenario)}
        chosen = {"network": NETWORKS[network], "selector": selector(kind, one), "rounds": rounds}
        yield described(scenario, chosen, crowd={"clients": 12})


def selectors() -> Rows:
    """Yield every set of options of every selector, with comings and goings and a privacy budget."""
    for kind, options in SELECTORS.items():
        private = {"privacy": PRIVACIES["coordinate"]} if kind.startswith(("pause", "sa-", "uniform", "bsfl")) else {}
        for scenario, tables in of_selector("selector", kind, options, ("pause-two-speed", "cell-equal")):
            presence = AVAILABILITIES[pick(scenario, "presence", ("always", "markov"))]
            yield scenario, tables | {"devices": {"availability": presence}} | private
    for kind, option in (("cs-ucb-q", "rates"), ("pause-genie", "expected_reward")):
        chosen = {"kind": kind, "cohort": 3, option: [0.1 * i for i in range(1, 9)]}
        yield described(f"selector/{kind}-{option}", crowd={"clients": 8}, selector=chosen)


def policies() -> Rows:
    """Yield every set of options of every policy and late rule."""
    for policy, late in RULES:
        for (i, table), (j, rule) in itertools.product(enumerate(POLICIES[policy]), enumerate(LATE[late])):
            for network in ("latency", "cell-proportional-fair"):
                scenario = f"rules/{policy}-{i}/{late}-{j}/{network}"
                changes = {"policy": table, "minimum_updates": pick(scenario, "minimum", (1, 1, 2))}
                if policy not in OWN_LATE_RULE:
                    changes["late"] = rule
                if policy == "fedasync":
                    changes["minimum_updates"] = 1
                yield described(scenario, network=NETWORKS[network], rounds={"count": 4, **changes})


def ends() -> Rows:
    """Yield rounds with too few updates, runs that end early, and runs with and without the audit."""
    for least, policy in itertools.product((1, 2, 3), SAFE_POLICIES):
        scenario = f"minimum-updates/{least}/{policy}"
        at_most = {"fedasync": 1, "fedbuff": 2}.get(policy, least)
        chosen = {"policy": SAFE_POLICIES[policy], "minimum_updates": min(least, at_most)}
        yield described(scenario, network=some_network(scenario), rounds={"count": 4, **chosen})
    for until_s, policy in itertools.product((1.0, 4.0), SAFE_POLICIES):
        scenario = f"until/{until_s:g}/{policy}"
        chosen = {"policy": SAFE_POLICIES[policy], "until_s": until_s}
        yield described(scenario, network=some_network(scenario), rounds={"count": 5, **chosen})
    for seed, audit in itertools.product((0, 1), (False, True)):
        yield described(f"audit/{audit}/{seed}", seed=seed, network=LATENCY, results={"audit": audit})


def at_edges(way: str, merging: str, **rounds: Any) -> Tables:
    network, grouping, backhaul = WAYS[way]
    edges = {"grouping": grouping, "merging": MERGINGS[merging], "backhaul": backhaul, **rounds}
    return {"crowd": {"clients": 10}, "network": network, "rounds": {"edges": edges}}


def edges() -> Rows:
    """Yield every grouping, backhaul and cloud rule with all policies in turn."""
    presences = ("always", "always", "markov", "bernoulli")
    for (i, way), (j, merging) in itertools.product(enumerate(WAYS), enumerate(MERGINGS)):
        if merging == "fedat" and not way.startswith("latency"):
            continue
        for k in range(4):
            policy = AT_EDGES[(i + j + 2 * k) % len(AT_EDGES)]
            scenario = f"edges/{way}/{merging}/{policy}"
            presence = "always" if policy == "wait-for-all" else pick(scenario, "presence", presences)
            kind = pick(scenario, "selector", ("uniform", "pause", "oort", "tifl", "pow-d", "all", "fastest"))
            yield described(
                scenario,
                at_edges(way, merging, rounds=pick(scenario, "rounds", (1, 2, 3))),
                devices={"availability": AVAILABILITIES[presence]},
                rounds={
                    "count": pick(scenario, "count", (2, 3)),
                    "policy": SAFE_POLICIES.get(policy, "wait-for-all"),
                    "late": pick(scenario, "late", lates(policy)),
                },
                selector=selector(kind, {} if kind == "all" else {"cohort": 2}),
            )


def edges_in_trouble() -> Rows:
    """Yield edge servers with faults, batteries, budgets, too few updates and every selector."""
    ways = ("order-wire", "latency-free", "site-graph-network", "site-cells-wire", "given-graph")

    def changed(scenario: str, way: str, rounds: Tables, **changes: Any) -> tuple[str, Tables]:
        chosen = at_edges(way, pick(scenario, "merging", ("synchronous", "skip", "asynchronous")))
        return described(scenario, chosen, {"rounds": rounds, "selector": part("uniform", cohort=2)} | changes)

    for way, fault in itertools.product(ways, FAULTS):
        yield changed(f"edges/{way}/fault-{fault}", way, {"faults": FAULTS[fault]})
    for way, energy in itertools.product(ways, ("battery", "by-operations", "without-charger")):
        yield changed(f"edges/{way}/energy-{energy}", way, {}, devices={"energy": ENERGIES[energy]})
    for way, dropout in itertools.product(ways, ("hazard", "phase-hazard")):
        yield changed(f"edges/{way}/{dropout}", way, {}, devices={"dropout": DROPOUTS[dropout]})
    for way in ways:
        pause = part("pause", cohort=2)
        yield changed(f"edges/{way}/budget", way, {}, selector=pause, privacy=PRIVACIES["coordinate"])
        yield changed(f"edges/{way}/until", way, {"until_s": 3.0, "count": 5})
    for way in ("order-wire", "latency-free"):
        yield changed(f"edges/{way}/minimum-updates", way, {"minimum_updates": 2, "count": 4})
    for kind, options in SELECTORS.items():
        chosen = selector(kind, {**options[0], **({} if kind in WITHOUT_COHORT else {"cohort": 2})})
        yield changed(f"edges/order-free/selector-{kind}", "order-free", {"count": 3}, selector=chosen)


def faults() -> Rows:
    """Yield every kind of fault with every policy that ends although clients are lost."""
    for fault, policy in itertools.product(FAULTS, SAFE_POLICIES):
        for late in lates(policy):
            scenario = f"fault/{fault}/{policy}/{late}"
            rounds = {"policy": SAFE_POLICIES[policy], "late": late, "faults": FAULTS[fault]}
            kind = pick(scenario, "selector", ("uniform", "pow-d", "tifl", "pause", "round-robin"))
            yield described(scenario, network=some_network(scenario), rounds=rounds, selector=selector(kind, {}))
    for fault in ("restart-at", "restart-mean"):
        for network in ("latency", "cell-equal", "cell-multicast", "graph"):
            rounds = {"policy": "wait-for-all", "faults": FAULTS[fault]}
            yield described(f"fault/{fault}/wait-for-all/{network}", network=NETWORKS[network], rounds=rounds)
    for rule in ("equal", "proportional-fair", "first-come", "minimum-makespan"):
        rounds = {"faults": FAULTS["everything"], "late": "drop", "count": 4}
        yield described(f"fault/everything/cell-{rule}", network=NETWORKS[f"cell-{rule}"], rounds=rounds)


def presence() -> Rows:
    """Yield every availability law with every battery and dropout law."""
    for law, energy, dropout in itertools.product(AVAILABILITIES, ENERGIES, DROPOUTS):
        scenario = f"presence/{law}/{energy}/{dropout}"
        kind = pick(scenario, "selector", ("uniform", "refl", "refl-oracle", "soonest", "oort", "cpow-d"))
        devices = {"availability": AVAILABILITIES[law], "energy": ENERGIES[energy], "dropout": DROPOUTS[dropout]}
        yield described(
            scenario,
            crowd={"clients": pick(scenario, "clients", (8, 10, 12))},
            network=some_network(scenario),
            devices=devices,
            rounds=some_rules(scenario, SAFE if energy == "none" else SYNCHRONOUS),
            selector=selector(kind, SELECTORS[kind][0]),
        )
    for down, up in itertools.product((*SHARING, "multicast"), SHARING):
        yield described(f"energy/{down}/{up}", network=cell(down, up), devices={"energy": BATTERY}, rounds={"count": 5})


def computing() -> Rows:
    """Yield every law of computing times and every latency law."""
    for law, policy in itertools.product(COMPUTES, ("deadline", "wait-for-all", "fedbuff")):
        scenario = f"compute/{law}/{policy}"
        chosen = {"policy": POLICIES[policy][-1]}
        network = NETWORKS[pick(scenario, "network", ("latency", "cell-equal", "fedscale"))]
        yield described(scenario, network=network, devices={"compute": COMPUTES[law]}, rounds=chosen)
    for down, up in itertools.product(LAWS, LAWS):
        scenario = f"latency/{down}/{up}"
        spread = pick(scenario, "spread", (0.0, 0.4))
        network = part("latency", downlink=LAWS[down], uplink=LAWS[up], spread_sigma=spread)
        yield described(scenario, network=network)
    for name, options in {
        "two-speed": part("pause-two-speed", fast_to_s=0.1, slow_from_s=1.5, slow_to_s=2.0, std_s=0.3),
        "fedscale-narrow": part("fedscale", sigma=0.2, median_kbps=300.0, lowest_kbps=250.0),
        "fedscale-capped": part("fedscale", median_kbps=900.0, highest_kbps=1000.0),
        "fedscale-csv": part("fedscale", path="capacities.csv"),
        "fedscale-npz": part("fedscale", path="capacities.npz", mapping="sequential"),
    }.items():
        yield described(f"network/{name}", network=options)
        yield described(f"network/{name}/everybody", network=options, selector="all")
    yield described(
        "network/fedscale-csv/fedscale-csv",
        network=part("fedscale", path="capacities.csv"),
        devices={"compute": COMPUTES["fedscale-csv"]},
    )


def radio() -> Rows:
    """Yield every path loss with every fading; rates, shadowing, sites, placements and sharing rules follow."""
    for loss, fading, number in itertools.product(PATH_LOSSES, FADINGS, range(2)):
        scenario = f"radio/{loss}/{fading}/{number}"
        network = part(
            "cell",
            path_loss=PATH_LOSSES[loss],
            fading=FADINGS[fading],
            rate=RATES[pick(scenario, "rate", tuple(RATES))],
            shadowing=SHADOWINGS[pick(scenario, "shadowing", tuple(SHADOWINGS))],
            downlink={"sharing": pick(scenario, "downlink", (*SHARING, "multicast"))},
            uplink={"sharing": pick(scenario, "uplink", SHARING), "bandwidth_hz": 3e5},
            **pick(scenario, "sites", SITE_GRIDS),
        )
        place = pick(scenario, "place", tuple(PLACEMENTS))
        if pick(scenario, "sigma", (True, False, False)):
            network["shadowing_sigma_db"] = 4.0
        yield described(scenario, crowd={"clients": 9, "placement": PLACEMENTS[place]}, network=network)
    for down, up, late in itertools.product((*SHARING, "multicast"), SHARING, ("drop", "stale")):
        yield described(f"sharing/{down}/{up}/{late}", network=cell(down, up), selector="all", rounds={"late": late})
    for kind, (down, up) in itertools.product(
        PRESETS, (("dedicated", "dedicated"), ("equal", "first-come"), ("multicast", "proportional-fair"))
    ):
        placement = PLACEMENTS["hexagons"] if kind in ("urban-macro", "5g-midband") else PLACEMENTS["disc"]
        changes = {"crowd": {"placement": placement}, "network": cell(down, up, kind)}
        yield described(f"preset/{kind}/{down}/{up}", changes, rounds={"policy": {"deadline_s": 4.0}})
    changed = part("urban-macro", path_loss={"carrier_hz": 0.8e9}, fading=part("rician", k_db=9.0))
    yield described("preset/urban-macro/changed", network=changed)


def graphs() -> Rows:
    """Yield every layout with every mobility and trouble; access, handovers and servers follow."""
    for layout, mobility, trouble in itertools.product(LAYOUTS, MOBILITIES, TROUBLES):
        scenario = f"graph/{layout}/{mobility}/{trouble}"
        network = part(
            "graph",
            topology=LAYOUTS[layout],
            access=pick(scenario, "access", ACCESSES),
            trouble=TROUBLES[trouble],
            server="cloud" if "star" in layout else pick(scenario, "server", ("cloud", "edge-server")),
            **pick(scenario, "handover", HANDOVERS),
        )
        network |= MOBILITIES[mobility]
        kind = pick(scenario, "selector", ("uniform", "fedcs", "pow-d", "fastest"))
        policy = pick(scenario, "policy", ("deadline", "adaptive-deadline", "quorum", "k-fastest"))
        yield described(
            scenario,
            network=network,
            rounds={"policy": SAFE_POLICIES[policy]},
            selector=selector(kind, SELECTORS[kind][0]),
        )
    for policy, trouble, mobility in itertools.product(("fedbuff", "fedasync", "safa"), TROUBLES, ("none", "walk")):
        network = {**GRAPH, "trouble": TROUBLES[trouble], **HANDOVERS[1]}
        network |= MOBILITIES[mobility]
        yield described(
            f"graph/{policy}/{mobility}/{trouble}", network=network, rounds={"policy": SAFE_POLICIES[policy]}
        )
    for layout, trouble, late in itertools.product(CLIENT_LAYOUTS, TROUBLES, ("cancel", "stale")):
        network = part("graph", topology=CLIENT_LAYOUTS[layout], trouble=TROUBLES[trouble])
        yield described(
            f"graph/{layout}/{trouble}/{late}", crowd={"clients": 8}, network=network, rounds={"late": late, "count": 4}
        )
    for name, trouble in {
        "lost-wire": part("loss", edge=["bs-0", "edge-0"], from_s=0.5, duration_s=2.0),
        "bursts-of-wires": {**BURSTS, "edges": [["bs-0", "edge-0"], ["edge-1", "cloud"]]},
        "lost-server": part("loss", node="edge-1", from_s=0.2, duration_s=5.0),
    }.items():
        for server, late in itertools.product(("cloud", "edge-server"), ("cancel", "drop")):
            network = {**GRAPH, "server": server, "trouble": [trouble]}
            yield described(f"graph/two-tier/{name}/{server}/{late}", network=network, rounds={"late": late})


def privacy() -> Rows:
    """Yield every mechanism and budget in runs about timing, with those selectors that look at what has leaked."""
    kinds = ("bsfl", "pause", "pause-enumeration", "pause-genie", "pause-vanilla-sa", "sa-pause", "uniform")
    for name, kind in itertools.product(PRIVACIES, kinds):
        scenario = f"privacy/{name}/{kind}"
        yield described(
            scenario,
            network=some_network(scenario),
            privacy=PRIVACIES[name],
            rounds={"count": 5, **some_rules(scenario)},
            selector=selector(kind, SELECTORS[kind][0]),
        )


def remaining() -> Rows:
    """Yield options that no other scenario sets."""
    for loss in (
        part("log-distance", reference_distance_m=10.0, reference_loss_db=60.0),
        part("inf", base_height_m=6.0, clutter_size_m=3.0, clutter_height_m=4.0),
        *(
            part(kind, base_height_m=high_m)
            for kind, high_m in {"inh": 4.0, "rma": 20.0, "uma": 40.0, "umi": 7.0}.items()
        ),
    ):
        yield described(f"remaining/{loss['kind']}", network=part("cell", path_loss=loss))
    for kind in ("oort", "oort-fedscale"):
        chosen = selector(kind, {"exploration_decay": 0.5, "exploration_least": 0.1})
        yield described(f"remaining/{kind}", selector=chosen, rounds={"count": 6})
    yield described("remaining/two-speed", network=part("pause-two-speed", fast_from_s=0.15))
    nodes, links = graph_nodes(0)
    back = [{**link, "source": link["target"], "target": link["source"], "capacity_bps": 5e5} for link in links]
    layout = part("given", directed=True, nodes=nodes, edges=links + back)
    yield described("remaining/directed", network=part("graph", topology=layout, access=ACCESS))


def other_kinds() -> Rows:
    """Yield kinds that no other block has: selectors, networks, sharing rules, policies, secure sums, compositions."""
    for kind in sorted(OTHER_SELECTORS):
        yield from of_selector("other", kind, OTHER_SELECTORS[kind], ("latency", "cell-equal"))
    for (name, network), (rule, changes) in itertools.product(OTHER_NETWORKS.items(), OTHER_RULES.items()):
        yield described(f"other/{name}/{rule}", {"network": network}, changes)
    sender = {**BATTERY, "receive_w": 0.05, "transmit_power_dbm": 23.0, "circuit_w": 0.1, "capacity_j": 0.3}
    for name in ("cell-dedicated", "cell-access"):
        network = {**cell("dedicated", "dedicated"), **({"access": part("grant")} if name == "cell-access" else {})}
        yield described(f"other/{name}/sender", network=network, devices={"energy": sender})
    for name, private in OTHER_PRIVACIES.items():
        for kind in ("uniform", "oort", "haccs", "pause"):
            scenario = f"other/privacy-{name}/{kind}"
            yield described(scenario, privacy=private, selector=selector(kind, {}), rounds={"count": 6})


def learned(scenario: str, *changes: Mapping[str, Any], **own: Any) -> tuple[str, Tables]:
    learning = {
        "data": part("digits", train_limit=pick(scenario, "samples", (200, 300))),
        "split": SPLITS[pick(scenario, "split", tuple(SPLITS))],
        "model": MODELS[pick(scenario, "model", tuple(MODELS))],
        "local": LOCALS[pick(scenario, "local", tuple(LOCALS))],
    }
    base = {"learning": part("supervised", **learning), "rounds": {"count": 3}}
    return described(scenario, base, *changes, **own)


def learning_cross() -> Rows:
    """Yield learning with every selector and every policy with its late rules."""
    for (i, (policy, late)), (j, kind) in itertools.product(enumerate(RULES), enumerate(SELECTORS)):
        if (i + j) % 4:
            continue
        scenario = f"learn/{policy}/{late}/{kind}"
        yield learned(
            scenario,
            network=NETWORKS[pick(scenario, "network", ("latency", "pause-two-speed", "cell-equal", "graph"))],
            rounds=rules(scenario, policy, late),
            selector=selector(kind, pick(scenario, "selector", SELECTORS[kind])),
        )


def learning_parts() -> Rows:
    """Yield splits, optimisers, models and mechanisms with learning."""
    for split, local in itertools.product(SPLITS, LOCALS):
        yield learned(
            f"learn/split-{split}/{local}", learning={"split": SPLITS[split], "local": LOCALS[local]}, network=LATENCY
        )
    for model, name in itertools.product(MODELS, PRIVACIES):
        for kind in ("pause", "divfl", "importance"):
            yield learned(
                f"learn/privacy-{name}/{model}/{kind}",
                privacy=PRIVACIES[name],
                selector=selector(kind, {}),
                learning={"model": MODELS[model]},
            )


def staleness() -> Rows:
    """Yield every law of staleness with every rule that weighs by it, with and without learning."""
    for name, law in STALENESS.items():
        for rule, changes in {
            "stale": {"policy": part("deadline", deadline_s=1.2), "late": part("stale", weight=law)},
            "fedbuff": {"policy": part("fedbuff", concurrency=4, buffer=2, staleness=law)},
            "fedasync": {"policy": part("fedasync", concurrency=4, staleness=law)},
        }.items():
            tables = {"network": LATENCY, "rounds": {"count": 5, **changes}}
            yield described(f"staleness/{name}/{rule}", tables)
            yield learned(f"learn/staleness-{name}/{rule}", tables)


def learning_places() -> Rows:
    """Yield edge servers, faults and devices with learning."""
    for way, merging in itertools.product(("order-free", "latency-free", "site-graph-network"), MERGINGS):
        if merging == "fedat" and way != "latency-free":
            continue
        for kind in ("all", "divfl", "oort"):
            changes = at_edges(way, merging, rounds=2)
            yield learned(f"learn/edges-{way}/{merging}/{kind}", changes, selector=selector(kind, {}))
    for fault, policy in itertools.product(FAULTS, ("deadline", "fedbuff")):
        rounds = {"faults": FAULTS[fault], "policy": SAFE_POLICIES[policy]}
        yield learned(f"learn/fault-{fault}/{policy}", network=LATENCY, rounds=rounds)
    for law in ("flops", "fedscale", "zero"):
        devices = {"compute": COMPUTES[law], "energy": ENERGIES["by-operations"]}
        yield learned(f"learn/compute-{law}", devices=devices)


def learning_ends() -> Rows:
    """Yield ends of runs, sizes set by hand, and data sets of larger images."""
    adam = {"learning": {"local": LOCALS["adam-kept"]}, "network": LATENCY}
    for target in (0.2, 0.5):
        yield learned(f"learn/target-{target:g}", adam, rounds={"count": 5, "target_accuracy": target})
    for every in (2, 3):
        yield learned(f"learn/evaluate-every-{every}", adam, rounds={"count": 5}, results={"evaluate_every": every})
    sizes = {"model_bits": 1e6, "flops_per_sample": 1e5}
    yield learned("learn/sizes", learning=sizes, network="wifi", devices={"compute": COMPUTES["flops"]})
    sets = (("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST"))
    for (data, folder), model, kind in itertools.product(sets, ("mlp", "cnn3"), ("uniform", "fedsuv")):
        learning = {
            "data": part("idx-files", name=folder, train_limit=60),
            "model": part(model),
            "split": SPLITS["equal"],
            "local": LOCALS["sgd"],
        }
        changes = {"crowd": {"clients": 5}, "learning": learning, "rounds": {"count": 2}}
        yield learned(f"learn/{data}/{model}/{kind}", changes, selector=selector(kind, {}))
    for name in ("coordinate", "coordinate-all", "clipped-exempt"):
        learning = {"data": part("idx-files", name="MNIST", train_limit=60), "model": "cnn3", "split": "equal"}
        changes = {"crowd": {"clients": 5}, "learning": {**learning, "local": LOCALS["adam"]}, "rounds": {"count": 2}}
        yield learned(f"learn/cnn3/privacy-{name}", changes, privacy=PRIVACIES[name])


def scenarios() -> dict[str, Tables]:
    found: dict[str, Tables] = {}
    timing = (cross(), selectors(), policies(), ends(), edges(), edges_in_trouble(), faults(), presence(), computing())
    more = (radio(), graphs(), privacy(), remaining(), other_kinds(), staleness())
    learning = (learning_cross(), learning_parts(), learning_places(), learning_ends())
    for scenario, tables in itertools.chain(*timing, *more, *learning):
        if scenario in found:
            raise ValueError(f"{scenario} is there twice")
        found[scenario] = tables
    return dict(sorted(found.items()))
