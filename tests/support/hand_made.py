"""Scenarios whose seconds are counted by hand, for testbeds and environments."""

from fedsim import Scenario

BASE = {
    "name": "by-hand",
    "crowd": {"clients": 4},
    "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": 20, "flops_per_sample": 1e6},
    # Client k receives for 1 s, works for 2 s and sends for k + 1 s: it delivers after k + 4 s.
    "network": {
        "kind": "latency",
        "downlink": {"kind": "constant", "value_s": 1.0},
        "uplink": {"kind": "constant", "value_s": 1.0},
        "uplink_factor": [1.0, 2.0, 3.0, 4.0],
    },
    "devices": {"compute": {"kind": "rate", "samples_per_s": 10.0, "spread_sigma": 0.0, "jitter_sigma": 0.0}},
    "rounds": {"count": 3, "policy": "wait-for-all"},
    "selector": {"kind": "uniform", "cohort": 2},
    "results": {"audit": True},
}


def by_hand(**tables):
    return {**BASE, **tables}


def four(**changes):
    """Return a scenario without work, in which client k delivers after k + 2 s."""
    learning = {"kind": "none", "samples_per_client": 10}
    tables = by_hand(name="four", learning=learning, devices={"compute": "zero"}, results={})
    return Scenario.model_validate(tables).replace(changes)
