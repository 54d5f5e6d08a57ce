"""The names by which Gymnasium makes these environments."""

from typing import Any, Final

import gymnasium

SELECTION: Final = "fedsim/Selection-v0"
"""Any scenario: ``gymnasium.make(SELECTION, scenario=...)``, with the options of `SelectionEnv`."""
STRAGGLERS: Final = "fedsim/Stragglers-v0"
"""A crowd of 40 phones in a cell of which a fifth is slow, five a round, 30 rounds, about timing only."""

CROWD_WITH_STRAGGLERS: Final[dict[str, Any]] = {
    "name": "stragglers",
    "crowd": {"clients": 40, "placement": {"kind": "disc", "radius_m": 400.0}},
    "learning": {"kind": "none", "model_bits": 5e5, "samples_per_client": 100},
    "network": {"kind": "cell"},
    "devices": {
        "compute": {
            "kind": "rate",
            "samples_per_s": {"kind": "choice", "of": [200.0, 20.0], "weights": [0.8, 0.2]},
            "jitter_sigma": 0.2,
        }
    },
    "rounds": {"count": 30, "policy": "wait-for-all"},
    "selector": {"kind": "uniform", "cohort": 5},
}


def register() -> None:
    """Tell Gymnasium the names; those that it knows already stay."""
    entry = "fedsim.bridges.gymnasium.environment:SelectionEnv"
    for name, options in ((SELECTION, {}), (STRAGGLERS, {"scenario": CROWD_WITH_STRAGGLERS})):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry, kwargs=options)
