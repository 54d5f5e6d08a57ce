"""Seconds to accuracies of three Flower strategies on one cell.

The app of ``digits_app.py`` runs unchanged on the cell of ``cell.toml``: thirty phones with unlike data, ten a round;
the server waits for 0.8 s at most. Its strategies are Flower's own.

    python scenarios/flower/strategies.py [--rounds N] [--out FOLDER]

takes a minute, prints one row for each strategy and writes ``strategies.png``.
"""

import logging
import sys
from functools import partial
from pathlib import Path

from digits_app import client_app, server_app
from flwr.serverapp.strategy import FedAdam, FedAvg, Krum

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import Column, command, last_accuracy, summary, times_to, written

from fedsim import draw
from fedsim.bridges.flower import SimulatedGrid

COHORT = 10
SHARES = {"fraction_train": COHORT / 30, "fraction_evaluate": 0.0, "min_available_nodes": COHORT}
STRATEGIES = {
    "FedAvg": partial(FedAvg, **SHARES),
    "FedAdam": partial(FedAdam, **SHARES, eta=0.1, tau=1e-2),
    "Krum": partial(Krum, **SHARES, num_malicious_nodes=2),
}
TIMEOUT_S = 0.8
COLUMNS: dict[str, Column] = {
    "mean round s": ("mean_round_s", ".3f"),
    "late": (lambda one: one.column("rounds", "late").sum() / one.column("rounds", "selected").sum(), ".1%"),
    "last accuracy": (partial(last_accuracy, evaluations=5), ".1%"),
    **times_to((0.8, 0.85, 0.9), ".0f"),
}


def main(rounds: int = 60, out: Path = Path("runs/flower")) -> None:
    logging.getLogger("flwr").setLevel(logging.WARNING)
    found = {}
    for name, strategy in STRATEGIES.items():
        grid = SimulatedGrid(Path(__file__).with_name("cell.toml"), client_app, run_config={"lr": 0.05})
        found[name] = [grid.serve(server_app(strategy(), rounds, TIMEOUT_S))]
    summary(found, COLUMNS, "strategy")
    written({"strategies.png": draw([one for (one,) in found.values()], labels=list(found))}, out)


if __name__ == "__main__":
    command(main, __doc__)
