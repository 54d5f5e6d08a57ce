"""Hashes of the tables of many small scenarios: what a change of the code that changes no result must leave as it is.

    python tests/golden/freeze.py write              write the hashes of all scenarios
    python tests/golden/freeze.py check              compare with what is written; exit 1 at a difference
    python tests/golden/freeze.py check --every 20   compare every twentieth scenario by id
    python tests/golden/freeze.py check --only edges/

Scenarios are plain tables, as in a TOML file, and only the public names of fedsim are used. Hashes are exact to the
last bit, and hold on one kind of hardware with one release of the libraries; the column ``rounded`` is of the
same values with 9 significant digits.
"""

import argparse
import contextlib
import csv
import hashlib
import itertools
import json
import os
import pickle
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.options import NETWORK_OPTIONS, SELECTOR_OPTIONS

Tables = dict[str, Any]
Rows = Iterator[tuple[str, Tables]]

HASHES = Path(__file__).parent / "hashes.csv"
TABLES = ("rounds", "participations", "evaluations", "edge_rounds", "edge_participations", "probes", "accounts")
# Columns that are hashed: further ones change nothing here, a missing one is an error.
FROZEN = {
    "rounds": (
        "round start_s end_s duration_s candidates selected delivered late dropped stale_used model_version "
        "largest_leakage ended_by"
    ),
    "participations": (
        "round edge client draws weight work start_s downlink_s compute_s uplink_s queue_s end_s downlink_bits "
        "uplink_bits outcome cut_in fate start_version served_round staleness epsilon energy_j"
    ),
    "evaluations": "round time_s model_version accuracy loss",
    "edge_rounds": (
        "edge round start_s end_s duration_s candidates selected delivered late dropped stale_used model_version "
        "largest_leakage ended_by"
    ),
    "edge_participations": (
        "round edge edge_rounds start_s downlink_s uplink_s end_s downlink_bits uplink_bits start_version staleness "
        "weight"
    ),
    "probes": (
        "round edge client start_s downlink_s compute_s uplink_s queue_s end_s downlink_bits uplink_bits outcome "
        "cut_in energy_j"
    ),
    "accounts": "client idle_s downlink_s compute_s queue_s uplink_s cut_off_s",
}
VIEWS = ("by_fate", "critical_path", "cloud_path")
COLUMNS = ("scenario", "outcome", *TABLES, "views", "rounded")
RAN = "ran"
SMALLEST = 12  # decimal places beyond which the rounded values have nothing


# Choices


def pick(scenario: str, what: str, options: Sequence[Any]) -> Any:
    """Return one of several options; which one follows from the scenario's id and the name of the choice alone."""
    number = int.from_bytes(hashlib.sha256(f"{scenario} {what}".encode()).digest()[:8], "big")
    return options[number % len(options)]


def variants(kind: str, *options: Tables) -> list[Tables]:
    """Return the tables of one kind with each of several sets of options."""
    return [{"kind": kind, **one} for one in options or ({},)]


def together(first: Tables, second: Mapping[str, Any]) -> Tables:
    """Return tables of which the second change or add values to the first; parts and local training are replaced."""
    merged = dict(first)
    for name, value in second.items():
        old = merged.get(name)
        joins = isinstance(value, Mapping) and isinstance(old, Mapping) and "kind" not in value and name != "local"
        merged[name] = together(dict(old), value) if joins and isinstance(old, Mapping) else value
    return merged


TIMING = {"kind": "none", "model_bits": 3e5, "samples_per_client": 50, "flops_per_sample": 2e5}
DEADLINE = {"kind": "deadline", "deadline_s": 2.0}


def described(scenario: str, *changes: Mapping[str, Any]) -> tuple[str, Tables]:
    """Return the id and tables of a scenario: small, about timing only, unless the changes say otherwise."""
    tables: Tables = {
        "name": "frozen",
        "seed": pick(scenario, "seed", range(1000)),
        "crowd": {
            "clients": pick(scenario, "clients", (5, 6, 7, 8, 9)),
            "placement": {"kind": "disc", "radius_m": 60.0},
        },
        "learning": TIMING,
        "network": "pause-two-speed",
        "rounds": {"count": pick(scenario, "rounds", (2, 3, 4)), "policy": DEADLINE},
        "selector": {"kind": "uniform", "cohort": 3},
        "results": {"audit": True},
    }
    for change in changes:
        tables = together(tables, change)
    return scenario, tables


# Parts: every kind with several sets of options

