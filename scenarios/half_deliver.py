"""Which selectors find the clients that deliver? A deadline that half of a crowd of FedScale-like phones meets.

    python scenarios/half_deliver.py [--clients N] [--cohort N] [--rounds N] [--seeds N] [--share S] [--selectors NAME]

The clients' data are unlike (Dirichlet) and they work on all of them, so that clients with many samples are slow. The
deadline is the median duration of a participation, measured in a first round of all clients. A client's duration varies
little from round to round: about half of the crowd never delivers, which the server does not know beforehand.
"""

import argparse
import math
import re
from typing import Any

import numpy as np

from fedsim import Scenario, simulate
from fedsim.history import History

TARGET = 0.8
LAST = 3  # evaluations whose mean is the accuracy at the end
SELECTORS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "fedsuv": {},
    "fedsuv, mean": {"undelivered": "mean"},
    "fedsuv, nothing": {"undelivered": "nothing"},
    "fedsuv, no fit": {"fit": "none"},
    "fedsuv, mean, no fit": {"undelivered": "mean", "fit": "none"},
    "fedsuv, GP-BUCB": {"batch": "hallucinated"},
    "oort": {},
    "oort, T of cohorts": {"preferred": "cohorts"},
    "oort, no blacklist": {"blacklist_after": None},
    "rpow-d": {},
    "importance": {},
    "loss-proportional": {},
    "tifl": {},
}


def scenario(name: str, seed: int, arguments: argparse.Namespace, deadline_s: float) -> Scenario:
    """Return one selector's run on the crowd of one seed."""
    return Scenario(
        name="half-deliver",
        seed=seed,
        crowd={"clients": arguments.clients},
        learning={
            "data": {"kind": "digits"},
            "split": {"kind": "dirichlet", "alpha": 0.3, "rounding": "cumulative", "min_samples": 1},
            "model": {"kind": "mlp", "hidden": [32]},
            "local": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 1, "batch_size": 8},
        },
        network={"kind": "fedscale"},
        devices={"compute": {"kind": "fedscale"}},
        rounds={"count": arguments.rounds, "policy": {"kind": "deadline", "deadline_s": deadline_s}},
        selector={"kind": re.split(",", name)[0], "cohort": arguments.cohort, **SELECTORS[name]},
    )


def deadline_of(seed: int, arguments: argparse.Namespace) -> float:
    """Return the duration within which a share of the crowd delivers."""
    everyone = {"selector": {"kind": "all"}, "rounds.count": 1}
    history = simulate(scenario("uniform", seed, arguments, 1e6).replace(everyone))
    took_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    return float(np.quantile(took_s, arguments.share))


def figures_of(history: History, rounds: int) -> list[float]:
    """Return empty rounds in all and in the last two thirds, delivered share, final accuracy, seconds to the target."""
    delivered = history.column("participations", "outcome") == "delivered"
    arrived = np.bincount(history.column("participations", "round")[delivered], minlength=rounds + 1)[1:]
    accuracy = history.column("evaluations", "accuracy")
    reached_s = history.time_to_accuracy(TARGET)
    empty = arrived == 0
    return [
        float(empty.sum()),
        float(empty[rounds // 3 :].sum()),
        float(delivered.mean()),
        float(accuracy[-LAST:].mean()),
        math.nan if reached_s is None else reached_s,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A deadline that half of the crowd meets.")
    parser.add_argument("--clients", type=int, default=150)
    parser.add_argument("--cohort", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--selectors", nargs="+", choices=SELECTORS, default=list(SELECTORS), metavar="NAME")
    arguments = parser.parse_args()

    deadlines_s = [deadline_of(seed, arguments) for seed in range(arguments.seeds)]
    titles = ("empty", "late empty", "delivered", "accuracy", "to 80 % (s)", "reached")
    print(f"{'':>22}" + "".join(f"{title:>14}" for title in titles))
    for name in arguments.selectors:
        found = np.array(
            [
                figures_of(simulate(scenario(name, seed, arguments, deadline_s)), arguments.rounds)
                for seed, deadline_s in enumerate(deadlines_s)
            ]
        )
        reached_s = found[:, 4][np.isfinite(found[:, 4])]
        cells = [*found[:, :4].mean(axis=0), reached_s.mean() if reached_s.size else math.inf]
        row = "".join(f"{cell:>14.3g}" for cell in cells)
        print(f"{name:>22}{row}{f'{reached_s.size} of {len(found)}':>14}", flush=True)


if __name__ == "__main__":
    main()
