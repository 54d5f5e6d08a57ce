"""Values of the fields of a scenario, for `tests.support.scenario_fields`: what its walk cannot find out by itself."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from fedsim.learning import DATASETS, METRICS, Classification
from fedsim.learning.data.images.idx import FILES
from fedsim.selectors import SELECTORS
from tests.support.data_files import idx
from tests.support.tiny_images import Tiny

Tables = dict[str, Any]

EDGE: Final = {"capacity_bps": 1e7, "delay_s": 0.01}
LAW: Final = {"kind": "constant", "value_s": 1.0}
CONSTANT_ACCESS: Final = {"downlink_bps": 1e6, "uplink_bps": 1e5, "delay_s": 0.005}
BURSTS: Final = {"kind": "outage-bursts", "mean_good_s": 5.0, "mean_bad_s": 1.0}
TWO_TIER: Final = {"kind": "two-tier", "cells": 2, "site_distance_m": 50.0, "fronthaul": EDGE, "backhaul": EDGE}
WALK: Final = {"kind": "random-waypoint", "radius_m": 50.0, "slowest_m_per_s": 1.0, "fastest_m_per_s": 2.0}
EDGES: Final = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
POINTS: Final = [[0, 0.0, 1.0, 2.0], [0, 5.0, 3.0, 4.0]]
RATES: Final = {"path": "one/rates.csv", "time": "time_s", "rate": "rate_bps"}
NODES: Final = [
    {"id": "cloud", "kind": "cloud"},
    *({"id": f"c{number}", "kind": "client", "client": number} for number in range(6)),
]
LINES: Final = [{"source": f"c{number}", "target": "cloud", **EDGE} for number in range(6)]
BOTH_WAYS: Final = [*LINES, *({**line, "source": "cloud", "target": line["source"]} for line in LINES)]
OWN_SETS: Final = {
    name: replace(Tiny(samples=200, salt=salt).load(), classes=10) for salt, name in enumerate(("one", "two"))
}
"""Data sets in files."""

LEARNING: Final = {
    "data": {"kind": "cifar-10", "train_limit": 120},
    "split": {"kind": "dirichlet", "alpha": 5.0},
    "model": {"kind": "mlp", "hidden": [4]},
    "local": {"momentum": 0.5, "max_batches": 3},
    "server": {"kind": "fedavgm"},
    "flops_per_sample": 1e3,
}

TABLES: Final[Tables] = {
    "name": "fields",
    "seed": 3,
    "crowd": {"clients": 6, "placement": {"kind": "disc", "radius_m": 100.0}},
    "learning": {"kind": "supervised", **LEARNING},
    "privacy": {
        "budget": {"kind": "geometric", "epsilon": 40.0},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
    },
    "network": {"kind": "cell"},
    "devices": {},
    "rounds": {"count": 5, "policy": {"kind": "deadline", "deadline_s": 1.0}, "late": "cancel"},
    # Made once: reading the constructor of a selector is a third of the time of a scenario.
    "selector": SELECTORS.make({"kind": "uniform", "cohort": 3}),
    "results": {},
}
"""The scenario to which each field belongs or is added."""

OPTIONS: Final[dict[str, Tables]] = {
    "policy adaptive-deadline": {"initial_s": 1.0},
    "policy deadline": {"deadline_s": 1.0},
    "policy fedasync": {"concurrency": 3},
    "policy fedbuff": {"concurrency": 3, "buffer": 2},
    "policy k-fastest": {"k": 2},
    "policy moving-average": {"initial_s": 1.0},
    "policy pisces": {"concurrency": 3},
    "policy quorum": {"share": 0.5, "max_wait_s": 5.0},
    "policy safa": {"share": 0.5, "max_wait_s": 5.0, "lag": 0},
    **{f"data set {kind}": {"train_limit": 120} for kind in DATASETS.builtin},
    "data set femnist": {"train_limit": 120, "users": 7},
    "data set mind": {"train_limit": 120, "length": 4, "vocabulary": 9},
    "data set amazon-reviews": {"train_limit": 120, "length": 4, "vocabulary": 9},
    "data set tiny-shakespeare": {"train_limit": 60, "length": 4, "stride": 1},
    "data set idx-files": {"name": "one", "train_limit": 120},
    "model text-cnn": {"embedding": 3, "hidden": 3, "pooling": 3, "filters": 4},
    "model text-attention": {"embedding": 3, "hidden": 3, "pooling": 3, "heads": 2, "head_width": 2},
    "model char-lstm": {"embedding": 3, "hidden": 4, "layers": 1},
    "split dirichlet": {"alpha": 5.0},
    "split sizes": {"samples": 15},
    "split quantity-skew": {"concentration": 3.0},
    "split log-normal": {"sigma": 1.0},
    "split label-limited": {"share": 0.5},
    "split file": {"path": "one/division.csv"},
    "aggregation trimmed-mean": {"share": 0.4},
    "aggregation krum": {"byzantine": 0},
    "aggregation multi-krum": {"byzantine": 0, "averaged": 2},
    "weighting given": {"weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
    "learner supervised": LEARNING,
    "learner none": {"model_bits": 1e6, "samples_per_client": 10, "flops_per_sample": 1e3},
    "fading rayleigh": {"coherence_s": 0.02},
    "fading rician": {"coherence_s": 0.02, "k_db": 3.0},
    "fading nakagami": {"coherence_s": 0.02, "m": 2.0},
    "shadowing correlated": {"decorrelation_m": 50.0},
    **{f"path loss {kind}": {"carrier_hz": 2e9} for kind in ("free-space", "uma", "umi", "rma", "inh")},
    "path loss inf": {"carrier_hz": 2e9, "clutter_density": 0.3},
    "latency law constant": {"value_s": 1.0},
    "latency law normal": {"centre_s": 1.0, "std_s": 0.1},
    "latency law log-normal": {"median_s": 1.0, "sigma": 0.5},
    "latency law shifted-exponential": {"shift_s": 1.0, "scale_s": 0.5},
    "latency law empirical": {"values_s": [1.0, 2.0]},
    "placement disc": {"radius_m": 100.0},
    "placement annulus": {"inner_m": 10.0, "outer_m": 100.0},
    "placement hexagons": {"inter_site_distance_m": 100.0, "rings": 1},
    "placement file": {"path": "one/places.csv"},
    "placement given": {"positions_m": [[10.0 * (number + 1), 5.0] for number in range(6)]},
    "network rate-traces": {"downlink": RATES, "uplink": RATES, "delay_s": 0.01},
    "satellite pass file": {"path": "one/windows.csv", "period_s": 10.0},
    "network graph": {"topology": TWO_TIER, "access": CONSTANT_ACCESS},
    "network latency": {"downlink": LAW, "uplink": LAW},
    "topology file": {"path": "one/graph.json"},
    "topology given": {"nodes": NODES, "edges": LINES},
    "topology mesh": {"range_m": 500.0, "hop": EDGE, "backhaul": EDGE},
    "topology star": {"backhaul": EDGE},
    "topology two-tier": TWO_TIER,
    "access constant": CONSTANT_ACCESS,
    "access radio": {"delay_s": 0.01},
    # Means over fading and coding, which take long, need not be worked out.
    **{
        f"cell {kind}": {"fading": "none", "rate": "shannon"}
        for kind in ("urban-macro", "indoor-office", "wifi", "nb-iot", "5g-midband")
    },
    "mobility random-waypoint": WALK,
    "mobility trace": {"points": POINTS},
    "trouble loss": {"node": "bs-0", "from_s": 1.0, "duration_s": 1.0},
    "trouble outage-bursts": BURSTS,
    "effect background-traffic": {"from_s": 1.0, "until_s": 2.0},
    "availability bernoulli": {"probability": 0.5, "retry_s": 1.0},
    "availability markov": {"mean_on_s": 10.0, "mean_off_s": 5.0},
    "availability diurnal": {"share_by_hour": [0.5] * 24, "mean_session_s": 600.0},
    "availability traces": {"path": "one/traces.csv"},
    "law of clients uniform": {"least": 0.05, "greatest": 0.3},
    "law of clients log-normal": {"median": 0.2, "sigma": 0.1, "least": 1e-3, "greatest": 0.45},
    "law of clients normal": {"mean": 0.3, "std": 0.1, "least": 0.1, "greatest": 0.45},
    "law of clients choice": {"of": [0.1, 0.4], "weights": [1.0, 2.0]},
    "law of clients column": {"column": "load", "path": "one/clients.csv"},
    "spread law log-normal": {"sigma": 0.5},
    "spread law shifted-exponential": {"shift": 0.5},
    "spread law stragglers": {"share": 0.2, "times_slower": 4.0},
    "spread law empirical": {"values": [0.5, 1.0, 2.0]},
    "compute time rate": {"samples_per_s": 500.0},
    "compute time flops": {"flops_per_s": 1e9},
    "compute time fedscale": {"batch_size": 10, "steps": 2},
    "dropout law hazard": {"rate_per_s": 0.1},
    "dropout law phase-hazard": {"downlink_per_s": 0.1, "compute_per_s": 0.1, "uplink_per_s": 0.1},
    "energy law battery": {
        "capacity_j": 100.0,
        "receive_j_per_bit": 1e-9,
        "transmit_j_per_bit": 1e-9,
        "compute_w": 1.0,
        "initial_from": 0.5,
        "initial_to": 0.8,
        "idle_w": 0.01,
        "charge_w": 0.1,
        "least_charge": 0.1,
    },
    "selector poisson": {"rate": 0.99},
    **{f"privacy budget {kind}": {"epsilon": 40.0} for kind in ("geometric", "zeta")},
    "privacy budget uniform": {"epsilon": 40.0, "releases": 30},
    "privacy budget unlimited": {"epsilon": 1.0},
    "compressor qsgd": {"coding": "entropy"},
    "privacy mechanism gaussian": {"clip": 1.0},
    "privacy mechanism laplace-l1": {"clip": 1.0},
    "privacy mechanism laplace-coordinate": {"delta_f": 0.012, "exempt_buffers": False},
    "backhaul link": {"rate_bps": 1e7, "delay_s": 0.01},
    "staleness law deviation": {"beta": 0.35},
    "grouping given": {"edge": [0, 1, 0, 1, 0, 1]},
    **{f"grouping {kind}": {"count": 2} for kind in ("latency", "order")},
    "selector cpow-d": {"cohort": 2, "samples": 10, "wait_s": 0.5},
    "selector pow-d": {"cohort": 2, "candidates": 4, "wait_s": 0.5},
    "selector rpow-d": {"cohort": 2, "candidates": 4},
    "selector fedsampling": {"samples": 20, "alpha": 0.5, "threshold": 60, "wait_s": 0.5},
    "selector fixed-ratio": {"ratio": 0.5},
    "selector fedcs": {"deadline_s": 3.0, "share": 0.5, "wait_s": 0.5},
    "selector cs-ucb-q": {"cohort": 2, "tau_max_s": 5.0},
    **{table: {"mean_up_s": 10.0, "mean_down_s": 1.0} for table in ("ClientCrash", "LinkOutage")},
    "ServerRestart": {"mean_up_s": 10.0, "down_s": 1.0},
    "Edges": EDGES,
    "Target": {"at_least": 0.5},
}
"""Options of a kind, or of a table that is left out by default: those that it needs, or that leave room for others."""

_GAUSSIAN: Final = {"privacy.mechanism": {"kind": "gaussian", "clip": 1.0}}
_SAMPLED: Final = {
    **_GAUSSIAN,
    "privacy.where": "server",
    "privacy.composition": "rdp",
    "rounds.weights": "sum",
    "selector": {"kind": "poisson", "rate": 0.99},
}
_AT_EDGES: Final = {
    "network": {"kind": "graph", "topology": TWO_TIER, "access": CONSTANT_ACCESS, "server": "edge-server"}
}
_ENOUGH: Final = {"rounds.minimum_updates": 5, "rounds.late": {"kind": "stale"}}
_TEXT: Final = {"kind": "mind", "train_limit": 120, "length": 4, "vocabulary": 9}
_TEXT_MODEL: Final = {"kind": "text-cnn", "embedding": 3, "hidden": 3, "pooling": 3, "filters": 4}
_EACH_CHARACTER: Final = {"kind": "tiny-shakespeare", "length": 4, "stride": 1, "targets": "each"}
_NEXT_TOKENS: Final = {"learning.task": "next-token", "learning.split": "equal"}
_EACH_PLACE: Final = {"kind": "char-lstm", "embedding": 3, "hidden": 4, "layers": 1, "places": "each"}
_UNDIVIDED: Final = {"learning.data": {"kind": "tests.support.tiny_images:of_users"}}
BESIDE: Final[dict[str, Mapping[str, Any]]] = {
    "Division": _UNDIVIDED,
    **{f"data set {kind}": {"learning.model": _TEXT_MODEL} for kind in ("mind", "amazon-reviews", "tiny-shakespeare")},
    **{f"model {kind}": {"learning.data": _TEXT} for kind in ("text-cnn", "text-attention", "char-lstm")},
    "data set diabetes": {"learning.task": "regression", "learning.split": "equal"},
    "split natural": {"learning.data": {"kind": "idx-files", "name": "one", "train_limit": 120, "users": True}},
    **{f"aggregation {kind}": _ENOUGH for kind in ("median", "trimmed-mean", "krum", "multi-krum")},
    **{f"topology {kind}": {"network.access": None} for kind in ("file", "given", "mesh")},
    "grouping site": {**_AT_EDGES, "rounds.edges.backhaul": "network"},
    "merging of edges fedat": {"rounds.edges.grouping": {"kind": "latency", "count": 2}},
    "backhaul network": {**_AT_EDGES, "rounds.edges.grouping": "site"},
    **{f"composition {kind}": _GAUSSIAN for kind in ("rdp", "pld")},
    **{f"local algorithm {kind}": {"privacy": None} for kind in ("scaffold", "feddyn")},
    "local algorithm fedper": {"learning.model.hidden": [4, 4]},
    **{
        f"task {kind}": {
            "learning.data": {"kind": "tests.support.tiny_targets:TinyTargets", "of": targets},
            "learning.split": {"kind": "equal"},
            **({"learning.model": {"kind": "tests.support.tiny_targets:EachPlace"}} if targets == "tokens" else {}),
        }
        for kind, targets in (("regression", "numbers"), ("next-token", "tokens"), ("multi-label", "label-sets"))
    },
}
"""What must stand beside a kind, by dotted path."""

OTHERS: Final[dict[str, Any]] = {
    "network.delay_spread_s": 1e-7,
    "name": "others",
    "learning.data.name": "two",
    "learning.data.targets": "each",
    "learning.model.places": "each",
    "learning.model.train": ["*.weight"],
    "learning.algorithm.widths": [1.0, 0.5],
    "learning.task": {"kind": "classification", "shift": 1},
    "learning.task.ignore": 9,
    "rounds.target.metric": "loss",
    "rounds.effects": [{"kind": "duty-cycle"}],
    "learning.algorithm.client_widths": [1.0, 0.5, 0.5, 1.0, 1.0, 0.25],
    "learning.split.samples": 12,
    "learning.split.path": "two/division.csv",
    "learning.aggregation": {"kind": "median"},
    "rounds.weights.weight": [6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
    "learning.samples_per_client": 12,
    "network.downlink.bandwidth_hz.column": "other",
    "network.downlink.bandwidth_hz.path": "two/clients.csv",
    "devices.compute.samples_per_s.column": "other",
    "devices.compute.samples_per_s.path": "two/clients.csv",
    "learning.data.folder": "MINDlarge_train",
    "learning.data.glove": "vectors.txt",
    "learning.data.digest": OWN_SETS["one"].digest,
    "privacy.budget": {"kind": "geometric", "epsilon": 20.0},
    "privacy.where": "server",
    "privacy.amplification": "poisson",
    "crowd.placement.path": "two/places.csv",
    "crowd.placement.positions_m": [[9.0 * (number + 1), 5.0] for number in range(6)],
    "network.path": "two/capacities.csv",
    "network.passes.path": "two/windows.csv",
    "network.passes.contact_with": "6",
    "devices.availability.contact_with": "6",
    **{
        f"network.{link}.{name}": other
        for link in ("downlink", "uplink")
        for name, other in {"path": "two/rates.csv", "rate": "again_bps", "time": "again_s", "trace": "device"}.items()
    },
    "network.topology": {"kind": "star", "backhaul": EDGE},
    "network.topology.path": "two/graph.json",
    "network.topology.nodes": [*NODES, {"id": "relay", "kind": "router"}],
    "network.topology.edges": [{**line, "delay_s": 0.02} for line in LINES],
    "network.mobility.points": [[0, 0.0, 1.0, 2.0]],
    "network.access.cell.sites": {"load": 0.37},
    "network.transport.server.background": {"least": 0.1, "most": 0.2},
    "network.mobility.path": "two/walks.csv",
    "network.trouble": [BURSTS],
    "network.trouble.0.node": "bs-1",
    "network.trouble.0.edge": ["bs-0", "edge-0"],
    "network.trouble.0.edges": [["bs-0", "edge-0"]],
    "devices.availability.path": "two/traces.csv",
    "devices.compute.path": "two/capacities.csv",
    "rounds.policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2},
    "rounds.late": {"kind": "stale"},
    "rounds.edges.grouping.edge": [0, 0, 0, 1, 1, 1],
    "rounds.faults.server_restart.at_s": [5.0],
    "selector.rates": [0.5] * 6,
    "selector.expected_reward": [0.5] * 6,
    "selector.periods_s": [3600.0],
    "selector.probabilities": [0.5, 0.2, 0.1, 0.1, 0.1],
}
"""Other values of fields by path, where the type of the field does not tell any."""

TOGETHER: Final[dict[str, Mapping[str, Any]]] = {
    "rounds.target.at_most": {"rounds.target.at_least": None},
    "privacy.where": {"rounds.weights": "uniform"},
    "privacy.composition": _GAUSSIAN,
    "privacy.amplification": _SAMPLED,
    "learning.aggregation": _ENOUGH,
    "learning.test": _UNDIVIDED,
    "learning.data.targets": {**_NEXT_TOKENS, "learning.model": _EACH_PLACE},
    "learning.model.places": {**_NEXT_TOKENS, "learning.data": _EACH_CHARACTER},
    "learning.local.optimizer": {"learning.local.momentum": 0.0},
    "network.fading.speed_m_per_s": {"network.fading.coherence_s": None, "network.fading.carrier_hz": 2e9},
    "network.fading.carrier_hz": {"network.fading.coherence_s": None, "network.fading.speed_m_per_s": 1.0},
    "network.passes.contact_with": {"network.passes.path": "one/contacts.txt"},
    "devices.availability.contact_with": {
        "devices.availability.path": "one/contacts.txt",
        "devices.availability.period_s": 100.0,
    },
    "network.topology.directed": {"network.topology.edges": BOTH_WAYS},
    "network.trouble.0.edge": {"network.trouble.0.node": None},
    "network.mobility.path": {"network.mobility.points": None},
    "network.downlink.step_s": {"network.downlink.time": None},
    "network.uplink.step_s": {"network.uplink.time": None},
    "devices.energy.compute_j_per_flop": {"devices.energy.compute_w": None},
    "rounds.faults.server_restart.at_s": {"rounds.faults.server_restart.mean_up_s": None},
    "selector.probabilities": {"selector.policy": None},
}
"""What must change with a field."""

ONE_VALUE: Final = {"network.path_loss rma": {"high_loss_share", "penetration"}}
"""Fields that a kind has by descent and of which it allows one value: TR 38.901 has one kind of rural buildings."""

NOT_INSTALLED: Final = frozenset({"sionna-tdl", "sionna-cdl", "sionna-phy"} if find_spec("sionna") is None else ())
"""Kinds that are refused, as the library behind them is not there."""

_LAWS: Final = ("uniform", "log-normal", "normal", "choice", "column")
NOT_THERE: Final = {
    *(
        ("learning.task.metrics", kind)
        for kind in METRICS.builtin
        if METRICS.load(kind).targets != Classification.targets
    ),
    ("rounds.edges.merging.staleness", "deviation"),
    *(
        (field, law)
        for field in (
            "learning.split.samples",
            "learning.samples_per_client",
            "rounds.weights.weight",
            "rounds.secure_aggregation.mask_s",
        )
        for law in _LAWS
    ),
}
"""Kinds of a catalogue that a slot refuses, with the options of this module."""


def write_files(folder: Path) -> None:
    """Write the files that scenarios of this module name, two of each kind."""
    for number, name in enumerate(("one", "two")):
        place = folder / name
        place.mkdir()
        own, rows = OWN_SETS[name], range(8)
        (place / "raw").mkdir()
        for file, array in zip(FILES, (own.train_x[..., 0], own.train_y, own.test_x[..., 0], own.test_y), strict=True):
            (place / "raw" / file).write_bytes(idx(array.astype(np.uint8)))
        _csv(place / "raw" / "train-users.csv", "user", ((row % (7 + number),) for row in range(200)))
        _csv(place / "division.csv", "client", (((row + number) % 6,) for row in range(120)))
        _csv(place / "places.csv", "x_m,y_m", ((10 * row + 5 + number, 7) for row in rows))
        _csv(place / "clients.csv", "client,load,other", ((row, 0.1 + 0.01 * row + 0.1 * number, 0.2) for row in rows))
        _csv(place / "capacities.csv", "computation,communication", ((20 + row, 5000 + number) for row in rows))
        header = "device,time_s,again_s,rate_bps,again_bps"
        _csv(place / "rates.csv", header, ((0, row, 2 * row, 1e6 + row + number, 2e6) for row in rows))
        _csv(
            place / "windows.csv",
            "client,start_s,end_s",
            ((row, 0.1 * row, 0.1 * row + 0.4 + number / 99) for row in rows[:6]),
        )
        events = ((0.1 * row + after_s, row, way) for row in rows[:6] for after_s, way in ((0.0, "up"), (0.4, "down")))
        (place / "contacts.txt").write_text("".join(f"{time_s} CONN {row} 6 {way}\n" for time_s, row, way in events))
        _csv(place / "walks.csv", "client,time_s,x_m,y_m", ((row, 0, 5, number) for row in rows))
        _csv(place / "traces.csv", "device,start_s,end_s,period_s", ((row, number, 50, 100) for row in rows))
        lines = [{**line, "delay_s": 0.01 * (1 + number)} for line in LINES]
        (place / "graph.json").write_text(json.dumps({"nodes": NODES, "edges": lines}))


def _csv(path: Path, header: str, rows: Any) -> None:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