STALENESS = {
    "constant": {"kind": "constant"},
    "polynomial": {"kind": "polynomial", "a": 0.8},
    "hinge": {"kind": "hinge", "a": 0.5, "b": 1.0},
    "exponential": {"kind": "exponential", "a": 0.6},
    "deviation": {"kind": "deviation", "beta": 0.5, "scale": 0.7},
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
        "moving-average",
        {"initial_s": 2.0, "target_share": 0.7, "growth": 1.5},
        {"initial_s": 5.0, "alpha": 0.6},
    ),
    "quorum": variants(
        "quorum",
        {"share": 0.5, "min_wait_s": 0.5, "max_wait_s": 3.0},
        {"share": 1.0, "max_wait_s": 2.5},
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
    "divfl": [
        {},
        {"start": "in-turn", "weights": "represented"},
        {"start": "zero", "subset": 4, "refresh_every": 2},
    ],
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
WITHOUT_COHORT = ("all", "poisson", "fedcs", "fixed-ratio")


def selector(kind: str, options: Tables) -> Tables:
    """Return the table of a selector, with a cohort of three where it has one and the options name none."""
    return {"kind": kind, **({} if kind in WITHOUT_COHORT else {"cohort": 3}), **options}


LAW = {"kind": "log-normal", "median_s": 0.5, "sigma": 0.5}
EDGE = {"capacity_bps": 1e6, "delay_s": 0.02}
FRONT = {"capacity_bps": 1e7, "delay_s": 0.001}
TWO_TIER = {"kind": "two-tier", "cells": 3, "site_distance_m": 50.0, "fronthaul": FRONT, "backhaul": EDGE}
ACCESS = {"downlink_bps": 1e6, "uplink_bps": 4e5, "delay_s": 0.005}
BURSTS = {"kind": "outage-bursts", "mean_good_s": 5.0, "mean_bad_s": 1.0, "bad_factor": 0.1}
WALK = {
    "kind": "random-waypoint",
    "radius_m": 80.0,
    "slowest_m_per_s": 5.0,
    "fastest_m_per_s": 20.0,
}
SHARING = ("dedicated", "equal", "proportional-fair", "first-come", "minimum-makespan")
PRESETS = ("urban-macro", "indoor-office", "wifi", "nb-iot", "5g-midband")


def cell(downlink: str, uplink: str, kind: str = "cell") -> Tables:
    return {"kind": kind, "downlink": {"sharing": downlink}, "uplink": {"sharing": uplink}}


LATENCY = {"kind": "latency", "downlink": LAW, "uplink": LAW, "spread_sigma": 0.3}
GRAPH = {"kind": "graph", "topology": TWO_TIER, "access": ACCESS, "trouble": [BURSTS]}
SITES = {"inter_site_distance_m": 100.0, "load": 0.3, "rings": 1, "serving_rings": 1}
NETWORKS: dict[str, Any] = {
    "latency": LATENCY,
    "fedscale": {"kind": "fedscale", "median_kbps": 600.0},
    "pause-two-speed": "pause-two-speed",
    "graph": GRAPH,
    "graph-radio": {**GRAPH, "access": {"kind": "radio", "spectrum": "shared", "delay_s": 0.005}},
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
    "cell-sites": {"kind": "cell", "sites": SITES, "uplink": {"sharing": "equal"}},
    **{kind: cell("dedicated", "equal", kind) for kind in PRESETS},
}

AVAILABILITIES: dict[str, Any] = {
    "always": "always",
    "bernoulli": {"kind": "bernoulli", "probability": 0.5},
    "bernoulli-rare": {"kind": "bernoulli", "probability": 0.05, "retry_s": 0.3},
    "markov": {"kind": "markov", "mean_on_s": 6.0, "mean_off_s": 3.0},
    "markov-rare": {"kind": "markov", "mean_on_s": 1.0, "mean_off_s": 20.0},
    "diurnal": {"kind": "diurnal"},
    "diurnal-fast": {
        "kind": "diurnal",
        "share_by_hour": [0.3, 0.6, 0.8, 0.5, 0.7, 0.4] * 4,
        "mean_session_s": 3.0,
        "start_hour": 5.5,
        "zones_h": 12.0,
    },
    "flash": {"kind": "flash"},
    "flash-level": {"kind": "flash", "never_share": 0.0, "diurnal": False},
    "traces-csv": {"kind": "traces", "path": "intervals.csv", "period_s": 30.0},
    "traces-sequential": {"kind": "traces", "path": "intervals.csv", "period_s": 30.0, "mapping": "sequential"},
    "traces-end-point": {"kind": "traces", "path": "intervals.parquet", "checked": "end-point"},
    "traces-npz": {"kind": "traces", "path": "intervals.npz"},
    "traces-pickle": {"kind": "traces", "path": "behaviour.pkl"},
}
BATTERY = {
    "kind": "battery",
    "capacity_j": 0.5,
    "initial_from": 0.2,
    "compute_w": 0.2,
    "charge_w": 0.004,
    "idle_w": 0.001,
    "least_charge": 0.1,
}
ENERGIES = {
    "none": {"kind": "none"},
    "battery": BATTERY,
    "by-operations": {"kind": "battery", "capacity_j": 2.0, "compute_j_per_flop": 1e-8, "receive_j_per_bit": 1e-7},
    "without-charger": {**BATTERY, "charge_w": 0.0, "idle_w": 0.0, "initial_to": 0.7, "transmit_j_per_bit": 1e-6},
}
DROPOUTS = {
    "never": {"kind": "never"},
    "hazard": {"kind": "hazard", "rate_per_s": 0.2},
    "phase-hazard": {"kind": "phase-hazard", "downlink_per_s": 0.3, "compute_per_s": 0.1, "uplink_per_s": 0.4},
}
COMPUTES = {
    "zero": {"kind": "zero"},
    "rate": {"kind": "rate", "samples_per_s": 60.0},
    "rate-level": {"kind": "rate", "samples_per_s": 60.0, "spread_sigma": 0.0, "jitter_sigma": 0.0},
    "rate-wide": {"kind": "rate", "samples_per_s": 90.0, "spread_sigma": 1.5, "jitter_sigma": 0.6},
    "flops": {"kind": "flops", "flops_per_s": 1e7},
    "flops-fixed": {"kind": "flops", "flops_per_s": 1e7, "spread": "fixed", "jitter": "fixed"},
    "flops-exponential": {
        "kind": "flops",
        "flops_per_s": 1.5e7,
        "spread": {"kind": "shifted-exponential", "shift": 0.3},
        "jitter": {"kind": "shifted-exponential", "shift": 0.8},
        "load": 0.2,
    },
    "flops-stragglers": {
        "kind": "flops",
        "flops_per_s": 2e7,
        "spread": {"kind": "stragglers", "share": 0.25, "times_slower": 4.0},
        "heterogeneity": 0.5,
        "load": 0.4,
    },
    "flops-log-normal": {
        "kind": "flops",
        "flops_per_s": 1e7,
        "spread": {"kind": "log-normal", "sigma": 0.8},
        "heterogeneity": 1.5,
        "jitter": {"kind": "stragglers", "share": 0.1, "times_slower": 3.0},
    },
    "fedscale": {"kind": "fedscale"},
    "fedscale-phones": {"kind": "fedscale", "law": "phones", "jitter": {"kind": "log-normal", "sigma": 0.2}},
    "fedscale-steps": {"kind": "fedscale", "batch_size": 2, "steps": 3, "load": 0.3},
    "fedscale-csv": {"kind": "fedscale", "path": "capacities.csv"},
    "fedscale-pickle": {"kind": "fedscale", "path": "capacities.pkl", "mapping": "sequential"},
}
FADINGS = {
    "none": {"kind": "none"},
    "rayleigh": {"kind": "rayleigh", "coherence_s": 0.05},
    "rayleigh-speed": {"kind": "rayleigh", "speed_m_per_s": 3.0, "carrier_hz": 2e9},
    "rician": {"kind": "rician", "k_db": 5.0},
    "nakagami": {"kind": "nakagami", "m": 1.5, "coherence_s": 0.1},
}
RATES = {
    "shannon": {"kind": "shannon"},
    "shannon-ceiling": {"kind": "shannon", "snr_gap_db": 1.0, "ceiling": 1.5},
    "cqi": {"kind": "cqi"},
    "cqi-256qam": {"kind": "cqi", "table": "256qam", "schemes": 8, "gap_db": 1.0, "attempts": 2},
    "cqi-wifi": {
        "kind": "cqi",
        "table": "wifi",
        "combining": False,
        "block_s": 0.002,
        "backoff_s": 1e-4,
        "steepness_per_db": 2.0,
        "overhead": 0.3,
    },
}
PATH_LOSSES = {
    "log-distance": {"kind": "log-distance"},
    "log-distance-steep": {"kind": "log-distance", "exponent": 4.2, "reference_loss_db": 60.0},
    "free-space": {"kind": "free-space"},
    **{f"inf-{hall}": {"kind": "inf", "hall": hall, "clutter_density": 0.3} for hall in ("sl", "dl", "sh", "dh", "hh")},
    "inh-mixed": {"kind": "inh"},
    "inh-open": {"kind": "inh", "office": "open", "carrier_hz": 6e9},
    "rma": {"kind": "rma"},
    "rma-indoor": {"kind": "rma", "indoor_share": 0.5, "building_height_m": 8.0, "street_width_m": 30.0},
    "uma": {"kind": "uma"},
    "uma-indoor": {"kind": "uma", "indoor_share": 0.7, "high_loss_share": 0.5, "client_height_m": 15.0},
    "umi": {"kind": "umi"},
    "umi-indoor": {"kind": "umi", "indoor_share": 0.5, "penetration": "single-frequency"},
}
SHADOWINGS = {
    "independent": {"kind": "independent"},
    "correlated": {"kind": "correlated", "decorrelation_m": 20.0},
    "exact": {"kind": "correlated", "method": "exact", "site_correlation": 0.8},
}
SITE_GRIDS: list[Tables] = [
    {},
    {},
    {"sites": {"inter_site_distance_m": 150.0, "load": 0.4, "uplink_backoff_db": 10.0}},
    {"sites": {"inter_site_distance_m": 120.0, "rings": 0}},
    {"sites": SITES},
]
PLACEMENTS = {
    "disc": {"kind": "disc", "radius_m": 100.0, "min_distance_m": 5.0},
    "annulus": {"kind": "annulus", "inner_m": 50.0, "outer_m": 90.0},
    "hexagons": {"kind": "hexagons", "inter_site_distance_m": 120.0, "rings": 1},
    "file": {"kind": "file", "path": "places.csv"},
    "given": {"kind": "given", "positions_m": [[10.0 + 9.0 * i, 40.0 - 11.0 * i] for i in range(9)]},
}
LAWS = {
    "constant": {"kind": "constant", "value_s": 0.4},
    "empirical": {"kind": "empirical", "values_s": [0.1, 0.2, 0.2, 0.9, 1.4]},
    "log-normal": {"kind": "log-normal", "median_s": 0.4, "sigma": 0.7},
    "normal": {"kind": "normal", "centre_s": 0.5, "std_s": 0.3, "floor_s": 0.1},
    "shifted-exponential": {"kind": "shifted-exponential", "shift_s": 0.1, "scale_s": 0.4},
    "zero": {"kind": "zero"},
}
PRIVACIES = {
    "coordinate": {
        "budget": {"kind": "geometric", "epsilon": 40.0},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
    },
    "coordinate-all": {
        "budget": {"kind": "geometric", "epsilon": 10.0, "eta": 0.3},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.05, "exempt_buffers": False},
    },
    "clipped": {
        "budget": {"kind": "geometric", "epsilon": 100.0, "eta": 0.1},
        "mechanism": {"kind": "laplace-l1", "clip": 5.0},
    },
    "clipped-exempt": {
        "budget": {"kind": "geometric", "epsilon": 500.0, "eta": 1.0},
        "mechanism": {"kind": "laplace-l1", "clip": 1.0, "exempt_buffers": True},
    },
}
FAULTS = {
    "crash": {"client_crash": {"mean_up_s": 4.0, "mean_down_s": 1.0}},
    "outage": {"link_outage": {"mean_up_s": 2.0, "mean_down_s": 0.5}},
    "restart-at": {"server_restart": {"at_s": [0.7, 2.5], "down_s": 0.5}},
    "restart-mean": {"server_restart": {"mean_up_s": 2.0, "down_s": 0.3}},
    "crash-outage": {
        "client_crash": {"mean_up_s": 10.0, "mean_down_s": 5.0},
        "link_outage": {"mean_up_s": 5.0, "mean_down_s": 1.0},
    },
    "everything": {
        "client_crash": {"mean_up_s": 6.0, "mean_down_s": 1.0},
        "link_outage": {"mean_up_s": 3.0, "mean_down_s": 0.4},
        "server_restart": {"mean_up_s": 3.0, "down_s": 0.4},
    },
}
SOME_NETWORKS = ("latency", "cell-equal", "graph", "cell-multicast", "pause-two-speed", "cell-first-come", "wifi")


