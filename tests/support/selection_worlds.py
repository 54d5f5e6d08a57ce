"""Scenarios for environments of selection, with every time written down."""

from fedsim import Scenario

# Client k takes 2 + k seconds: 1 s down, no work, 1 + k seconds up.
FOUR = {
    "name": "four",
    "crowd": {"clients": 4},
    "learning": {"kind": "none", "samples_per_client": 10},
    "network": {
        "kind": "latency",
        "downlink": {"kind": "constant", "value_s": 1.0},
        "uplink": {"kind": "constant", "value_s": 1.0},
        "uplink_factor": [1.0, 2.0, 3.0, 4.0],
    },
    "devices": {"compute": "zero"},
    "rounds": {"count": 3, "policy": "wait-for-all"},
    "selector": {"kind": "uniform", "cohort": 2},
}


def four(**changes):
    return Scenario.model_validate(FOUR).replace(changes)
