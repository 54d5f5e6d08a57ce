"""The crowds of the three tables: one with privacy, the same one without, and FedScale's phones under a deadline."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from fedsim import Scenario, simulate

BAND_HZ: Final = 1e6
SHARE_IN_TIME: Final = 0.5
LEARNING: Final[dict[str, Any]] = {
    "data": {"kind": "digits"},
    "split": {"kind": "dirichlet", "alpha": 0.3, "rounding": "cumulative", "min_samples": 8},
    "model": {"kind": "mlp", "hidden": [32]},
    "local": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 2, "batch_size": 8},
}
PRIVACY: Final[dict[str, Any]] = {
    "budget": {"kind": "geometric", "epsilon": 200.0, "eta": 0.02},
    "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.02},
}
CELL: Final[dict[str, Any]] = {
    "kind": "cell",
    "fading": {"kind": "rayleigh", "coherence_s": 0.02},
    "uplink": {"sharing": "equal", "bandwidth_hz": BAND_HZ, "transmit_power_dbm": 23.0, "noise_figure_db": 5.0},
}
DEVICES: Final[dict[str, Any]] = {
    "compute": {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.8, "jitter_sigma": 0.2},
    "availability": {"kind": "markov", "mean_on_s": 60.0, "mean_off_s": 20.0},
    "dropout": {"kind": "hazard", "rate_per_s": 0.03},
}


@dataclass(frozen=True)
class Crowd:
    """The clients of one table, with what they learn."""

    title: str
    about: str
    clients: int
    cohort: int
    seconds: float
    deadline_s: Callable[[int], float]
    tables: dict[str, Any]
    private: bool = False

    def scenario(self, seed: int, seconds: float, selector: dict[str, Any], changes: dict[str, Any]) -> Scenario:
        policy = {"kind": "deadline", "deadline_s": self.deadline_s(seed)}
        scenario = Scenario(
            name="compare",
            seed=seed,
            rounds={"policy": policy, "count": 100_000, "until_s": seconds},
            selector=selector,
            results={"noise_to_signal": self.private},
            **self.tables,
        )
        return scenario.replace(changes) if changes else scenario


def two_seconds(_: int) -> float:
    return 2.0


@cache
def met_by_half(seed: int) -> float:
    """Return the deadline that half of the phones meet: the median duration in a first round of all clients."""
    everyone = Scenario(
        name="durations",
        seed=seed,
        rounds={"count": 1, "policy": "wait-for-all"},
        selector="all",
        results={"evaluate_every": 2},
        **PHONES,
    )
    history = simulate(everyone, store=False)
    took_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    return float(np.quantile(took_s, SHARE_IN_TIME))


_CLIENTS: Final = 60
IN_A_CELL: Final[dict[str, Any]] = {
    "crowd": {"clients": _CLIENTS, "placement": {"kind": "disc", "radius_m": 800.0}},
    "learning": LEARNING,
    "network": CELL,
    "devices": DEVICES,
}
_PHONES: Final = 150
PHONES: Final[dict[str, Any]] = {
    "crowd": {"clients": _PHONES},
    "learning": {
        **LEARNING,
        "split": {**LEARNING["split"], "min_samples": 1},
        "local": {**LEARNING["local"], "epochs": 1},
    },
    "network": {"kind": "fedscale"},
    "devices": {"compute": {"kind": "fedscale"}},
}
_WHERE: Final = "60 clients in a cell that share an uplink, come, go and drop out; a deadline of 2 s"
CROWDS: Final = {
    "privacy": Crowd(
        "With privacy",
        f"{_WHERE}; updates and numbers beside them are private",
        _CLIENTS,
        8,
        100.0,
        two_seconds,
        {**IN_A_CELL, "privacy": PRIVACY},
        private=True,
    ),
    "open": Crowd("Without privacy", f"{_WHERE}; no privacy", _CLIENTS, 8, 60.0, two_seconds, IN_A_CELL),
    "deadline": Crowd(
        "A deadline that half meet",
        "150 phones with FedScale's compute times and links, and a deadline that half of them meet; no privacy",
        _PHONES,
        10,
        200.0,
        met_by_half,
        PHONES,
    ),
}
"""Crowds by the name of their table."""
