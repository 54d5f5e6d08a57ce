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
# What a selector needs beside a cohort in a run of rounds of about a second.
SELECTOR_RUN_OPTIONS = {
    "fedsampling": {"samples": 400, "alpha": 0.9, "threshold": 100},
    "fixed-ratio": {"ratio": 0.3},
    "fedcs": {"deadline_s": 2.0, "share": 0.5, "wait_s": 0.5},
    "cpow-d": {"samples": 10, "wait_s": 0.5},
    "poisson": {"rate": 0.3},
}
