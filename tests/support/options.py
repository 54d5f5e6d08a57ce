"""Options that a kind of the catalogues needs, or that show more of it, in tests over whole catalogues."""

from pathlib import Path

DRIVE = {
    "path": str(Path(__file__).parents[2] / "scenarios" / "traces" / "four_places.csv"),
    "time": "time_s",
    "rate": "uplink_mbps",
    "unit": "Mbit/s",
    "trace": "trace",
}
LAW = {"kind": "log-normal", "median_s": 1.0, "sigma": 0.5}
NETWORK_OPTIONS = {
    "latency": {"downlink": LAW, "uplink": LAW},
    # Without waits and on many wide channels, for models of some hundred kilobits.
    "lora": {"uplink_duty_cycle": 1.0, "downlink_duty_cycle": 1.0, "bandwidth_hz": 5e6, "channels": 64},
    # As many as keep one in sight, for runs of seconds.
    "satellite": {"passes": {"kind": "constellation", "satellites": 200}},
    "rate-traces": {"downlink": {**DRIVE, "rate": "downlink_mbps"}, "uplink": DRIVE, "delay_s": 0.03},
    "graph": {
        "topology": {
            "kind": "two-tier",
            "cells": 3,
            "site_distance_m": 50.0,
            "fronthaul": {"capacity_bps": 1e7, "delay_s": 0.001},
            "backhaul": {"capacity_bps": 1e6, "delay_s": 0.02},
        },
        "access": {"downlink_bps": 1e6, "uplink_bps": 1e5, "delay_s": 0.005},
        "trouble": [{"kind": "outage-bursts", "mean_good_s": 5.0, "mean_bad_s": 1.0, "bad_factor": 0.1}],
    },
}
# Of selectors that the frozen scenarios have no options of their own for; every set is checked on its own.
SELECTOR_OPTIONS = {
    "all-compute": [
        {"cohort": 5},
        {"cohort": 3, "rule": "approximate", "iterations": 2},
        {"cohort": 3, "rule": "greatest"},
    ],
    "fedzero": [{"cohort": 5}, {"cohort": 3, "step_s": 0.1, "longest_s": 100.0, "reserve": 0.5, "alpha": 0.0}],
    "pisces": [{"cohort": 5}, {"cohort": 3, "beta": 2.0, "window": 1, "exploration": 0.1, "samples_per_round": 10}],
    "aocs": [{"cohort": 5}, {"cohort": 4, "iterations": 0, "floor": 0.0}],
    "adapow-d": [{"cohort": 5}, {"cohort": 3, "first": 12, "until": 10, "decay": "geometric"}],
    "active": [{"cohort": 5}, {"cohort": 3, "alpha1": 1.0, "alpha2": 1.0, "alpha3": 0.5}],
    "e3cs": [{"cohort": 5}, {"cohort": 3, "quota": 0.0, "quota_from": 8, "draw": "exact"}],
    "eafl": [{"cohort": 5}, {"cohort": 4, "utility_share": 1.0, "window": 2, "pacer_step_s": 0.2}],
    "ocean": [
        {"cohort": 5},
        {"cohort": 3, "pattern": "ascending", "frame": 5, "budget_j": 0.0001, "upload_s": 0.1, "least_hz": 10.0},
    ],
    "bn2-c": [{"cohort": 5}, {"cohort": 3, "bandwidth_hz": 1000.0, "upload_s": 0.1}],
    "bc-bn2": [{"cohort": 5}, {"cohort": 3, "channels": 4, "state": "mean"}],
    "bn2": [{"cohort": 5}],
    "age-based": [{"cohort": 5}, {"cohort": 3, "alpha": 2.0, "upload_s": 0.01, "state": "mean"}],
    "proportional-fair": [{"cohort": 5}],
    "best-channel": [{"cohort": 5}, {"cohort": 3, "state": "mean"}],
    "fedcor": [
        {"cohort": 5, "warmup": 3, "interval": 3},
        {"cohort": 3, "warmup": 2, "interval": 4, "mean": "zero", "dimension": 2, "weights": "equal", "beta": 0.5},
    ],
    "fedsampling": [
        {"samples": 50},
        {"samples": 20, "alpha": 0.5, "clip": False, "query": "once", "cohort": 4, "wait_s": 0.5},
        {"samples": 1000, "epsilon": 0.5, "threshold": 20, "anonymous": True},
    ],
    "fixed-ratio": [{"ratio": 0.1}, {"ratio": 1.0}],
    "haccs": [
        {"cohort": 5},
        {"cohort": 3, "draw": "quasi-random", "losses": "squares", "distance": "euclidean", "radius": 0.6},
    ],
    "pyramidfl": [
        {"cohort": 5},
        {"cohort": 3, "beta": 0.5, "steps": 4, "until": "deadline", "most_more": 2.0, "silent": "zero"},
    ],
    "joint-bandwidth": [{"cohort": 5}, {"cohort": 3, "bandwidth_hz": 1e5, "search": "exact"}],
    "poisson": [{"rate": 0.3}, {"rate": 1.0}, {"rate": 1e-9}],
}
# What a selector needs beside a cohort in a run of rounds of about a second.
SELECTOR_RUN_OPTIONS = {
    "fedsampling": {"samples": 400, "alpha": 0.9, "threshold": 100},
    "fixed-ratio": {"ratio": 0.3},
    "fedcs": {"deadline_s": 2.0, "share": 0.5, "wait_s": 0.5},
    "cpow-d": {"samples": 10, "wait_s": 0.5},
    "poisson": {"rate": 0.3},
}