def rules(scenario: str, policy: str, late: str) -> Tables:
    """Return the policy and the late rule of a scenario, with options that follow from its id."""
    allowed = POLICIES[policy]
    if (policy, late) == ("k-fastest", "partial"):
        allowed = [table for table in allowed if "max_wait_s" in table]
    chosen: Tables = {"policy": pick(scenario, "policy", allowed)}
    if policy not in OWN_LATE_RULE:
        chosen["late"] = pick(scenario, "late", LATE[late])
    return chosen


def some_rules(scenario: str, policies: Sequence[str] = SAFE) -> Tables:
    """Return a policy that ends although clients are lost and a late rule."""
    policy = pick(scenario, "policy", policies)
    late = "cancel" if policy in OWN_LATE_RULE else pick(scenario, "late", ("cancel", "drop", "stale"))
    return {"policy": SAFE_POLICIES[policy], "late": late}


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
            {
                "rounds": rules(scenario, policy, late),
                "network": NETWORKS[network],
                "selector": selector(kind, pick(scenario, "selector", SELECTORS[kind])),
                "learning": {"model_bits": pick(scenario, "bits", (1e5, 3e5))},
            },
        )


def selectors() -> Rows:
    """Yield every set of options of every selector, with comings and goings and a privacy budget."""
    for kind, options in SELECTORS.items():
        for number, network in itertools.product(range(len(options)), ("pause-two-speed", "cell-equal")):
            scenario = f"selector/{kind}-{number}/{network}"
            changes: Tables = {
                "network": NETWORKS[network],
                "selector": selector(kind, options[number]),
                "rounds": {"count": 5, **some_rules(scenario)},
                "crowd": {"clients": 12},
                "devices": {"availability": AVAILABILITIES[pick(scenario, "presence", ("always", "markov"))]},
            }
            if kind.startswith(("pause", "sa-pause", "uniform", "bsfl")):
                changes["privacy"] = PRIVACIES["coordinate"]
            yield described(scenario, changes)
    for kind, option in (("cs-ucb-q", "rates"), ("pause-genie", "expected_reward")):
        chosen = {"kind": kind, "cohort": 3, option: [0.1 * i for i in range(1, 9)]}
        yield described(f"selector/{kind}-{option}", {"crowd": {"clients": 8}, "selector": chosen})


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
                yield described(scenario, {"network": NETWORKS[network], "rounds": {"count": 4, **changes}})


def ends() -> Rows:
    """Yield rounds with too few updates, runs that end early, and runs with and without the audit."""
    for least, policy in itertools.product((1, 2, 3), SAFE_POLICIES):
        scenario = f"minimum-updates/{least}/{policy}"
        at_most = {"fedasync": 1, "fedbuff": 2}.get(policy, least)
        chosen = {"policy": SAFE_POLICIES[policy], "minimum_updates": min(least, at_most)}
        yield described(scenario, {"network": some_network(scenario), "rounds": {"count": 4, **chosen}})
    for until_s, policy in itertools.product((1.0, 4.0), SAFE_POLICIES):
        scenario = f"until/{until_s:g}/{policy}"
        chosen = {"policy": SAFE_POLICIES[policy], "until_s": until_s}
        yield described(scenario, {"network": some_network(scenario), "rounds": {"count": 5, **chosen}})
    for seed, audit in itertools.product((0, 1), (False, True)):
        yield described(f"audit/{audit}/{seed}", {"seed": seed, "network": LATENCY, "results": {"audit": audit}})


WIRE = {"kind": "link", "rate_bps": 1e6, "delay_s": 0.05}
AT_SERVERS = NETWORKS["graph-edge-servers"]
GROUPINGS: dict[str, Any] = {
    "order": {"kind": "order", "count": 3},
    "latency": {"kind": "latency", "count": 3},
    "given": {"kind": "given", "edge": [0, 2, 1, 1, 0, 2, 0, 0, 1, 2]},
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
    "one": (LATENCY, {"kind": "order", "count": 1}, WIRE),
}
MERGINGS: dict[str, Any] = {
    "synchronous": "synchronous",
    "skip": {"kind": "synchronous", "absent": "skip"},
    "asynchronous": {"kind": "asynchronous"},
    "asynchronous-hinge": {"kind": "asynchronous", "mixing": 0.9, "staleness": STALENESS["hinge"]},
    "fedat": "fedat",
}
AT_EDGES = tuple(policy for policy in POLICIES if policy != "safa")


def edges() -> Rows:
    """Yield every grouping, backhaul and cloud rule with all policies in turn."""
    presences = ("always", "always", "markov", "bernoulli")
    for (i, way), (j, merging) in itertools.product(enumerate(WAYS), enumerate(MERGINGS)):
        network, grouping, backhaul = WAYS[way]
        if merging == "fedat" and not way.startswith("latency"):
            continue
        for k in range(4):
            policy = AT_EDGES[(i + j + 2 * k) % len(AT_EDGES)]
            scenario = f"edges/{way}/{merging}/{policy}"
            late = "cancel" if policy in OWN_LATE_RULE else pick(scenario, "late", ("cancel", "drop", "stale"))
            presence = "always" if policy == "wait-for-all" else pick(scenario, "presence", presences)
            kind = pick(scenario, "selector", ("uniform", "pause", "oort", "tifl", "pow-d", "all", "fastest"))
            table = {"grouping": grouping, "merging": MERGINGS[merging], "backhaul": backhaul}
            rounds = {
                "count": pick(scenario, "count", (2, 3)),
                "policy": SAFE_POLICIES.get(policy, "wait-for-all"),
                "late": late,
                "edges": {**table, "rounds": pick(scenario, "rounds", (1, 2, 3))},
            }
            changes = {
                "crowd": {"clients": 10},
                "network": network,
                "devices": {"availability": AVAILABILITIES[presence]},
                "rounds": rounds,
                "selector": selector(kind, {} if kind == "all" else {"cohort": 2}),
            }
            yield described(scenario, changes)


