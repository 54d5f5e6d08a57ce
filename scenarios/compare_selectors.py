"""Who reaches 80 % first, on whose shoulders? Every selector on one heterogeneous crowd, ten seeds, common luck.

Sixty clients with unlike data (Dirichlet), devices (log-normal speeds), places in a cell (path loss, shadowing, fading)
and habits (they come, go and drop out) learn handwritten digits over an uplink that they share; a round lasts 2 s at
most. SAFA selects after training, which is a policy's business: everybody works, and its policy says who counts; so it
is with the reduced form that REFL's code compares itself with. For one seed every selector meets the same clients in
the same places under the same sky with the same luck, so that differences between the rows are the selectors' own.
Selectors that ask clients first pay for it on the air. ``joint-bandwidth``, ``ocean`` and ``age-based`` divide the same
band themselves, into links of one client each.

    python scenarios/compare_selectors.py [--seeds N] [--seconds S] [--selectors NAME ...] [--out FOLDER]

prints a table (means over seeds; times to 80 % over the seeds that reached it) and writes ``accuracy.png``
and ``trade_offs.png``.
"""

import argparse
import math
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fedsim import Scenario, simulate
from fedsim.history import History, save

COHORT = 8
CLIENTS = 60
TARGET = 0.8
SMOOTHING = 3
DEADLINE_S = 2.0
BAND_HZ = 1e6
TIMES = {"tau_min_s": 0.3}
SELECTORS: dict[str, dict[str, Any]] = {
    "all": {},
    "all, by SAFA": {},
    "all, by REFL's SAFA": {},
    "uniform": {"cohort": COHORT},
    "weighted": {"cohort": COHORT},
    "md": {"cohort": COHORT},
    "round-robin": {"cohort": COHORT},
    "clustered-size": {"cohort": COHORT},
    "clustered-similarity": {"cohort": COHORT},
    "importance": {"cohort": COHORT},
    "loss-proportional": {"cohort": COHORT},
    "pow-d": {"cohort": COHORT},
    "cpow-d": {"cohort": COHORT, "samples": 8},
    "rpow-d": {"cohort": COHORT},
    "divfl": {"cohort": COHORT},
    "fedcs": {"deadline_s": DEADLINE_S, "share": 0.25},
    "joint-bandwidth": {"cohort": COHORT, "bandwidth_hz": BAND_HZ, "snr_gap_db": 3.0},
    "tifl": {"cohort": COHORT},
    "fedzero": {"cohort": COHORT},
    "pisces": {"cohort": COHORT},
    "aocs": {"cohort": COHORT},
    "adapow-d": {"cohort": COHORT},
    "active": {"cohort": COHORT},
    "e3cs": {"cohort": COHORT},
    "eafl": {"cohort": COHORT},
    "ocean": {"cohort": COHORT, "bandwidth_hz": BAND_HZ, "least_hz": 1e4, "snr_gap_db": 3.0},
    "bn2-c": {"cohort": COHORT, "bandwidth_hz": BAND_HZ},
    "bc-bn2": {"cohort": COHORT},
    "bn2": {"cohort": COHORT},
    "age-based": {"cohort": COHORT, "bandwidth_hz": BAND_HZ},
    "proportional-fair": {"cohort": COHORT},
    "best-channel": {"cohort": COHORT},
    "oort": {"cohort": COHORT},
    "oort, T of cohorts": {"cohort": COHORT, "preferred": "cohorts"},
    "oort, no blacklist": {"cohort": COHORT, "blacklist_after": None},
    "oort-fedscale": {"cohort": COHORT},
    "refl": {"cohort": COHORT},
    "fedsuv": {"cohort": COHORT},
    "fedsuv, mean": {"cohort": COHORT, "undelivered": "mean"},
    "pause": {"cohort": COHORT, **TIMES, "alpha": 20.0},
    "sa-pause": {"cohort": COHORT, **TIMES, "alpha": 20.0, "start": "last"},
    "pause-vanilla-sa": {"cohort": COHORT, **TIMES, "alpha": 20.0, "start": "last"},
    "bsfl": {"cohort": COHORT, **TIMES, "alpha": 20.0},
    "cs-ucb": {"cohort": COHORT},
    "cs-ucb-q": {"cohort": COHORT},
    "fastest (oracle)": {"cohort": COHORT},
    "soonest (oracle)": {"cohort": COHORT},
    "refl-oracle (oracle)": {"cohort": COHORT},
    "pause-genie (oracle)": {"cohort": COHORT, **TIMES, "alpha": 20.0},
}
CROWD: dict[str, Any] = {
    "crowd": {"clients": CLIENTS, "placement": {"kind": "disc", "radius_m": 800.0}},
    "learning": {
        "data": {"kind": "digits"},
        "split": {"kind": "dirichlet", "alpha": 0.3, "min_samples": 8},
        "model": {"kind": "mlp", "hidden": [32]},
        "local": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 2, "batch_size": 8},
    },
    "privacy": {
        "budget": {"kind": "geometric", "epsilon": 200.0, "eta": 0.02},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.02},
    },
    "network": {
        "kind": "cell",
        "fading": {"kind": "rayleigh", "coherence_s": 0.02},
        "uplink": {"sharing": "equal", "bandwidth_hz": BAND_HZ, "transmit_power_dbm": 23.0, "noise_figure_db": 5.0},
    },
    "devices": {
        "compute": {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.8, "jitter_sigma": 0.2},
        "availability": {"kind": "markov", "mean_on_s": 60.0, "mean_off_s": 20.0},
        "dropout": {"kind": "hazard", "rate_per_s": 0.03},
    },
}
# Who divides the band itself needs links of one client each; all bands together are as wide as the shared one.
DIVIDES = ("joint-bandwidth", "ocean", "age-based")
OWN_BANDS = {"sharing": "dedicated", "bandwidth_hz": BAND_HZ / COHORT}
DEADLINE = {"kind": "deadline", "deadline_s": DEADLINE_S}
RULES: dict[str, dict[str, Any]] = {
    "all, by SAFA": {"policy": {"kind": "safa", "share": 0.3, "max_wait_s": DEADLINE_S}},
    "all, by REFL's SAFA": {
        "policy": {"kind": "quorum", "share": 0.1, "max_wait_s": DEADLINE_S},
        "late": {"kind": "stale", "weight": "constant", "max_staleness": 5},
    },
}


