"""Simulated seconds and rounds to 80 % with unlike labels: HACCS, FedCor and PyramidFL beside uniform cohorts.

    python tests/benchmarks/label_aware.py [--seeds 4] [--crowd deadline|patient] [--selectors KIND ...]

The crowd ``deadline`` has 60 clients, of which eight are selected a round, rounds of 2 s at most, dropouts, and labels
by a Dirichlet split of 0.3. The crowd ``patient`` has a split of 0.05, smaller steps, five clients a round, no dropouts
and rounds of 8 s at most. Means over seeds.
"""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedsim import Scenario, simulate
from fedsim.history import History

TARGET, SMOOTHING, WARMUP = 0.8, 3, 15
CELL: dict[str, Any] = {
    "kind": "cell",
    "fading": {"kind": "rayleigh", "coherence_s": 0.02},
    "uplink": {"sharing": "equal", "bandwidth_hz": 1e6, "transmit_power_dbm": 23.0, "noise_figure_db": 5.0},
}
COMPUTE = {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.8, "jitter_sigma": 0.2}
COMES_AND_GOES = {
    "availability": {"kind": "markov", "mean_on_s": 60.0, "mean_off_s": 20.0},
    "dropout": {"kind": "hazard", "rate_per_s": 0.03},
}
CROWDS: dict[str, dict[str, Any]] = {
    "deadline": {
        "alpha": 0.3,
        "learning_rate": 0.1,
        "cohort": 8,
        "devices": {"compute": COMPUTE, **COMES_AND_GOES},
        "rounds": {"policy": {"kind": "deadline", "deadline_s": 2.0}, "count": 10_000, "until_s": 100.0},
    },
    "patient": {
        "alpha": 0.05,
        "learning_rate": 0.03,
        "cohort": 5,
        "devices": {"compute": COMPUTE},
        "rounds": {"policy": {"kind": "deadline", "deadline_s": 8.0}, "count": 150},
    },
}
SELECTORS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "oort-fedscale": {},
    "haccs": {},
    "haccs, wide": {"radius": 0.5},
    "fedcor": {},
    "pyramidfl": {},
    "pyramidfl, half": {"beta": 0.5},
}


def scenario(crowd: str, name: str, seed: int) -> Scenario:
    at = CROWDS[crowd]
    return Scenario(
        name="label-aware",
        seed=seed,
        crowd={"clients": 60, "placement": {"kind": "disc", "radius_m": 800.0}},
        learning={
            "data": {"kind": "digits"},
            "split": {"kind": "dirichlet", "alpha": at["alpha"], "rounding": "cumulative", "min_samples": 8},
            "model": {"kind": "mlp", "hidden": [32]},
            "local": {"optimizer": "sgd", "learning_rate": at["learning_rate"], "epochs": 2, "batch_size": 8},
        },
        network=CELL,
        devices=at["devices"],
        rounds=at["rounds"],
        selector={"kind": name.partition(",")[0], "cohort": at["cohort"], **SELECTORS[name]},
    )


def figures(history: History) -> list[float]:
    """Return what one run came to, in the order of the columns."""
    reached_s = history.time_to_accuracy(TARGET)
    time_s, accuracy = history.curve("time", "accuracy", SMOOTHING)
    client = history.column("participations", "client")
    served = np.bincount(client, minlength=60)
    asked_s = 0.0 if history.probes is None else float(history.column("probes", "uplink_s").sum())
    return [
        math.nan if reached_s is None else reached_s,
        math.nan if reached_s is None else float(np.searchsorted(time_s, reached_s)),
        float(accuracy[WARMUP + 1 :].mean()),
        float(accuracy[-1]),
        float(history.column("rounds", "duration_s").mean()),
        float(served.sum() ** 2 / (60 * np.square(served).sum())),
        float(history.column("participations", "compute_s").mean()),
        asked_s / history.rounds.num_rows,
    ]


COLUMNS = ("to 80 % (s)", "rounds", "mean acc", "final acc", "round (s)", "Jain", "work (s)", "answers (s)")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Seconds to 80 % with unlike labels.")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--crowd", choices=CROWDS, default="deadline")
    parser.add_argument("--selectors", nargs="+", choices=SELECTORS, default=list(SELECTORS), metavar="KIND")
    arguments = parser.parse_args(words)
    print(f"{'selector':>18}" + "".join(f"{name:>13}" for name in COLUMNS) + "  reached")
    for name in arguments.selectors:
        runs = [scenario(arguments.crowd, name, seed) for seed in range(arguments.seeds)]
        found = np.array([figures(simulate(run, store=False)) for run in runs])
        reached = int(np.isfinite(found[:, 0]).sum())
        means = np.nanmean(found, axis=0) if reached else found.mean(axis=0)
        print(f"{name:>18}" + "".join(f"{value:>13.3f}" for value in means) + f"  {reached} of {len(runs)}", flush=True)


if __name__ == "__main__":
    main()