def edges_in_trouble() -> Rows:
    """Yield edge servers with faults, batteries, budgets, too few updates and every selector."""
    ways = ("order-wire", "latency-free", "site-graph-network", "site-cells-wire", "given-graph")

    def changed(scenario: str, way: str, rounds: Tables, **changes: Any) -> tuple[str, Tables]:
        network, grouping, backhaul = WAYS[way]
        merging = pick(scenario, "merging", ("synchronous", "skip", "asynchronous"))
        table = {"grouping": grouping, "merging": MERGINGS[merging], "backhaul": backhaul}
        chosen = {"crowd": {"clients": 10}, "network": network, "rounds": {**rounds, "edges": table}}
        return described(scenario, chosen, {"selector": {"kind": "uniform", "cohort": 2}, **changes})

    for way, fault in itertools.product(ways, FAULTS):
        yield changed(f"edges/{way}/fault-{fault}", way, {"faults": FAULTS[fault]})
    for way, energy in itertools.product(ways, ("battery", "by-operations", "without-charger")):
        yield changed(f"edges/{way}/energy-{energy}", way, {}, devices={"energy": ENERGIES[energy]})
    for way, dropout in itertools.product(ways, ("hazard", "phase-hazard")):
        yield changed(f"edges/{way}/{dropout}", way, {}, devices={"dropout": DROPOUTS[dropout]})
    for way in ways:
        pause = {"kind": "pause", "cohort": 2}
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
        lates = ("cancel",) if policy in OWN_LATE_RULE else ("cancel", "drop", "stale")
        for late in lates:
            scenario = f"fault/{fault}/{policy}/{late}"
            rounds = {"policy": SAFE_POLICIES[policy], "late": late, "faults": FAULTS[fault]}
            kind = pick(scenario, "selector", ("uniform", "pow-d", "tifl", "pause", "round-robin"))
            changes = {"network": some_network(scenario), "rounds": rounds, "selector": selector(kind, {})}
            yield described(scenario, changes)
    for fault in ("restart-at", "restart-mean"):
        for network in ("latency", "cell-equal", "cell-multicast", "graph"):
            rounds = {"policy": "wait-for-all", "faults": FAULTS[fault]}
            yield described(f"fault/{fault}/wait-for-all/{network}", {"network": NETWORKS[network], "rounds": rounds})
    for rule in ("equal", "proportional-fair", "first-come", "minimum-makespan"):
        rounds = {"faults": FAULTS["everything"], "late": "drop", "count": 4}
        yield described(f"fault/everything/cell-{rule}", {"network": NETWORKS[f"cell-{rule}"], "rounds": rounds})


def presence() -> Rows:
    """Yield every availability law with every battery and dropout law."""
    for law, energy, dropout in itertools.product(AVAILABILITIES, ENERGIES, DROPOUTS):
        scenario = f"presence/{law}/{energy}/{dropout}"
        kind = pick(scenario, "selector", ("uniform", "refl", "refl-oracle", "soonest", "oort", "cpow-d"))
        devices = {
            "availability": AVAILABILITIES[law],
            "energy": ENERGIES[energy],
            "dropout": DROPOUTS[dropout],
        }
        changes = {
            "crowd": {"clients": pick(scenario, "clients", (8, 10, 12))},
            "network": some_network(scenario),
            "devices": devices,
            "rounds": some_rules(scenario, SAFE if energy == "none" else SYNCHRONOUS),
            "selector": selector(kind, SELECTORS[kind][0]),
        }
        yield described(scenario, changes)
    for energy, down, up in itertools.product(("battery",), (*SHARING, "multicast"), SHARING):
        chosen = {"network": cell(down, up), "devices": {"energy": ENERGIES[energy]}, "rounds": {"count": 5}}
        yield described(f"energy/{down}/{up}", chosen)


def computing() -> Rows:
    """Yield every law of computing times and every latency law."""
    for law, policy in itertools.product(COMPUTES, ("deadline", "wait-for-all", "fedbuff")):
        scenario = f"compute/{law}/{policy}"
        chosen = {"policy": POLICIES[policy][-1]}
        network = NETWORKS[pick(scenario, "network", ("latency", "cell-equal", "fedscale"))]
        yield described(scenario, {"network": network, "devices": {"compute": COMPUTES[law]}, "rounds": chosen})
    for down, up in itertools.product(LAWS, LAWS):
        scenario = f"latency/{down}/{up}"
        spread = pick(scenario, "spread", (0.0, 0.4))
        network = {"kind": "latency", "downlink": LAWS[down], "uplink": LAWS[up], "spread_sigma": spread}
        yield described(scenario, {"network": network})
    for name, options in {
        "two-speed": {"kind": "pause-two-speed", "fast_to_s": 0.1, "slow_from_s": 1.5, "slow_to_s": 2.0, "std_s": 0.3},
        "fedscale-narrow": {"kind": "fedscale", "sigma": 0.2, "median_kbps": 300.0, "lowest_kbps": 250.0},
        "fedscale-capped": {"kind": "fedscale", "median_kbps": 900.0, "highest_kbps": 1000.0},
        "fedscale-csv": {"kind": "fedscale", "path": "capacities.csv"},
        "fedscale-npz": {"kind": "fedscale", "path": "capacities.npz", "mapping": "sequential"},
    }.items():
        yield described(f"network/{name}", {"network": options})
        yield described(f"network/{name}/everybody", {"network": options, "selector": "all"})
    both = {"network": {"kind": "fedscale", "path": "capacities.csv"}, "devices": {"compute": COMPUTES["fedscale-csv"]}}
    yield described("network/fedscale-csv/fedscale-csv", both)


def radio() -> Rows:
    """Yield every path loss with every fading; rates, shadowing, sites, placements and sharing rules follow."""
    for loss, fading, number in itertools.product(PATH_LOSSES, FADINGS, range(2)):
        scenario = f"radio/{loss}/{fading}/{number}"
        network = {
            "kind": "cell",
            "path_loss": PATH_LOSSES[loss],
            "fading": FADINGS[fading],
            "rate": RATES[pick(scenario, "rate", tuple(RATES))],
            "shadowing": SHADOWINGS[pick(scenario, "shadowing", tuple(SHADOWINGS))],
            "downlink": {"sharing": pick(scenario, "downlink", (*SHARING, "multicast"))},
            "uplink": {"sharing": pick(scenario, "uplink", SHARING), "bandwidth_hz": 3e5},
            **pick(scenario, "sites", SITE_GRIDS),
        }
        place = pick(scenario, "place", tuple(PLACEMENTS))
        if pick(scenario, "sigma", (True, False, False)):
            network["shadowing_sigma_db"] = 4.0
        yield described(scenario, {"crowd": {"clients": 9, "placement": PLACEMENTS[place]}, "network": network})
    for down, up, late in itertools.product((*SHARING, "multicast"), SHARING, ("drop", "stale")):
        changes = {"network": cell(down, up), "selector": "all", "rounds": {"late": late}}
        yield described(f"sharing/{down}/{up}/{late}", changes)
    for kind, (down, up) in itertools.product(
        PRESETS, (("dedicated", "dedicated"), ("equal", "first-come"), ("multicast", "proportional-fair"))
    ):
        placement = PLACEMENTS["hexagons"] if kind in ("urban-macro", "5g-midband") else PLACEMENTS["disc"]
        changes = {"crowd": {"placement": placement}, "network": cell(down, up, kind)}
        yield described(f"preset/{kind}/{down}/{up}", changes, {"rounds": {"policy": {"deadline_s": 4.0}}})
    changed = {"kind": "urban-macro", "path_loss": {"carrier_hz": 0.8e9}, "fading": {"kind": "rician", "k_db": 9.0}}
    yield described("preset/urban-macro/changed", {"network": changed})


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
    """Return the layout of `graph_nodes`, written in the scenario."""
    nodes, links = graph_nodes(clients)
    return {"kind": "given", "nodes": nodes, "edges": links}


