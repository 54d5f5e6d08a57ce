"""What helps against stragglers? Accuracy against seconds under eight rules for closing a round, on one crowd.

    python scenarios/straggler_whatif.py [--seconds S] [--seeds N] [--out FOLDER]

Five clients of fifty compute ten times slower than the others, and each has images of a few digits only, so that a
client that is left out is missed. All rules run for the same simulated time with the same seeds, so that differences
come from the rule alone.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedsim import History, Scenario, simulate
from fedsim.history import save
from fedsim.history.accounting import wasted_shares

TARGETS = (0.8, 0.9)  # test accuracies
SEEDS = (15, 16, 21)  # each client is slow with probability 0.1; with these, five of fifty are
SMOOTHED_S = 2.0  # simulated seconds that means of accuracy reach back, in curves and at the end
COHORT = 10
ENDLESS = 10**6  # rounds; the run ends by time
HERE = Path(__file__).parent
COLOURS = ("#000000", "#56B4E9", "#0072B2", "#004466", "#E69F00", "#CC79A7", "#D55E00", "#009E73")
FATES = {
    "used": "#009E73",
    "stale-used": "#A6D854",
    "wasted-late": "#D55E00",
    "wasted-dropped": "#000000",
    "wasted-unmerged": "#E69F00",
}
CROWD: dict[str, Any] = {
    "name": "stragglers",
    "privacy": "none",
    "crowd.clients": 50,
    "learning.split": {"kind": "dirichlet", "alpha": 0.3, "rounding": "cumulative"},
    "learning.local": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 2, "batch_size": 10},
    "devices.compute": {
        "kind": "flops",
        "flops_per_s": 4e6,
        "spread": {"kind": "stragglers", "share": 0.1, "times_slower": 10.0},
    },
    "selector": {"kind": "uniform", "cohort": COHORT},
    "rounds.count": ENDLESS,
}
RULES: dict[str, dict[str, Any]] = {
    "wait for all": {"rounds.policy": "wait-for-all"},
    "deadline 0.6 s": {"rounds.policy": {"kind": "deadline", "deadline_s": 0.6}},
    "deadline 1 s": {"rounds.policy": {"kind": "deadline", "deadline_s": 1.0}},
    "deadline 2 s": {"rounds.policy": {"kind": "deadline", "deadline_s": 2.0}},
    "10 fastest of 13": {"rounds.policy": {"kind": "k-fastest", "k": COHORT, "over_selection": 1.3}},
    "1 s, stale merged": {"rounds.policy": {"kind": "deadline", "deadline_s": 1.0}, "rounds.late": "stale"},
    "FedBuff": {"rounds.policy": {"kind": "fedbuff", "buffer": 5, "concurrency": COHORT}},
    "FedAsync": {"rounds.policy": {"kind": "fedasync", "concurrency": COHORT}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Rules for closing a round on a crowd with stragglers.")
    parser.add_argument("--seconds", type=float, default=120.0, help="simulated seconds of each run")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), choices=range(1, len(SEEDS) + 1))
    parser.add_argument("--out", type=Path, default=Path("runs/straggler_whatif"))
    arguments = parser.parse_args()

    base = Scenario.load(HERE / "quickstart.toml").replace({**CROWD, "rounds.until_s": arguments.seconds})
    runs = {
        name: [simulate(base.replace({**rule, "seed": seed})) for seed in SEEDS[: arguments.seeds]]
        for name, rule in RULES.items()
    }
    print_table(runs)
    save(accuracy({rule: histories[0] for rule, histories in runs.items()}), arguments.out / "accuracy.png")
    save(waste(runs), arguments.out / "waste.png")
    print(f"\n{arguments.out / 'accuracy.png'}\n{arguments.out / 'waste.png'}")


def window(history: History) -> int:
    """Return how many evaluations after rounds there are in the time that means reach back."""
    lasted_s = float(history.column("rounds", "end_s")[-1])
    evaluations = np.count_nonzero(history.column("evaluations", "round"))
    return max(1, round(SMOOTHED_S * evaluations / lasted_s))


def figures(history: History) -> list[float]:
    smoothing = window(history)
    times_s = [history.time_to_accuracy(target) for target in TARGETS]
    return [
        float(history.column("rounds", "duration_s").mean()),
        float(history.curve(smoothing=smoothing)[1][-1]),
        *(np.inf if time_s is None else time_s for time_s in times_s),
        *wasted_shares(history),
    ]


def print_table(runs: dict[str, list[History]]) -> None:
    header = [
        "mean round s",
        "acc, last 2 s",
        *(f"s to {target:.0%}" for target in TARGETS),
        "time wasted",
        "bits wasted",
    ]
    print(f"{'rule':<20}" + "".join(f"{title:>13}" for title in header))
    for rule, histories in runs.items():
        table = np.array([figures(history) for history in histories])
        mean_round_s, final, *_ = table.mean(axis=0)
        times_s, wasted = np.median(table[:, 2:-2], axis=0), table[:, -2:].mean(axis=0)
        cells = [
            f"{mean_round_s:.3f}",
            f"{final:.1%}",
            *("never" if np.isinf(time_s) else f"{time_s:.1f}" for time_s in times_s),
            *(f"{share:.1%}" for share in wasted),
        ]
        print(f"{rule:<20}" + "".join(f"{cell:>13}" for cell in cells))


def accuracy(runs: dict[str, History]) -> Figure:
    """Return accuracy against seconds, a curve for each rule."""
    figure = Figure(figsize=(8.0, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for (rule, history), colour in zip(runs.items(), COLOURS, strict=True):
        axes.plot(*history.curve(smoothing=window(history)), label=rule, color=colour, linewidth=1.5)
    axes.set_xlabel("simulated time (s)")
    axes.set_ylabel(f"test accuracy, mean over {SMOOTHED_S:g} s")
    axes.set_xlim(left=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    return figure


def waste(runs: dict[str, list[History]]) -> Figure:
    """Return bars of what became of the clients' time under each rule, means over the seeds."""
    figure = Figure(figsize=(8.0, 3.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    left = np.zeros(len(runs))
    for at, (fate, colour) in enumerate(FATES.items()):
        shares = [[history.by_fate()["time_share"][at].as_py() for history in some] for some in runs.values()]
        share = np.mean(shares, axis=1)
        axes.barh(range(len(runs)), share, left=left, color=colour, label=fate)
        left += share
    axes.set_yticks(range(len(runs)), list(runs))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the clients' time")
    figure.legend(frameon=False, loc="outside upper center", ncols=len(FATES), fontsize=8)
    return figure


if __name__ == "__main__":
    main()
