"""Seconds to accuracies of three Flower strategies on one cell.

The app of ``digits_app.py`` runs unchanged on the cell of ``cell.toml``: thirty phones with unlike data, ten a round;
the server waits for 0.8 s at most. Its strategies are Flower's own.

    python scenarios/flower/strategies.py [--rounds N] [--out FOLDER]

prints one row for each strategy and writes ``strategies.png``.
"""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
from digits_app import client_app, server_app
from flwr.serverapp.strategy import FedAdam, FedAvg, Krum, Strategy
from matplotlib.figure import Figure

from fedsim.bridges.flower import SimulatedGrid
from fedsim.history import History, save

COHORT = 10
SHARES = {"fraction_train": COHORT / 30, "fraction_evaluate": 0.0, "min_available_nodes": COHORT}
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "FedAvg": lambda: FedAvg(**SHARES),
    "FedAdam": lambda: FedAdam(**SHARES, eta=0.1, tau=1e-2),
    "Krum": lambda: Krum(**SHARES, num_malicious_nodes=2),
}
TIMEOUT_S = 0.8
TARGETS = (0.8, 0.85, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy against simulated seconds of three Flower strategies.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("runs/flower"))
    arguments = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.WARNING)

    cell = Path(__file__).with_name("cell.toml")
    found = {}
    for name, strategy in STRATEGIES.items():
        grid = SimulatedGrid(cell, client_app, run_config={"lr": 0.05})
        found[name] = grid.serve(server_app(strategy(), arguments.rounds, TIMEOUT_S))
    print_table(found)
    save(figure(found), arguments.out / "strategies.png")
    print(f"\n{arguments.out / 'strategies.png'}")


def print_table(found: dict[str, History]) -> None:
    titles = ["mean round s", "late", "last accuracy", *(f"s to {target:.0%}" for target in TARGETS)]
    print(f"{'strategy':>10}" + "".join(f"{title:>15}" for title in titles))
    for name, history in found.items():
        rounds_s, late = (history.column("rounds", column) for column in ("duration_s", "late"))
        last = history.column("evaluations", "accuracy")[-5:].mean()
        share = late.sum() / history.column("rounds", "selected").sum()
        cells = f"{rounds_s.mean():>15.3f}{share:>15.1%}{last:>15.1%}"
        for target in TARGETS:
            reached_s = history.time_to_accuracy(target)
            cells += f"{'never' if reached_s is None or not np.isfinite(reached_s) else f'{reached_s:.0f}':>15}"
        print(f"{name:>10}{cells}")


def figure(found: dict[str, History]) -> Figure:
    drawn = Figure(figsize=(6.0, 3.8), dpi=150, layout="constrained")
    axes = drawn.subplots()
    for name, history in found.items():
        times_s, accuracy = (history.column("evaluations", column) for column in ("time_s", "accuracy"))
        axes.plot(times_s, accuracy, label=name, linewidth=1.2)
    axes.set_xlabel("simulated time (s)")
    axes.set_ylabel("test accuracy")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    return drawn


if __name__ == "__main__":
    main()