LAYOUTS: dict[str, Tables] = {
    "star": {"kind": "star", "backhaul": EDGE},
    "star-radio": {"kind": "star", "backhaul": EDGE, "radio_bps": 8e5},
    "two-tier": TWO_TIER,
    "two-tier-radio": {**TWO_TIER, "cells": 5, "radio_bps": 1e6},
    "given": given(0),
    "json": {"kind": "file", "path": "topology.json"},
    "graphml": {"kind": "file", "path": "topology.graphml"},
}
CLIENT_LAYOUTS: dict[str, Tables] = {
    "mesh": {"kind": "mesh", "range_m": 90.0, "hop": {"capacity_bps": 5e5, "delay_s": 0.01}, "backhaul": EDGE},
    "mesh-radio": {
        "kind": "mesh",
        "range_m": 60.0,
        "hop": {"capacity_bps": 9e5, "delay_s": 0.01},
        "backhaul": EDGE,
        "radio_bps": 7e5,
    },
    "given-clients": given(8),
}
TROUBLES: dict[str, list[Tables]] = {
    "none": [],
    "bursts": [BURSTS],
    "silences": [{"kind": "outage-bursts", "mean_good_s": 2.0, "mean_bad_s": 0.5}],
    "lost-station": [{"kind": "loss", "node": "bs-0", "from_s": 0.5, "duration_s": 1.5}],
    "both": [BURSTS, {"kind": "loss", "node": "bs-0", "from_s": 1.0, "duration_s": 3.0}],
}
MOBILITIES: dict[str, Any] = {
    "none": None,
    "walk": WALK,
    "walk-pauses": {**WALK, "pause_s": 1.0, "fastest_m_per_s": 30.0},
    "points": {
        "kind": "trace",
        "points": [[0, 0.0, -50.0, 0.0], [0, 4.0, 60.0, 0.0], [2, 1.0, 0.0, 40.0], [2, 3.0, 50.0, -40.0]],
    },
    "file": {"kind": "trace", "path": "moves.csv"},
}
ACCESSES: list[Tables] = [
    ACCESS,
    {"kind": "constant", **ACCESS, "exponent": 3.0, "reach_m": 200.0},
    {"kind": "radio", "delay_s": 0.005},
    {"kind": "radio", "delay_s": 0.005, "spectrum": "shared", "step_m": 10.0, "least_snr_db": -3.0},
    *({"kind": "radio", "delay_s": 0.005, "cell": kind, "spectrum": "shared"} for kind in PRESETS),
    {"kind": "radio", "delay_s": 0.01, "cell": {"kind": "cell", "path_loss": PATH_LOSSES["umi"]}},
    {
        "kind": "radio",
        "delay_s": 0.01,
        "cell": {"kind": "cell", "shadowing": SHADOWINGS["correlated"], "sites": {"inter_site_distance_m": 150.0}},
    },
]
HANDOVERS: list[Tables] = [
    {},
    {"handover": {"reselect_after_s": 0.5, "hysteresis_db": 1.0}, "interruption_s": 0.05},
    {"handover": {"time_to_trigger_s": 0.0, "measured_every_s": 0.1, "hysteresis_db": 0.0}, "interruption_s": 0.2},
]


def graphs() -> Rows:
    """Yield every layout with every mobility and trouble; access, handovers and servers follow."""
    for layout, mobility, trouble in itertools.product(LAYOUTS, MOBILITIES, TROUBLES):
        scenario = f"graph/{layout}/{mobility}/{trouble}"
        network = {
            "kind": "graph",
            "topology": LAYOUTS[layout],
            "access": pick(scenario, "access", ACCESSES),
            "trouble": TROUBLES[trouble],
            "server": "cloud" if "star" in layout else pick(scenario, "server", ("cloud", "edge-server")),
            **pick(scenario, "handover", HANDOVERS),
        }
        if MOBILITIES[mobility] is not None:
            network["mobility"] = MOBILITIES[mobility]
        kind = pick(scenario, "selector", ("uniform", "fedcs", "pow-d", "fastest"))
        policy = pick(scenario, "policy", ("deadline", "adaptive-deadline", "quorum", "k-fastest"))
        changes = {
            "network": network,
            "rounds": {"policy": SAFE_POLICIES[policy]},
            "selector": selector(kind, SELECTORS[kind][0]),
        }
        yield described(scenario, changes)
    for policy, trouble, mobility in itertools.product(("fedbuff", "fedasync", "safa"), TROUBLES, ("none", "walk")):
        network = {**GRAPH, "trouble": TROUBLES[trouble], **HANDOVERS[1]}
        if MOBILITIES[mobility] is not None:
            network["mobility"] = MOBILITIES[mobility]
        changes = {"network": network, "rounds": {"policy": SAFE_POLICIES[policy]}}
        yield described(f"graph/{policy}/{mobility}/{trouble}", changes)
    for layout, trouble, late in itertools.product(CLIENT_LAYOUTS, TROUBLES, ("cancel", "stale")):
        network = {"kind": "graph", "topology": CLIENT_LAYOUTS[layout], "trouble": TROUBLES[trouble]}
        changes = {"crowd": {"clients": 8}, "network": network, "rounds": {"late": late, "count": 4}}
        yield described(f"graph/{layout}/{trouble}/{late}", changes)
    for name, trouble in {
        "lost-wire": {"kind": "loss", "edge": ["bs-0", "edge-0"], "from_s": 0.5, "duration_s": 2.0},
        "bursts-of-wires": {**BURSTS, "edges": [["bs-0", "edge-0"], ["edge-1", "cloud"]]},
        "lost-server": {"kind": "loss", "node": "edge-1", "from_s": 0.2, "duration_s": 5.0},
    }.items():
        for server, late in itertools.product(("cloud", "edge-server"), ("cancel", "drop")):
            network = {**GRAPH, "server": server, "trouble": [trouble]}
            yield described(f"graph/two-tier/{name}/{server}/{late}", {"network": network, "rounds": {"late": late}})


def privacy() -> Rows:
    """Yield every mechanism and budget in runs about timing, with those selectors that look at what has leaked."""
    kinds = ("bsfl", "pause", "pause-enumeration", "pause-genie", "pause-vanilla-sa", "sa-pause", "uniform")
    for name, kind in itertools.product(PRIVACIES, kinds):
        scenario = f"privacy/{name}/{kind}"
        changes = {
            "network": some_network(scenario),
            "privacy": PRIVACIES[name],
            "rounds": {"count": 5, **some_rules(scenario)},
            "selector": selector(kind, SELECTORS[kind][0]),
        }
        yield described(scenario, changes)