class Outcome(NamedTuple):
    """What one run of one selector came to."""

    time_to_target_s: float
    final_accuracy: float
    mean_round_s: float
    wasted_share: float
    jain: float
    leakage: float


def scenario(name: str, seed: int, seconds: float) -> Scenario:
    """Return one selector's run on the crowd of one seed."""
    network = CROWD["network"]
    if name in DIVIDES:
        network = {**network, "uplink": {**network["uplink"], **OWN_BANDS}}
    return Scenario(
        name="compare",
        seed=seed,
        rounds={**RULES.get(name, {"policy": DEADLINE}), "count": 10_000, "until_s": seconds},
        selector={"kind": re.split("[ ,]", name)[0], **SELECTORS[name]},
        **{**CROWD, "network": network},
    )


def outcome_of(history: History) -> Outcome:
    """Return the figures of one run."""
    reached_s = history.time_to_accuracy(TARGET, SMOOTHING)
    used = np.isin(history.column("participations", "fate"), ("used", "stale-used"))
    client = history.column("participations", "client")
    served = np.bincount(client[used], minlength=CLIENTS).astype(float)
    _, accuracy = history.curve("time", "accuracy", SMOOTHING)
    return Outcome(
        math.inf if reached_s is None else reached_s,
        float(accuracy[-1]),
        float(history.column("rounds", "duration_s").mean()),
        1.0 - float(used.mean()),
        float(served.sum() ** 2 / (CLIENTS * np.square(served).sum())) if served.any() else 0.0,
        float(history.column("rounds", "largest_leakage").max()),
    )


def run_one(task: tuple[str, int, float]) -> tuple[str, int, Outcome, np.ndarray, np.ndarray]:
    """Run one selector on one seed; return its figures and its accuracy over seconds."""
    name, seed, seconds = task
    history = simulate(scenario(name, seed, seconds))
    return name, seed, outcome_of(history), *history.curve("time", "accuracy", SMOOTHING)


def main() -> None:
    """Run the study and write table and figures."""
    parser = argparse.ArgumentParser(description="Every selector on one crowd.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--selectors", nargs="+", choices=SELECTORS, default=list(SELECTORS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("runs/compare_selectors"))
    arguments = parser.parse_args()

    tasks = [(name, seed, arguments.seconds) for name in arguments.selectors for seed in range(arguments.seeds)]
    outcomes: dict[str, list[Outcome]] = {name: [] for name in arguments.selectors}
    curves: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in arguments.selectors}
    with ProcessPoolExecutor(arguments.workers) as pool:
        for name, _, outcome, time_s, accuracy in pool.map(run_one, tasks):
            outcomes[name].append(outcome)
            curves[name].append((time_s, accuracy))

    rows = sorted((row_of(name, runs) for name, runs in outcomes.items()), key=lambda row: float(row["to 80 % (s)"]))
    print_table(rows)
    save(accuracy_figure(curves, [str(row["selector"]) for row in rows]), arguments.out / "accuracy.png")
    save(trade_off_figure(rows), arguments.out / "trade_offs.png")
    print(f"\n{arguments.out / 'accuracy.png'}\n{arguments.out / 'trade_offs.png'}")


