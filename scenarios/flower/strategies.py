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

from digits_app import client_app, server_app
from flwr.serverapp.strategy import FedAdam, FedAvg, Krum, Strategy

from fedsim import History, draw
from fedsim.bridges.flower import SimulatedGrid

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
    draw(list(found.values()), labels=list(found), out=arguments.out / "strategies.png")
    print(f"\n{arguments.out / 'strategies.png'}")


def print_table(found: dict[str, History]) -> None:
    titles = ["mean round s", "late", "last accuracy", *(f"s to {target:.0%}" for target in TARGETS)]
    print(f"{'strategy':>10}" + "".join(f"{title:>15}" for title in titles))
    for name, history in found.items():
        rounds_s, late = (history.column("rounds", column) for column in ("duration_s", "late"))
        share = late.sum() / history.column("rounds", "selected").sum()
        last = history.column("evaluations", "accuracy")[-5:].mean()
        times_s = [history.time_to_accuracy(target) for target in TARGETS]
        cells = [f"{rounds_s.mean():.3f}", f"{share:.1%}", f"{last:.1%}"]
        cells += ["never" if at_s is None else f"{at_s:.0f}" for at_s in times_s]
        print(f"{name:>10}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