def remaining() -> Rows:
    """Yield options that no other scenario sets."""
    halls = {"base_height_m": 6.0, "clutter_size_m": 3.0, "clutter_height_m": 4.0}
    for name, options in {
        "log-distance": {"reference_distance_m": 10.0, "reference_loss_db": 60.0},
        "inf": halls,
        "inh": {"base_height_m": 4.0},
        "rma": {"base_height_m": 20.0},
        "uma": {"base_height_m": 40.0},
        "umi": {"base_height_m": 7.0},
    }.items():
        yield described(f"remaining/{name}", {"network": {"kind": "cell", "path_loss": {"kind": name, **options}}})
    for kind, options in {
        "oort": {"exploration_decay": 0.5, "exploration_least": 0.1},
        "oort-fedscale": {"exploration_decay": 0.5, "exploration_least": 0.1},
    }.items():
        yield described(f"remaining/{kind}", {"selector": selector(kind, options), "rounds": {"count": 6}})
    yield described("remaining/two-speed", {"network": {"kind": "pause-two-speed", "fast_from_s": 0.15}})
    nodes, links = graph_nodes(0)
    back = [{**link, "source": link["target"], "target": link["source"], "capacity_bps": 5e5} for link in links]
    layout = {"kind": "given", "directed": True, "nodes": nodes, "edges": links + back}
    yield described("remaining/directed", {"network": {"kind": "graph", "topology": layout, "access": ACCESS}})


PISCES = {"kind": "pisces", "concurrency": 3, "give_up_s": 5.0}
SERVER = {"ingress_bps": 9e5, "background": {"least": 0.1, "most": 0.4, "interval_s": 0.3}}
MEAN = {"fading_in_shares": "mean"}
OTHER_NETWORKS: dict[str, Tables] = {
    kind: {"kind": kind, **NETWORK_OPTIONS.get(kind, {})}
    for kind in ("lora", "rate-traces", "satellite", "wifi-dcf", "latency", "fedscale")
} | {
    "rate-traces-shared": {"kind": "rate-traces", **NETWORK_OPTIONS["rate-traces"], "sharing": "equal"},
    "graph-losses": {
        **NETWORKS["graph-moving"],
        "trouble": [BURSTS, {"kind": "loss", "node": "bs-1", "from_s": 0.5, "duration_s": 1.0}],
    },
    "cell-server": {**cell("dedicated", "dedicated"), "transport": {"kind": "tcp", "rtt_s": 0.03, "server": SERVER}},
    "cell-loss": {**cell("multicast", "equal"), "transport": {"kind": "tcp", "rtt_s": 0.03, "loss": 0.01}},
    "cell-rateless": cell("multicast-rateless", "first-come"),
    "cell-access": {**cell("multicast", "equal"), "access": {"kind": "grant", "inactivity_s": 0.2}},
    **{f"cell-{rule}": cell(rule, rule) for rule in ("max-relative-snr", "rate-fair", "dcf")},
    **{
        f"cell-{rule}-mean": {
            "kind": "cell",
            "downlink": {"sharing": rule, **MEAN},
            "uplink": {"sharing": rule, **MEAN},
        }
        for rule in ("equal", "proportional-fair", "max-relative-snr")
    },
}
OTHER_RULES: dict[str, Tables] = {
    "deadline": {"rounds": {"policy": DEADLINE, "late": "stale"}},
    "pisces": {"rounds": {"policy": PISCES, "count": 8}},
    "pisces-bound": {"rounds": {"policy": {**PISCES, "bound": 1, "max_staleness": 2}, "count": 8}},
    "secure": {"rounds": {"secure_aggregation": {"kind": "bonawitz", "mask_s": 0.05, "server_mask_s": 0.02}}},
    "secure-late": {
        "rounds": {"secure_aggregation": {"kind": "bonawitz", "threshold": 0.5, "wait_s": 0.3}, "count": 4},
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
        "budget": {"kind": kind, "epsilon": 40.0},
        "mechanism": {"kind": "gaussian", "clip": 1.0},
        "composition": {"kind": composition, "delta": 1e-4, "most_epsilon": 60.0},
    }
    for kind in ("geometric", "zeta")
    for composition in ("rdp", "pld")
} | {
    "numbers": {**PRIVACIES["coordinate"], "side_information": {"kind": "laplace", "share": 0.3}},
    "labels": {**PRIVACIES["coordinate"], "label_histograms": {"kind": "laplace", "epsilon": 1.0}},
    "counts": {**PRIVACIES["coordinate"], "label_histograms": {"kind": "laplace-counts", "epsilon": 1.0}},
}


def other_kinds() -> Rows:
    """Yield kinds that no other block has: selectors, networks, sharing rules, policies, secure sums, compositions."""
    for kind in sorted(SELECTOR_OPTIONS.keys() - SELECTORS.keys()):
        for (number, options), network in itertools.product(
            enumerate(SELECTOR_OPTIONS[kind]), ("latency", "cell-equal")
        ):
            scenario = f"other/{kind}-{number}/{network}"
            changes: Tables = {
                "network": NETWORKS[network],
                "selector": selector(kind, options),
                "rounds": {"count": 5, **some_rules(scenario)},
                "crowd": {"clients": 12},
            }
            yield described(scenario, changes)
    for (name, network), (rule, changes) in itertools.product(OTHER_NETWORKS.items(), OTHER_RULES.items()):
        yield described(f"other/{name}/{rule}", {"network": network}, changes)
    sender = {**BATTERY, "receive_w": 0.05, "transmit_power_dbm": 23.0, "circuit_w": 0.1, "capacity_j": 0.3}
    for name in ("cell-dedicated", "cell-access"):
        network = {**cell("dedicated", "dedicated"), **({"access": {"kind": "grant"}} if name == "cell-access" else {})}
        yield described(f"other/{name}/sender", {"network": network, "devices": {"energy": sender}})
    for name, private in OTHER_PRIVACIES.items():
        for kind in ("uniform", "oort", "haccs", "pause"):
            scenario = f"other/privacy-{name}/{kind}"
            yield described(scenario, {"privacy": private, "selector": selector(kind, {}), "rounds": {"count": 6}})


# Learning

MODELS = {
    "softmax": {"kind": "mlp", "hidden": []},
    "mlp-8": {"kind": "mlp", "hidden": [8]},
    "mlp-8-6": {"kind": "mlp", "hidden": [8, 6]},
}
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
    "equal": {"kind": "equal"},
    "dirichlet": {"kind": "dirichlet", "alpha": 0.5, "rounding": "cumulative"},
    "dirichlet-client": {
        "kind": "dirichlet",
        "alpha": 0.3,
        "rounding": "cumulative",
        "per": "client",
        "min_samples": 4,
    },
    "skew": {"kind": "quantity-skew", "concentration": 2.0},
    "skew-even": {"kind": "quantity-skew", "concentration": 5.0, "dominant_share": 0.6, "min_fraction": 0.5},
}


def learned(scenario: str, *changes: Mapping[str, Any]) -> tuple[str, Tables]:
    """Return the id and tables of a scenario in which something is learned."""
    learning = {
        "data": {"kind": "digits", "train_limit": pick(scenario, "samples", (200, 300))},
        "split": SPLITS[pick(scenario, "split", tuple(SPLITS))],
        "model": MODELS[pick(scenario, "model", tuple(MODELS))],
        "local": LOCALS[pick(scenario, "local", tuple(LOCALS))],
    }
    return described(scenario, {"learning": {"kind": "supervised", **learning}}, {"rounds": {"count": 3}}, *changes)


def learning_cross() -> Rows:
    """Yield learning with every selector and every policy with its late rules."""
    for (i, (policy, late)), (j, kind) in itertools.product(enumerate(RULES), enumerate(SELECTORS)):
        if (i + j) % 4:
            continue
        scenario = f"learn/{policy}/{late}/{kind}"
        changes = {
            "network": NETWORKS[pick(scenario, "network", ("latency", "pause-two-speed", "cell-equal", "graph"))],
            "rounds": rules(scenario, policy, late),
            "selector": selector(kind, pick(scenario, "selector", SELECTORS[kind])),
        }
        yield learned(scenario, changes)


