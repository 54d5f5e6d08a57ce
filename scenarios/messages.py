"""What do smaller updates buy? Accuracy against seconds, and against bits sent up, for six ways to send an update.

    python scenarios/messages.py [--rounds N] [--seeds N] [--out FOLDER]

Models are sent down whole. Updates are sent up as they are, with 8 bits for each number (QSGD, 127 levels), with 2 bits
(1 level), with 1 % of the numbers (top-k) with and without error feedback, and with a random 1 % with error feedback.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim import Scenario, simulate
from fedsim.history import History, save

WAYS: dict[str, dict[str, Any]] = {
    "32 bits": {"kind": "none"},
    "8 bits": {"kind": "qsgd", "levels": 127},
    "2 bits": {"kind": "qsgd", "levels": 1, "bucket": 64},
    "top 1 %": {"kind": "top-k", "share": 0.01},
    "top 1 %, no feedback": {"kind": "top-k", "share": 0.01, "error_feedback": False},
    "random 1 %": {"kind": "random-k", "share": 0.01},
}
CLIENTS, COHORT = 40, 10
MEDIAN_KBPS = 100.0
TARGETS = (0.8, 0.9, 0.95)


class Curve(NamedTuple):
    time_s: NDArray[np.float64]
    sent_bits: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    update_bits: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy against seconds and bits, by the compression of updates.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/messages"))
    arguments = parser.parse_args()

    found = {
        way: [
            curve(simulate(scenario(way, seed, arguments.rounds), executor="stacked"))
            for seed in range(arguments.seeds)
        ]
        for way in WAYS
    }
    print_table(found)
    save(figure(found), arguments.out / "messages.png")
    print(f"\n{arguments.out / 'messages.png'}")


def scenario(way: str, seed: int, rounds: int) -> Scenario:
    return Scenario(
        name="messages",
        seed=seed,
        crowd={"clients": CLIENTS},
        learning={
            "data": "digits",
            "split": {"kind": "dirichlet", "alpha": 0.5, "rounding": "cumulative"},
            "model": {"kind": "mlp", "hidden": [64, 32]},
            "local": {"learning_rate": 0.05, "epochs": 2, "batch_size": 10},
            "compression": WAYS[way],
        },
        network={"kind": "fedscale", "median_kbps": MEDIAN_KBPS},
        devices={"compute": {"kind": "rate", "samples_per_s": 300.0, "spread_sigma": 0.3}},
        rounds={"count": rounds},
        selector={"kind": "uniform", "cohort": COHORT},
    )


def curve(history: History) -> Curve:
    up_bits = history.column("participations", "uplink_bits")
    by_round = np.bincount(history.column("participations", "round"), up_bits)
    sent_bits = np.cumsum(by_round)[history.column("evaluations", "round")]
    time_s, accuracy = (history.column("evaluations", name) for name in ("time_s", "accuracy"))
    return Curve(time_s, sent_bits, accuracy, float(up_bits.max()))


def reached(of: NDArray[np.float64], accuracy: NDArray[np.float64], target: float) -> float:
    """Return the first value at which an accuracy is reached; `inf` for never."""
    first = np.flatnonzero(accuracy >= target)
    return float(of[first[0]]) if first.size else np.inf


def print_table(found: dict[str, list[Curve]]) -> None:
    titles = ("bits of an update", "mean round s", "accuracy")
    to = [f"{what} to {target:.0%}" for what in ("s", "Mbit") for target in TARGETS]
    print(f"{'updates':>22}" + "".join(f"{title:>18}" for title in titles) + "".join(f"{title:>13}" for title in to))
    for way, curves in found.items():
        rounds_s = np.median([one.time_s[-1] / (one.time_s.size - 1) for one in curves])
        final = np.median([one.accuracy[-10:].mean() for one in curves])
        cells = f"{curves[0].update_bits:>18,.0f}{rounds_s:>18.2f}{final:>18.1%}"
        for column, scale in (("time_s", 1.0), ("sent_bits", 1e-6)):
            for target in TARGETS:
                at = np.median([reached(getattr(one, column), one.accuracy, target) for one in curves]) * scale
                cells += f"{told(float(at)):>13}"
        print(f"{way:>22}{cells}")


def told(value: float) -> str:
    """Return a value in three digits, and "never" for one that is infinite."""
    return f"{value:.3g}" if np.isfinite(value) else "never"


def figure(found: dict[str, list[Curve]]) -> Figure:
    """Return accuracy against seconds and against bits, of the first seed."""
    drawn = Figure(figsize=(9.0, 3.8), dpi=150, layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    for way, curves in found.items():
        one = curves[0]
        left.plot(one.time_s, one.accuracy, label=way, linewidth=1.2)
        right.plot(one.sent_bits / 1e6, one.accuracy, linewidth=1.2)
    left.set_xlabel("simulated time (s)")
    right.set_xlabel("sent up by all clients (Mbit)")
    left.set_ylabel("test accuracy")
    left.yaxis.set_major_formatter("{x:.0%}")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(visible=True, alpha=0.3)
    drawn.legend(loc="outside upper center", ncols=len(WAYS), frameon=False, fontsize=8)
    return drawn


if __name__ == "__main__":
    main()
