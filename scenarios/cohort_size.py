"""What does a larger cohort cost? Mean round time over cohort size, with dedicated and with shared uplinks.

    python scenarios/cohort_size.py [--rounds N] [--out FOLDER]

One crowd in one cell, timing only, waiting for all. A client alone meets the same link under each rule of sharing. The
dotted line is the mean time that a cohort's uploads take back to back, each with the whole band. Equal shares end
before it, since every phone puts all its power into its own share.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim import History, Scenario, simulate
from fedsim.history import save
from fedsim.scenario.building import build_context

COHORTS = (1, 2, 5, 10, 20, 50, 100)
RULES = {"dedicated": "o-", "equal": "s--", "first-come": "^-."}  # rule of sharing: how it is drawn
CLIENTS = 1000
RADIUS_M = 500.0
MODEL_BITS = 1e6
UPLINK_HZ = 1.8e6  # 10 LTE resource blocks: each client's own, or the whole cell's
POWER_DBM = 23.0  # within that bandwidth
COHERENCE_S = 0.02
SAMPLES = 100  # per client
SAMPLES_PER_S = 400.0  # of the median device

Runs = dict[str, list[History]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Round time over cohort sizes.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/cohort_size"))
    arguments = parser.parse_args()

    runs = {rule: [simulate(scenario(rule, m, arguments.rounds)) for m in COHORTS] for rule in RULES}
    alone_s = build_context(scenario("dedicated", 1, 1), None, None).clients.links.expected_uplink_s(MODEL_BITS)
    # Uniform selection draws the same cohorts under each rule.
    bound_s = [back_to_back_s(history, alone_s) for history in runs["equal"]]

    print_table(runs, bound_s)
    files = {"round_time.png": round_times(runs, bound_s), "upload_time.png": upload_times(runs)}
    print()
    for name, figure in files.items():
        save(figure, arguments.out / name)
        print(arguments.out / name)


def scenario(rule: str, cohort: int, rounds: int) -> Scenario:
    return Scenario(
        name="cohort-size",
        crowd={"clients": CLIENTS, "placement": {"kind": "disc", "radius_m": RADIUS_M}},
        learning={"kind": "none", "model_bits": MODEL_BITS, "samples_per_client": SAMPLES},
        network={
            "kind": "cell",
            "fading": {"kind": "rayleigh", "coherence_s": COHERENCE_S},
            "uplink": {"sharing": rule, "bandwidth_hz": UPLINK_HZ, "transmit_power_dbm": POWER_DBM},
        },
        devices={"compute": {"kind": "rate", "samples_per_s": SAMPLES_PER_S, "spread_sigma": 0.5, "jitter_sigma": 0.1}},
        rounds={"count": rounds},
        selector={"kind": "uniform", "cohort": cohort},
    )


def mean_round_s(history: History) -> float:
    return float(history.column("rounds", "duration_s").mean())


def mean_upload_s(history: History) -> float:
    """Return the mean time from the end of a client's work to the arrival of its update, waiting included."""
    return float((history.column("participations", "uplink_s") + history.column("participations", "queue_s")).mean())


def back_to_back_s(history: History, alone_s: NDArray[np.float64]) -> float:
    """Return how long a round's uploads take one after another without a gap, on average over the rounds."""
    rounds = history.column("rounds", "round").size
    return float(alone_s[history.column("participations", "client")].sum()) / rounds


def print_table(runs: Runs, bound_s: list[float]) -> None:
    """Print one row for each cohort size: mean rounds, the bound, mean uploads."""
    print(f"{'':>10}{'mean round (s)':>42}{'back to back':>16}{'mean upload (s)':>42}")
    print("".join(f"{title:>{width}}" for title, width in [("cohort", 10), *((rule, 14) for rule in RULES)]), end="")
    print(f"{'(s)':>16}" + "".join(f"{rule:>14}" for rule in RULES))
    for i, cohort in enumerate(COHORTS):
        rounds_s = "".join(f"{mean_round_s(histories[i]):>14.3f}" for histories in runs.values())
        uploads_s = "".join(f"{mean_upload_s(histories[i]):>14.3f}" for histories in runs.values())
        print(f"{cohort:>10}{rounds_s}{bound_s[i]:>16.3f}{uploads_s}")


def round_times(runs: Runs, bound_s: list[float]) -> Figure:
    """Return the mean round time over cohort sizes, a curve for each rule."""
    figure = curves({rule: [mean_round_s(history) for history in histories] for rule, histories in runs.items()})
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    axes.plot(COHORTS, bound_s, ":", color="grey", label="uploads back to back")
    axes.set_ylim(low, high)
    axes.set_ylabel("mean round time (s)")
    axes.legend(title="uplink", frameon=False)
    return figure


def upload_times(runs: Runs) -> Figure:
    """Return the mean time of a client's upload over cohort sizes, a curve for each rule."""
    figure = curves({rule: [mean_upload_s(history) for history in histories] for rule, histories in runs.items()})
    figure.axes[0].set_ylabel("mean time of a client's upload, waiting included (s)")
    figure.axes[0].legend(title="uplink", frameon=False)
    return figure


def curves(values: dict[str, list[float]]) -> Figure:
    """Return a figure with one quantity over cohort sizes for each rule, on logarithmic axes."""
    figure = Figure(figsize=(6.4, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for rule, style in RULES.items():
        axes.plot(COHORTS, values[rule], style, markersize=5, label=rule)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(COHORTS, [str(cohort) for cohort in COHORTS])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("cohort (clients per round)")
    axes.grid(visible=True, alpha=0.3)
    return figure


if __name__ == "__main__":
    main()
