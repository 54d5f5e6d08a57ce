"""Tables of the frozen scenarios: products in which the kinds of all catalogues, with several options, meet."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.support.options import NETWORK_OPTIONS, SELECTOR_OPTIONS

Tables = dict[str, Any]
Rows = Iterator[tuple[str, Tables]]


def part(kind: str, **options: Any) -> Tables:
    return {"kind": kind, **options}


def variants(kind: str, *options: Tables) -> list[Tables]:
    """Return the tables of one kind with each of several sets of options."""
    return [part(kind, **one) for one in options or ({},)]


TIMING = part("none", model_bits=3e5, samples_per_client=50, flops_per_sample=2e5)
DEADLINE = part("deadline", deadline_s=2.0)


# Parts: every kind with several sets of options

STALENESS = {
    "constant": part("constant"),
    "polynomial": part("polynomial", a=0.8),
    "hinge": part("hinge", a=0.5, b=1.0),
    "exponential": part("exponential", a=0.6),
    "deviation": part("deviation", beta=0.5, scale=0.7),
}
POLICIES = {
    "adaptive-deadline": variants(
        "adaptive-deadline",
        {"initial_s": 1.5, "shortest_s": 0.5},
        {"initial_s": 3.0, "quantile": 0.5, "margin": 1.2, "window": 2, "growth": 2.0, "longest_s": 4.0},
    ),
    "deadline": variants("deadline", {"deadline_s": 2.0}, {"deadline_s": 1.1}, {"deadline_s": 5.0}),
    "fedasync": variants(
        "fedasync",
        {"concurrency": 3},
        {"concurrency": 2, "mixing": 0.9, "staleness": STALENESS["hinge"], "max_staleness": 1, "give_up_s": 4.0},
    ),
    "fedbuff": variants(
        "fedbuff",
        {"concurrency": 3, "buffer": 2, "max_staleness": 1, "give_up_s": 5.0},
        {"concurrency": 4, "buffer": 3, "server_rate": 0.7, "staleness": STALENESS["exponential"]},
    ),
    "k-fastest": variants(
        "k-fastest", {"k": 2, "max_wait_s": 20.0}, {"k": 1, "over_selection": 3.0}, {"k": 3, "max_wait_s": 1.5}
    ),
    "moving-average": variants(
        "moving-average", {"initial_s": 2.0, "target_share": 0.7, "growth": 1.5}, {"initial_s": 5.0, "alpha": 0.6}
    ),
    "quorum": variants(
        "quorum", {"share": 0.5, "min_wait_s": 0.5, "max_wait_s": 3.0}, {"share": 1.0, "max_wait_s": 2.5}
    ),
    "safa": variants("safa", {"share": 0.4, "max_wait_s": 3.0, "lag": 1}, {"share": 0.7, "max_wait_s": 2.0, "lag": 0}),
    "wait-for-all": variants("wait-for-all"),
}
OWN_LATE_RULE = ("fedasync", "fedbuff", "safa")
LATE = {
    "cancel": variants("cancel"),
    "drop": variants("drop"),
    "partial": variants("partial", {}, {"least_work": 0.4}),
    "stale": variants("stale", {}, {"weight": STALENESS["deviation"], "max_staleness": 2}, {"max_staleness": 0}),
}
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

SELECTORS = {
    "all": [{}],
    "bsfl": [{}, {"confidence": "crowd", "alpha": 3.0}, {"time_index": "reference-code", "tau_min_s": 0.3}],
    "clustered-similarity": [
        {},
        {"similarity": "manhattan", "matrix": "reference-code"},
        {"similarity": "squared-euclidean"},
        {"similarity": "euclidean"},
    ],
    "clustered-size": [{}],
    "cpow-d": [{"samples": 10}, {"samples": 5, "candidates": 4, "weights": "samples", "up_bits": 64.0, "wait_s": 0.4}],
    "cs-ucb": [{}, {"tau_max_s": 2.0}],
    "cs-ucb-q": [{}, {"weight": 1.0, "promise": 1.0, "tau_max_s": 3.0}],
    "divfl": [{}, {"start": "in-turn", "weights": "represented"}, {"start": "zero", "subset": 4, "refresh_every": 2}],
    "fastest": [{}],
    "fedcs": [
        {"deadline_s": 3.0, "share": 0.5},
        {"deadline_s": 2.0, "share": 0.8, "uploads": "parallel", "overhead_s": 0.1},
        {"deadline_s": 0.01, "wait_s": 0.5, "down_bits": 1e3, "up_bits": 2e3},
    ],
    "fedsuv": [
        {},
        {"utility_scale": 1.0, "scaling": "none", "elimination": "cap", "negative_gain": "keep", "keep": 4},
        {"basis": 3, "kernel": "matern52", "fill": "none", "when_disjoint": "collapse", "rho": 0.9},
        {"scaling": "range", "length_scale": 0.5, "noise": 0.3, "ridge": 2.0, "delta": 0.3, "samples_per_round": 10},
    ],
    "importance": [{}, {"draw": "systematic", "weights": "samples", "floor": 0.0}],
    "loss-proportional": [{}, {"data_exponent": 0.5}],
    "md": [{}],
    "oort": [
        {},
        {"window": 2, "pacer_step_s": 0.2, "blacklist_after": 2, "silent": "mean"},
        {"by_speed": False, "pacer_asked": "window", "exploration": 0.5, "exploration_least": 0.1, "clip": 0.8},
        {"alpha": 1.0, "cut_off": 0.7, "blacklist_after": 1, "blacklist_share": 0.5, "samples_per_round": 10},
    ],
    "oort-fedscale": [
        {},
        {"pacer_step": 2, "blacklist_after": 1, "silent": "zero", "threshold": 60.0},
        {"exploration": 0.5, "pacer_delta": 2.0, "pacer_step": 1, "clip": 0.7, "cut_off": 0.2, "sample_window": 2.0},
    ],
    "pause": [{}, {"time_index": "reference-code", "beta": 1.0, "zeta": 3.0}, {"alpha": 5.0, "tau_min_s": 0.2}],
    "pause-enumeration": [{"cohort": 2}, {"gamma": 1.0, "time_index": "reference-code"}],
    "pause-genie": [{}, {"alpha": 2.0, "gamma": 1.0, "time_index": "reference-code"}],
    "pause-vanilla-sa": [{"iterations": 30}, {"iterations": 20, "start": "last", "kappa": 1.0}],
    "pow-d": [{}, {"candidates": 4, "weights": "samples"}, {"candidates": 5, "up_bits": 1e3, "wait_s": 0.6}],
    "refl": [
        {},
        {"hold_off": 1, "adaptive_target": True, "slot_s": 1.0, "initial_s": 3.0},
        {"least_share": 0.5, "slot_s": 0.5, "periods_s": [2.0, 7.0], "harmonics": 2, "ridge": 0.3, "alpha": 0.5},
    ],
    "refl-oracle": [
        {},
        {"rule": "reference-code", "adaptive_target": True, "initial_s": 2.0},
        {"accuracy": 0.5, "hold_off": 1, "least_share": 0.4, "slot_s": 1.0},
    ],
    "round-robin": [{}],
    "rpow-d": [{}, {"candidates": 5, "weights": "samples"}],
    "sa-pause": [{"iterations": 30}, {"iterations": 25, "start": "last", "kappa": 1.0}],
    "soonest": [{}],
    "tifl": [
        {},
        {"interval": 2, "credits": 2, "timeout_s": 1.0, "tries": 2},
        {"profiling": "rounds", "policy": "random"},
        {"tiers": 2, "policy": "slow"},
        {"tiers": 2, "policy": "fast", "down_bits": 1e3, "up_bits": 1e3},
        {"tiers": 3, "policy": "uniform"},
        {"tiers": 2, "probabilities": [0.9, 0.1]},
    ],
    "uniform": [{"cohort": 1}, {"cohort": 4}, {"cohort": 5}],
    "weighted": [{}, {"weights": "samples"}],
}
ALL_SELECTORS: dict[str, list[Tables]] = {**SELECTOR_OPTIONS, **SELECTORS}
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

AVAILABILITIES: dict[str, Any] = {
    "always": "always",
    "bernoulli": part("bernoulli", probability=0.5),
    "bernoulli-rare": part("bernoulli", probability=0.05, retry_s=0.3),
    "markov": part("markov", mean_on_s=6.0, mean_off_s=3.0),
    "markov-rare": part("markov", mean_on_s=1.0, mean_off_s=20.0),
    "diurnal": part("diurnal"),
    "diurnal-fast": part(
        "diurnal", share_by_hour=[0.3, 0.6, 0.8, 0.5, 0.7, 0.4] * 4, mean_session_s=3.0, start_hour=5.5, zones_h=12.0
    ),
    "flash": part("flash"),
    "flash-level": part("flash", never_share=0.0, diurnal=False),
    "traces-csv": part("traces", path="intervals.csv", period_s=30.0),
    "traces-sequential": part("traces", path="intervals.csv", period_s=30.0, mapping="sequential"),
    "traces-end-point": part("traces", path="intervals.parquet", checked="end-point"),
    "traces-npz": part("traces", path="intervals.npz"),
    "traces-pickle": part("traces", path="behaviour.pkl"),
}
BATTERY = part(
    "battery", capacity_j=0.5, initial_from=0.2, compute_w=0.2, charge_w=0.004, idle_w=0.001, least_charge=0.1
)
ENERGIES = {
    "none": part("none"),
    "battery": BATTERY,
    "by-operations": part("battery", capacity_j=2.0, compute_j_per_flop=1e-8, receive_j_per_bit=1e-7),
    "without-charger": {**BATTERY, "charge_w": 0.0, "idle_w": 0.0, "initial_to": 0.7, "transmit_j_per_bit": 1e-6},
}
DROPOUTS = {
    "never": part("never"),
    "hazard": part("hazard", rate_per_s=0.2),
    "phase-hazard": part("phase-hazard", downlink_per_s=0.3, compute_per_s=0.1, uplink_per_s=0.4),
}
COMPUTES = {
    "zero": part("zero"),
    "rate": part("rate", samples_per_s=60.0),
    "rate-level": part("rate", samples_per_s=60.0, spread_sigma=0.0, jitter_sigma=0.0),
    "rate-wide": part("rate", samples_per_s=90.0, spread_sigma=1.5, jitter_sigma=0.6),
    "flops": part("flops", flops_per_s=1e7),
    "flops-fixed": part("flops", flops_per_s=1e7, spread="fixed", jitter="fixed"),
    "flops-exponential": part(
        "flops",
        flops_per_s=1.5e7,
        spread=part("shifted-exponential", shift=0.3),
        jitter=part("shifted-exponential", shift=0.8),
        load=0.2,
    ),
    "flops-stragglers": part(
        "flops", flops_per_s=2e7, spread=part("stragglers", share=0.25, times_slower=4.0), heterogeneity=0.5, load=0.4
    ),
    "flops-log-normal": part(
        "flops",
        flops_per_s=1e7,
        spread=part("log-normal", sigma=0.8),
        heterogeneity=1.5,
        jitter=part("stragglers", share=0.1, times_slower=3.0),
    ),
    "fedscale": part("fedscale"),
    "fedscale-phones": part("fedscale", law="phones", jitter=part("log-normal", sigma=0.2)),
    "fedscale-steps": part("fedscale", batch_size=2, steps=3, load=0.3),
    "fedscale-csv": part("fedscale", path="capacities.csv"),
    "fedscale-pickle": part("fedscale", path="capacities.pkl", mapping="sequential"),
}
FADINGS = {
    "none": part("none"),
    "rayleigh": part("rayleigh", coherence_s=0.05),
    "rayleigh-speed": part("rayleigh", speed_m_per_s=3.0, carrier_hz=2e9),
    "rician": part("rician", k_db=5.0),
    "nakagami": part("nakagami", m=1.5, coherence_s=0.1),
}
RATES = {
    "shannon": part("shannon"),
    "shannon-ceiling": part("shannon", snr_gap_db=1.0, ceiling=1.5),
    "cqi": part("cqi"),
    "cqi-256qam": part("cqi", table="256qam", schemes=8, gap_db=1.0, attempts=2),
    "cqi-wifi": part(
        "cqi", table="wifi", combining=False, block_s=0.002, backoff_s=1e-4, steepness_per_db=2.0, overhead=0.3
    ),
}
PATH_LOSSES = {
    "log-distance": part("log-distance"),
    "log-distance-steep": part("log-distance", exponent=4.2, reference_loss_db=60.0),
    "free-space": part("free-space"),
    **{f"inf-{hall}": part("inf", hall=hall, clutter_density=0.3) for hall in ("sl", "dl", "sh", "dh", "hh")},
    "inh-mixed": part("inh"),
    "inh-open": part("inh", office="open", carrier_hz=6e9),
    "rma": part("rma"),
    "rma-indoor": part("rma", indoor_share=0.5, building_height_m=8.0, street_width_m=30.0),
    "uma": part("uma"),
    "uma-indoor": part("uma", indoor_share=0.7, high_loss_share=0.5, client_height_m=15.0),
    "umi": part("umi"),
    "umi-indoor": part("umi", indoor_share=0.5, penetration="single-frequency"),
}
SHADOWINGS = {
    "independent": part("independent"),
    "correlated": part("correlated", decorrelation_m=20.0),
    "exact": part("correlated", method="exact", site_correlation=0.8),
}
SITE_GRIDS: list[Tables] = [
    {},
    {},
    {"sites": {"inter_site_distance_m": 150.0, "load": 0.4, "uplink_backoff_db": 10.0}},
    {"sites": {"inter_site_distance_m": 120.0, "rings": 0}},
    {"sites": SITES},
]
PLACEMENTS = {
    "disc": part("disc", radius_m=100.0, min_distance_m=5.0),
    "annulus": part("annulus", inner_m=50.0, outer_m=90.0),
    "hexagons": part("hexagons", inter_site_distance_m=120.0, rings=1),
    "file": part("file", path="places.csv"),
    "given": part("given", positions_m=[[10.0 + 9.0 * i, 40.0 - 11.0 * i] for i in range(9)]),
}
LAWS = {
    "constant": part("constant", value_s=0.4),
    "empirical": part("empirical", values_s=[0.1, 0.2, 0.2, 0.9, 1.4]),
    "log-normal": part("log-normal", median_s=0.4, sigma=0.7),
    "normal": part("normal", centre_s=0.5, std_s=0.3, floor_s=0.1),
    "shifted-exponential": part("shifted-exponential", shift_s=0.1, scale_s=0.4),
    "zero": part("zero"),
}


def private(epsilon: float, eta: float | None, mechanism: str, **options: Any) -> Tables:
    budget = part("geometric", epsilon=epsilon, **({} if eta is None else {"eta": eta}))
    return {"budget": budget, "mechanism": part(f"laplace-{mechanism}", **options)}


PRIVACIES = {
    "coordinate": private(40.0, None, "coordinate", delta_f=0.012),
    "coordinate-all": private(10.0, 0.3, "coordinate", delta_f=0.05, exempt_buffers=False),
    "clipped": private(100.0, 0.1, "l1", clip=5.0),
    "clipped-exempt": private(500.0, 1.0, "l1", clip=1.0, exempt_buffers=True),
}


def breaks(mean_up_s: float, mean_down_s: float) -> Tables:
    return {"mean_up_s": mean_up_s, "mean_down_s": mean_down_s}


FAULTS = {
    "crash": {"client_crash": breaks(4.0, 1.0)},
    "outage": {"link_outage": breaks(2.0, 0.5)},
    "restart-at": {"server_restart": {"at_s": [0.7, 2.5], "down_s": 0.5}},
    "restart-mean": {"server_restart": {"mean_up_s": 2.0, "down_s": 0.3}},
    "crash-outage": {"client_crash": breaks(10.0, 5.0), "link_outage": breaks(5.0, 1.0)},
    "everything": {
        "client_crash": breaks(6.0, 1.0),
        "link_outage": breaks(3.0, 0.4),
        "server_restart": {"mean_up_s": 3.0, "down_s": 0.4},
    },
}
SOME_NETWORKS = ("latency", "cell-equal", "graph", "cell-multicast", "pause-two-speed", "cell-first-come", "wifi")


WIRE = part("link", rate_bps=1e6, delay_s=0.05)
AT_SERVERS = NETWORKS["graph-edge-servers"]
GROUPINGS: dict[str, Any] = {
    "order": part("order", count=3),
    "latency": part("latency", count=3),
    "given": part("given", edge=[0, 2, 1, 1, 0, 2, 0, 0, 1, 2]),
}
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
MERGINGS: dict[str, Any] = {
    "synchronous": "synchronous",
    "skip": part("synchronous", absent="skip"),
    "asynchronous": part("asynchronous"),
    "asynchronous-hinge": part("asynchronous", mixing=0.9, staleness=STALENESS["hinge"]),
    "fedat": "fedat",
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
TROUBLES: dict[str, list[Tables]] = {
    "none": [],
    "bursts": [BURSTS],
    "silences": [part("outage-bursts", mean_good_s=2.0, mean_bad_s=0.5)],
    "lost-station": [part("loss", node="bs-0", from_s=0.5, duration_s=1.5)],
    "both": [BURSTS, part("loss", node="bs-0", from_s=1.0, duration_s=3.0)],
}
PASSES = [[0, 0.0, -50.0, 0.0], [0, 4.0, 60.0, 0.0], [2, 1.0, 0.0, 40.0], [2, 3.0, 50.0, -40.0]]
MOBILITIES: dict[str, Tables] = {
    "none": {},
    "walk": {"mobility": WALK},
    "walk-pauses": {"mobility": {**WALK, "pause_s": 1.0, "fastest_m_per_s": 30.0}},
    "points": {"mobility": part("trace", points=PASSES)},
    "file": {"mobility": part("trace", path="moves.csv")},
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

MODELS = {"softmax": part("mlp", hidden=[]), "mlp-8": part("mlp", hidden=[8]), "mlp-8-6": part("mlp", hidden=[8, 6])}
LOCALS = {
    "sgd": {"optimizer": "sgd", "learning_rate": 0.1},
    "momentum": {"optimizer": "sgd", "learning_rate": 0.05, "momentum": 0.9, "keep_optimizer_state": True},
    "proximal": {"optimizer": "sgd", "learning_rate": 0.1, "proximal": 0.5, "epochs": 2},
    "adam": {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 10},
    "adam-kept": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "keep_optimizer_state": True},
    "few-batches": {"optimizer": "sgd", "learning_rate": 0.2, "epochs": 3, "max_batches": 4, "batch_size": 8},
    "full-batches": {"optimizer": "sgd", "learning_rate": 0.2, "short_batch": "skip", "batch_size": 16},
}
SPLITS = {
    "equal": part("equal"),
    "dirichlet": part("dirichlet", alpha=0.5, rounding="cumulative"),
    "dirichlet-client": part("dirichlet", alpha=0.3, rounding="cumulative", per="client", min_samples=4),
    "skew": part("quantity-skew", concentration=2.0),
    "skew-even": part("quantity-skew", concentration=5.0, dominant_share=0.6, min_fraction=0.5),
}


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
    for kind in sorted(SELECTOR_OPTIONS.keys() - SELECTORS.keys()):
        yield from of_selector("other", kind, SELECTOR_OPTIONS[kind], ("latency", "cell-equal"))
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