def learning_parts() -> Rows:
    """Yield splits, optimisers, models and mechanisms with learning."""
    for split, local in itertools.product(SPLITS, LOCALS):
        changes = {"learning": {"split": SPLITS[split], "local": LOCALS[local]}, "network": LATENCY}
        yield learned(f"learn/split-{split}/{local}", changes)
    for model, name in itertools.product(MODELS, PRIVACIES):
        for kind in ("pause", "divfl", "importance"):
            changes = {"privacy": PRIVACIES[name], "selector": selector(kind, {}), "learning": {"model": MODELS[model]}}
            yield learned(f"learn/privacy-{name}/{model}/{kind}", changes)


def staleness() -> Rows:
    """Yield every law of staleness with every rule that weighs by it, with and without learning."""
    for name, law in STALENESS.items():
        for rule, changes in {
            "stale": {"policy": {"kind": "deadline", "deadline_s": 1.2}, "late": {"kind": "stale", "weight": law}},
            "fedbuff": {"policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 2, "staleness": law}},
            "fedasync": {"policy": {"kind": "fedasync", "concurrency": 4, "staleness": law}},
        }.items():
            tables = {"network": LATENCY, "rounds": {"count": 5, **changes}}
            yield described(f"staleness/{name}/{rule}", tables)
            yield learned(f"learn/staleness-{name}/{rule}", tables)


def learning_places() -> Rows:
    """Yield edge servers, faults and devices with learning."""
    for way, merging in itertools.product(("order-free", "latency-free", "site-graph-network"), MERGINGS):
        network, grouping, backhaul = WAYS[way]
        if merging == "fedat" and way != "latency-free":
            continue
        table = {"grouping": grouping, "merging": MERGINGS[merging], "backhaul": backhaul, "rounds": 2}
        changes = {"crowd": {"clients": 10}, "network": network, "rounds": {"edges": table}}
        for kind in ("all", "divfl", "oort"):
            yield learned(f"learn/edges-{way}/{merging}/{kind}", {**changes, "selector": selector(kind, {})})
    for fault, policy in itertools.product(FAULTS, ("deadline", "fedbuff")):
        rounds = {"faults": FAULTS[fault], "policy": SAFE_POLICIES[policy]}
        yield learned(f"learn/fault-{fault}/{policy}", {"network": LATENCY, "rounds": rounds})
    for law in ("flops", "fedscale", "zero"):
        devices = {"compute": COMPUTES[law], "energy": ENERGIES["by-operations"]}
        yield learned(f"learn/compute-{law}", {"devices": devices})


def learning_ends() -> Rows:
    """Yield ends of runs, sizes set by hand, and data sets of larger images."""
    adam = {"learning": {"local": LOCALS["adam-kept"]}, "network": LATENCY}
    for target in (0.2, 0.5):
        yield learned(f"learn/target-{target:g}", adam, {"rounds": {"count": 5, "target_accuracy": target}})
    for every in (2, 3):
        changes = {"rounds": {"count": 5}, "results": {"evaluate_every": every}}
        yield learned(f"learn/evaluate-every-{every}", adam, changes)
    sizes = {"model_bits": 1e6, "flops_per_sample": 1e5}
    yield learned("learn/sizes", {"learning": sizes, "network": "wifi", "devices": {"compute": COMPUTES["flops"]}})
    sets = (("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST"))
    for (data, folder), model, kind in itertools.product(sets, ("mlp", "cnn3"), ("uniform", "fedsuv")):
        learning = {
            "data": {"kind": "idx-files", "name": folder, "train_limit": 60},
            "model": {"kind": model},
            "split": SPLITS["equal"],
            "local": LOCALS["sgd"],
        }
        changes = {"crowd": {"clients": 5}, "learning": learning, "rounds": {"count": 2}}
        yield learned(f"learn/{data}/{model}/{kind}", changes, {"selector": selector(kind, {})})
    for name in ("coordinate", "coordinate-all", "clipped-exempt"):
        learning = {
            "data": {"kind": "idx-files", "name": "MNIST", "train_limit": 60},
            "model": "cnn3",
            "split": "equal",
        }
        changes = {"crowd": {"clients": 5}, "learning": {**learning, "local": LOCALS["adam"]}, "rounds": {"count": 2}}
        yield learned(f"learn/cnn3/privacy-{name}", changes, {"privacy": PRIVACIES[name]})


BLOCKS: tuple[Callable[[], Rows], ...] = (
    cross,
    selectors,
    policies,
    ends,
    edges,
    edges_in_trouble,
    faults,
    presence,
    computing,
    radio,
    graphs,
    privacy,
    remaining,
    other_kinds,
    learning_cross,
    learning_parts,
    learning_places,
    staleness,
    learning_ends,
)


def scenarios() -> dict[str, Tables]:
    """Return the tables of all scenarios by id, sorted."""
    found: dict[str, Tables] = {}
    for scenario, tables in itertools.chain.from_iterable(block() for block in BLOCKS):
        if scenario in found:
            raise ValueError(f"{scenario} is there twice")
        found[scenario] = tables
    return dict(sorted(found.items()))


# Files that scenarios read


def write_inputs(folder: Path) -> None:
    """Write placements, traces, topologies and small sets of images, under the names that scenarios use."""
    places = [f"{7.0 * i - 40.0},{35.0 - 5.0 * i}" for i in range(12)]
    (folder / "places.csv").write_text("\n".join(["x_m,y_m", *places, ""]))
    device = np.array([0, 0, 1, 2, 2, 3, 4, 5])
    start_s = np.array([0.0, 12.0, 3.0, 0.0, 20.0, 1.0, 0.0, 6.5])
    end_s = np.array([8.0, 25.0, 14.0, 5.5, 29.0, 30.0, 30.0, 18.25])
    rows = [f"d{one},{start},{end}" for one, start, end in zip(device, start_s, end_s, strict=True)]
    (folder / "intervals.csv").write_text("\n".join(["device,start_s,end_s", *rows, ""]))
    columns = {"device": device, "start_s": start_s, "end_s": end_s, "period_s": np.full(device.size, 30.0)}
    pq.write_table(pa.table(columns), folder / "intervals.parquet")
    offset = np.concatenate([[0], np.cumsum(np.bincount(device))])
    np.savez(folder / "intervals.npz", offset=offset, start_s=start_s, end_s=end_s, period_s=np.full(6, 30.0))
    behaviour = {
        one: {
            "active": [float(start) for start in start_s[device == one]],
            "inactive": [float(end) for end in end_s[device == one] if end < 30],
            "finish_time": 30.0,
        }
        for one in range(6)
    }
    (folder / "behaviour.pkl").write_bytes(pickle.dumps(behaviour, protocol=2))
    speed, kbps = [21.0, 29.0, 44.0, 82.0, 149.0, 153.0], [900.0, 450.0, 1500.0, 250.0, 6000.0, 700.0]
    rows = [f"{one},{other}" for one, other in zip(speed, kbps, strict=True)]
    (folder / "capacities.csv").write_text("\n".join(["computation,communication", *rows, ""]))
    np.savez(folder / "capacities.npz", computation=np.array(speed), communication=np.array(kbps))
    capacities = {
        number: {"computation": one, "communication": other}
        for number, (one, other) in enumerate(zip(speed, kbps, strict=True))
    }
    (folder / "capacities.pkl").write_bytes(pickle.dumps(capacities, protocol=2))
    moves = ["0,0.0,-50,0", "0,5.0,50,10", "1,0.5,10,10", "1,2.5,-60,-20", "3,0.0,0,60", "3,8.0,0,-60"]
    (folder / "moves.csv").write_text("\n".join(["client,time_s,x_m,y_m", *moves, ""]))
    _write_topologies(folder)
    for name, seed in (("MNIST", 1), ("FashionMNIST", 2)):
        _write_images(folder / name / "raw", np.random.default_rng(seed))


def _write_topologies(folder: Path) -> None:
    nodes, links = graph_nodes(0)
    (folder / "topology.json").write_text(json.dumps({"directed": False, "nodes": nodes, "edges": links}))
    kinds = {"kind": "string", "x_m": "double", "y_m": "double", "radio_bps": "double"}
    keys = [f'<key id="{name}" for="node" attr.name="{name}" attr.type="{kind}"/>' for name, kind in kinds.items()]
    keys += [
        f'<key id="{name}" for="edge" attr.name="{name}" attr.type="double"/>' for name in ("capacity_bps", "delay_s")
    ]

    def data(row: Tables, left_out: tuple[str, ...]) -> str:
        return "".join(f'<data key="{name}">{value}</data>' for name, value in row.items() if name not in left_out)

    body = [f'<node id="{node["id"]}">{data(node, ("id",))}</node>' for node in nodes]
    ends = ("source", "target")
    body += [f'<edge source="{link["source"]}" target="{link["target"]}">{data(link, ends)}</edge>' for link in links]
    lines = ['<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', *keys, '<graph edgedefault="undirected">']
    (folder / "topology.graphml").write_text("\n".join([*lines, *body, "</graph>", "</graphml>", ""]))


def _write_images(folder: Path, luck: np.random.Generator) -> None:
    """Write random images of 28 x 28 pixels in the files of MNIST."""
    folder.mkdir(parents=True)
    for part, count in (("train", 80), ("t10k", 40)):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = luck.integers(0, 256, (count, 28, 28)) // 2 + 12 * labels[:, None, None]
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(header + images.astype(np.uint8).tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())


# Hashes


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, labels as text."""
    array = pa.chunked_array(column.chunks, column.type).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def exact(array: pa.Array) -> bytes:
    """Return the values of a column, byte by byte; all that are no number are the same."""
    if pa.types.is_floating(array.type):
        values = array.fill_null(0.0).to_numpy(zero_copy_only=False).astype("<f8")
        values[np.isnan(values)] = np.nan
        return bytes(values.tobytes())
    if pa.types.is_integer(array.type):
        return bytes(array.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
    return json.dumps(array.to_pylist()).encode()


def rounded(array: pa.Array) -> bytes:
    """Return the values of a column with 9 significant digits, and none beyond the last decimal place that counts."""
    if pa.types.is_floating(array.type):
        values = (None if value is None else round(value, SMALLEST) + 0.0 for value in array.to_pylist())
        return " ".join("null" if value is None else f"{value:.8e}" for value in values).encode()
    return exact(array)


def table_hash(tables: Sequence[pa.Table], values: Callable[[pa.Array], bytes] = exact) -> str:
    """Return the SHA-256 of tables: names and types of their columns in order, which values there are, and these."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(f"{table.num_rows} rows\n".encode())
        for field in table.schema:
            array = plain(table.column(field.name))
            there = array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8).tobytes()
            for part in (f"{field.name} {field.type}\n".encode(), there, values(array)):
                digest.update(struct.pack("<Q", len(part)) + part)
    return digest.hexdigest()


