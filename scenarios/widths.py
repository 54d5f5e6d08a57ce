"""What do narrower models buy under a deadline that half of the crowd meets? Plain training, HeteroFL and FedRolex.

    python scenarios/widths.py [--rounds N] [--seeds N] [--alpha A] [--out FOLDER]

The deadline is the median over the clients of the mean duration of a participation with the whole model. A slow client
is late in every round with plain training, and trains the largest width that fits with HeteroFL and FedRolex. A last
row gives plain training four times the deadline.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim import Scenario, simulate
from fedsim.history import History, save
from fedsim.simulation import Simulation

WAYS: dict[str, tuple[str, float]] = {
    "plain": ("plain", 1.0),
    "heterofl": ("heterofl", 1.0),
    "fedrolex": ("fedrolex", 1.0),
    "plain, four times the deadline": ("plain", 4.0),
}
CLIENTS, COHORT = 40, 10
TARGETS = (0.7, 0.8, 0.9)


class Curve(NamedTuple):
    time_s: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    delivered: float
    heard: float
    mean_bits: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy against seconds under a deadline, by the width of models.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=0.1, help="of the Dirichlet split of labels")
    parser.add_argument("--out", type=Path, default=Path("runs/widths"))
    arguments = parser.parse_args()

    found: dict[str, list[Curve]] = {way: [] for way in WAYS}
    for seed in range(arguments.seeds):
        deadline_s = median_s(scenario("plain", seed, 1, {"policy": "wait-for-all"}, arguments.alpha))
        for way, (algorithm, times) in WAYS.items():
            policy = {"policy": {"kind": "deadline", "deadline_s": times * deadline_s}}
            run = simulate(scenario(algorithm, seed, arguments.rounds, policy, arguments.alpha), executor="stacked")
            found[way].append(curve(run))
    print_table(found)
    save(figure(found), arguments.out / "widths.png")
    print(f"\n{arguments.out / 'widths.png'}")


def scenario(algorithm: str, seed: int, rounds: int, policy: dict[str, Any], alpha: float) -> Scenario:
    return Scenario(
        name="widths",
        seed=seed,
        crowd={"clients": CLIENTS},
        learning={
            "data": "digits",
            "split": {"kind": "dirichlet", "alpha": alpha, "rounding": "cumulative", "min_samples": 4},
            "model": {"kind": "mlp", "hidden": [128, 64]},
            "local": {"learning_rate": 0.05, "epochs": 2, "batch_size": 10},
            "algorithm": algorithm,
        },
        network={"kind": "fedscale", "median_kbps": 400.0},
        devices={"compute": {"kind": "rate", "samples_per_s": 60.0, "spread_sigma": 1.0}},
        rounds={"count": rounds, **policy},
        selector={"kind": "uniform", "cohort": COHORT},
    )


def median_s(of: Scenario) -> float:
    """Return the median over the clients of the mean duration of a participation with the whole model."""
    return float(np.median(Simulation(of, store=False).context.clients.expected_s.sum(axis=0)))


def curve(history: History) -> Curve:
    rows = history.participations
    arrived = np.array(rows.column("outcome").to_pylist()) == "delivered"
    client, bits = (history.column("participations", name) for name in ("client", "uplink_bits"))
    return Curve(
        history.column("evaluations", "time_s"),
        history.column("evaluations", "accuracy"),
        float(arrived.mean()),
        np.unique(client[arrived]).size / CLIENTS,
        float(bits[arrived].mean()) if arrived.any() else 0.0,
    )


def reached_s(one: Curve, target: float) -> float:
    """Return the first second at which an accuracy is reached; `inf` for never."""
    first = np.flatnonzero(one.accuracy >= target)
    return float(one.time_s[first[0]]) if first.size else np.inf


def print_table(found: dict[str, list[Curve]]) -> None:
    titles = ("delivered", "clients heard", "mean bits", "accuracy", *(f"s to {target:.0%}" for target in TARGETS))
    print(f"{'way':>32}" + "".join(f"{title:>15}" for title in titles))
    for way, curves in found.items():
        shares = [np.median([getattr(one, name) for one in curves]) for name in ("delivered", "heard")]
        final = np.median([one.accuracy[-10:].mean() for one in curves])
        cells = "".join(f"{share:>15.0%}" for share in shares)
        cells += f"{np.median([one.mean_bits for one in curves]):>15,.0f}{final:>15.1%}"
        for target in TARGETS:
            at_s = float(np.median([reached_s(one, target) for one in curves]))
            cells += f"{f'{at_s:.3g}' if np.isfinite(at_s) else 'never':>15}"
        print(f"{way:>32}{cells}")


def figure(found: dict[str, list[Curve]]) -> Figure:
    """Return accuracy against seconds, of the first seed."""
    drawn = Figure(figsize=(6.0, 3.8), dpi=150, layout="constrained")
    axes = drawn.subplots()
    for way, curves in found.items():
        axes.plot(curves[0].time_s, curves[0].accuracy, label=way, linewidth=1.2)
    axes.set_xlabel("simulated time (s)")
    axes.set_ylabel("test accuracy")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return drawn


if __name__ == "__main__":
    main()