def row_of(name: str, runs: Sequence[Outcome]) -> dict[str, str | float]:
    """Return a selector's row: means over its seeds, of the time to the target over those that reached it."""
    reached_s = [run.time_to_target_s for run in runs if math.isfinite(run.time_to_target_s)]
    error_s = float(np.std(reached_s, ddof=1) / math.sqrt(len(reached_s))) if len(reached_s) > 1 else math.nan
    return {
        "selector": name,
        "to 80 % (s)": float(np.mean(reached_s)) if reached_s else math.inf,
        "+- (s)": error_s,
        "reached": f"{len(reached_s)} of {len(runs)}",
        "final acc": float(np.mean([run.final_accuracy for run in runs])),
        "mean round (s)": float(np.mean([run.mean_round_s for run in runs])),
        "wasted": float(np.mean([run.wasted_share for run in runs])),
        "Jain": float(np.mean([run.jain for run in runs])),
        "leakage": float(np.mean([run.leakage for run in runs])),
    }


def print_table(rows: Sequence[dict[str, str | float]]) -> None:
    """Print one row for each selector."""
    print("".join(f"{title:>22}" if title == "selector" else f"{title:>16}" for title in rows[0]))
    for row in rows:
        cells = [f"{value:.3f}" if isinstance(value, float) else value for value in row.values()]
        print(f"{cells[0]:>22}" + "".join(f"{cell:>16}" for cell in cells[1:]))


def accuracy_figure(curves: dict[str, list[tuple[np.ndarray, np.ndarray]]], order: Sequence[str]) -> Figure:
    """Return accuracy against seconds, the mean over seeds, in panels of a few selectors each beside uniform."""
    figure = Figure(figsize=(11.0, 7.0), dpi=150, layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    end_s = min(float(time_s[-1]) for runs in curves.values() for time_s, _ in runs)
    grid_s = np.linspace(0.0, max(end_s, 1.0), 200)
    uniform, others = (["uniform"] if "uniform" in curves else []), [name for name in order if name != "uniform"]
    size = math.ceil(len(others) / panels.size)
    for at, axes in enumerate(panels):
        shown = [*uniform, *others[at * size : (at + 1) * size]]
        axes.set_visible(bool(shown))
        for name in shown:
            runs = [np.interp(grid_s, time_s, accuracy, left=np.nan) for time_s, accuracy in curves[name]]
            style: dict[str, Any] = {"color": "0.6", "lw": 2.5} if name == "uniform" else {"lw": 1.3}
            axes.plot(grid_s, np.mean(runs, axis=0), label=name, **style)
        axes.axhline(TARGET, color="0.8", lw=0.8, ls=":")
        if shown:
            axes.legend(fontsize=7, frameon=False, loc="lower right")
    figure.supxlabel("simulated seconds")
    figure.supylabel("test accuracy, mean over seeds")
    return figure


def trade_off_figure(rows: Sequence[dict[str, str | float]]) -> Figure:
    """Return time to the target against fairness, waste and leakage, one point for each selector."""
    figure = Figure(figsize=(13.0, 6.5), dpi=150, layout="constrained")
    reached = [row for row in rows if math.isfinite(float(row["to 80 % (s)"]))]
    y = np.array([float(row["to 80 % (s)"]) for row in reached])
    for axes, column in zip(figure.subplots(1, 3, sharey=True), ("Jain", "wasted", "leakage"), strict=True):
        x = np.array([float(row[column]) for row in reached])
        oracle = np.array(["oracle" in str(row["selector"]) for row in reached])
        axes.scatter(x, y, s=16, c=np.where(oracle, "tab:red", "tab:blue"))
        axes.margins(x=0.45)
        for row, at_x, at_y, label_y in zip(reached, x, y, spread(y), strict=True):
            # The column of labels stands beside the points, none upon another.
            line = {"arrowstyle": "-", "lw": 0.3, "color": "0.6"}
            right = at_x > (x.min() + x.max()) / 2
            axes.annotate(
                str(row["selector"]),
                (at_x, at_y),
                (0.98 if right else 0.02, label_y),
                textcoords=axes.get_yaxis_transform(),
                fontsize=6,
                ha="right" if right else "left",
                va="center",
                arrowprops=line,
            )
        axes.set_xlabel({"Jain": "Jain index of used updates", "wasted": "share wasted"}.get(column, "largest leakage"))
    figure.supylabel("simulated seconds to 80 %")
    return figure


def spread(rising: np.ndarray) -> np.ndarray:
    """Return heights for labels in the order of their points, near them and far enough from each other."""
    if not rising.size:
        return rising
    gap = max(float(np.ptp(rising)), 1.0) / 45
    steps = gap * np.arange(rising.size)
    return np.asarray(np.maximum.accumulate(rising - steps) + steps)


if __name__ == "__main__":
    main()