def run(scenario: str, tables: Tables) -> dict[str, str]:
    """Return the row of a scenario, run in a folder with the files that it reads (`write_inputs`)."""
    from fedsim import Scenario, simulate
    from fedsim.errors import DataError, ScenarioError, SelectorError

    row = dict.fromkeys(COLUMNS, "") | {"scenario": scenario}
    try:
        history = simulate(Scenario(**tables), data_dir=".", executor="sequential", store=False)
    except (ScenarioError, SelectorError, DataError) as error:
        return row | {"outcome": f"refused {type(error).__name__}"}
    found = {name: getattr(history, name) for name in TABLES}
    there = {name: table.select(FROZEN[name].split()) for name, table in found.items() if table is not None}
    views = [view for view in (getattr(history, name)() for name in VIEWS) if view is not None]
    hashes = {name: table_hash([table]) for name, table in there.items()}
    return row | {
        "outcome": RAN,
        **hashes,
        "views": table_hash(views),
        "rounded": table_hash(list(there.values()), rounded),
    }


# Command line


def _prepare(folder: str) -> None:
    """Make a process ready to run scenarios: one thread each, among the files that they read."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)


def _timed(job: tuple[str, Tables]) -> tuple[dict[str, str], float]:
    begun_s = time.perf_counter()
    try:
        row = run(*job)
    except Exception as error:
        raise RuntimeError(f"{job[0]}: {type(error).__name__}: {error}") from error
    return row, time.perf_counter() - begun_s


def run_all(chosen: dict[str, Tables], workers: int) -> list[dict[str, str]]:
    rows, begun_s, slowest = [], time.perf_counter(), (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        with ProcessPoolExecutor(workers, initializer=_prepare, initargs=(folder,)) as pool:
            for row, took_s in pool.map(_timed, chosen.items(), chunksize=4):
                rows.append(row)
                slowest = max(slowest, (took_s, row["scenario"]))
                if len(rows) % 50 == 0 or len(rows) == len(chosen):
                    passed_s = time.perf_counter() - begun_s
                    print(f"{len(rows)} of {len(chosen)} in {passed_s:.0f} s", file=sys.stderr)
    print(f"slowest: {slowest[1]}, {slowest[0]:.1f} s", file=sys.stderr)
    return sorted(rows, key=lambda row: row["scenario"])


def read_hashes() -> dict[str, dict[str, str]]:
    with HASHES.open(newline="") as file:
        return {row["scenario"]: row for row in csv.DictReader(file)}


def write_hashes(rows: list[dict[str, str]], path: Path = HASHES) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def differences(rows: list[dict[str, str]], expected: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return one line for each scenario of which something differs, with the names of the columns."""
    lines = []
    for row in rows:
        scenario, old = row["scenario"], expected.get(row["scenario"])
        if old is None:
            lines.append(f"{scenario}: is not written")
        elif wrong := [name for name in COLUMNS if row[name] != old[name]]:
            lines.append(f"{scenario}: {' '.join(wrong)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("write", "check"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="scenarios whose id contains this")
    parser.add_argument("--every", type=int, default=1, help="every so manieth scenario by id")
    parser.add_argument("--backwards", action="store_true", help="run them in the opposite order")
    options = parser.parse_args()
    everything = scenarios()
    ids = [scenario for scenario in everything if options.only in scenario][:: options.every]
    chosen = {scenario: everything[scenario] for scenario in (ids[::-1] if options.backwards else ids)}
    rows = run_all(chosen, options.workers)
    refused = sum(row["outcome"] != RAN for row in rows)
    print(f"{len(rows)} scenarios, {refused} of them refused", file=sys.stderr)
    expected: dict[str, dict[str, str]] = {}
    if options.verb == "check" or len(chosen) < len(everything):
        with contextlib.suppress(FileNotFoundError):
            expected = read_hashes()
    if options.verb == "write":
        kept = {scenario: row for scenario, row in expected.items() if scenario in everything}
        write_hashes(sorted((kept | {row["scenario"]: row for row in rows}).values(), key=lambda row: row["scenario"]))
        return 0
    lines = differences(rows, expected)
    if not options.only and options.every == 1:
        lines += [f"{scenario}: is written, but no scenario" for scenario in expected if scenario not in everything]
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
