"""Edge or cell? One crowd served by a far cell, or by near edge servers below a cloud: accuracy against seconds.

    python scenarios/edge_or_cell.py [--rounds N] [--seeds N] [--out FOLDER]

Clients on a disc of 900 m learn digits, each with its own mixture of classes. The flat federation shares the spectrum
of one base station in the middle. In the hierarchical one (HierFAVG) seven sites 600 m apart are edge servers: each
shares its spectrum among its own clients, averages their updates for e edge rounds, and sends its model over a wire to
the cloud. Places, shadowing towards the site in the middle, data, devices and clients a round (21) are the same.

Edges are faster since their clients are near, and since the spectrum is used seven times at once. The row with a
seventh of the spectrum for each site shows what nearness does alone. The backhaul makes edges slower; more edge rounds
between two merges save its time, at the price of models that drift apart. ``--rounds`` counts edge rounds, and the
cell's.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedsim import History, Scenario, draw, simulate
from fedsim.history import save
from fedsim.learning import MemoryStore

CLIENTS = 63
RADIUS_M = 900.0
SITES = {"inter_site_distance_m": 600.0, "serving_rings": 1, "uplink_backoff_db": 10.0}
SITE_COUNT = 7  # one in the middle and a ring of six
COHORT = 21
BANDWIDTH_HZ = 10e6  # of each direction
MODEL_BITS = 5e6
DEADLINES_S = (60.0, 20.0, 10.0, 5.0)
EDGE_ROUNDS = (1, 2, 5)
FIBRE_BPS = 1e8
BACKHAULS_BPS = (1e5, 3e5, 1e6, 3e6, 1e7, FIBRE_BPS)
DELAY_S = 0.02
TARGET = 0.8
SMOOTHING = 3  # evaluations, of curves alone

Runs = dict[str, list[History]]
Makers = dict[str, Callable[[int], Scenario]]  # what makes the scenario of a seed, by name


def main() -> None:
    parser = argparse.ArgumentParser(description="Two-tier edges against a flat cell.")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/edge_or_cell"))
    arguments = parser.parse_args()
    rounds, seeds = arguments.rounds, range(arguments.seeds)

    over = {e: over_backhauls(e, rounds, seeds) for e in EDGE_ROUNDS}
    runs = {name: [simulate(one(seed)) for seed in seeds] for name, one in cells(rounds).items()}
    runs.update({f"edges, e = {e}": histories[-1] for e, histories in over.items()})
    runs.update({name: [simulate(one(seed)) for seed in seeds] for name, one in other_edges(rounds).items()})
    print_ways(runs)
    best = min((middle_s(histories) for name, histories in runs.items() if name.startswith("cell")), default=np.inf)
    print_backhauls(over, best)

    labels = ["cell, wait for all", "cell, deadline 20 s", *(f"edges, e = {e}" for e in EDGE_ROUNDS)]
    figure = draw([runs[label][0] for label in labels], smoothing=SMOOTHING, labels=labels)
    figure.axes[0].set_xscale("log")
    figure.axes[0].set_xlim(left=1.0)
    files = {"accuracy.png": figure, "backhaul.png": backhauls(over, best)}
    print()
    for name, drawn in files.items():
        save(drawn, arguments.out / name)
        print(arguments.out / name)


def cells(rounds: int) -> Makers:
    """Return the flat federations."""

    def closing(policy: Any) -> Callable[[int], Scenario]:
        return lambda seed: scenario(seed, COHORT, {"count": rounds, "policy": policy})

    deadlines = {f"cell, deadline {s:g} s": closing({"kind": "deadline", "deadline_s": s}) for s in DEADLINES_S}
    return {"cell, wait for all": closing("wait-for-all"), **deadlines}


def other_edges(rounds: int) -> Makers:
    """Return edges without the gain of using the spectrum again, and a cloud that does not wait."""
    # A round of an asynchronous cloud takes in one edge, so that it needs seven times as many.
    mixing = {"kind": "asynchronous", "mixing": 0.3}
    return {
        "edges, 1/7 of the spectrum": lambda seed: edges(seed, rounds, 1, FIBRE_BPS, apart=True),
        "edges, asynchronous": lambda seed: edges(seed, SITE_COUNT * rounds, 1, FIBRE_BPS, merging=mixing),
    }


def over_backhauls(e: int, rounds: int, seeds: range) -> list[list[History]]:
    """Return the runs with each backhaul, one for each seed; who learns what is the same, so it is learned once."""
    stores = [MemoryStore() for _ in seeds]
    return [
        [simulate(edges(seed, rounds, e, rate_bps), store=stores[seed]) for seed in seeds] for rate_bps in BACKHAULS_BPS
    ]


def edges(
    seed: int, rounds: int, e: int, rate_bps: float, *, apart: bool = False, merging: Any = "synchronous"
) -> Scenario:
    """Return the crowd below edge servers, ``apart`` with a seventh of the spectrum each and no interference."""
    backhaul = {"kind": "link", "rate_bps": rate_bps, "delay_s": DELAY_S}
    between = {"grouping": "site", "rounds": e, "merging": merging, "backhaul": backhaul}
    sites = {**SITES, "load": 0.0 if apart else 0.5}
    share = 1 / SITE_COUNT if apart else 1.0
    return scenario(seed, COHORT // SITE_COUNT, {"count": max(1, rounds // e), "edges": between}, sites, share)


def scenario(
    seed: int, cohort: int, rounds: dict[str, Any], sites: dict[str, Any] | None = None, share: float = 1.0
) -> Scenario:
    """Return the crowd under one base station, or several sites, that have a share of the spectrum each."""
    hertz = BANDWIDTH_HZ * share
    network = {
        "kind": "cell",
        "path_loss": "uma",
        "fading": {"kind": "rayleigh", "coherence_s": 0.02},
        "downlink": {"sharing": "multicast", "bandwidth_hz": hertz, "transmit_power_dbm": 43.0},
        "uplink": {"sharing": "equal", "bandwidth_hz": hertz, "transmit_power_dbm": 23.0},
    }
    return Scenario(
        name="edge-or-cell",
        seed=seed,
        crowd={"clients": CLIENTS, "placement": {"kind": "disc", "radius_m": RADIUS_M}},
        learning={
            "model": {"kind": "mlp", "hidden": [64, 32]},
            "model_bits": MODEL_BITS,
            "split": {"kind": "dirichlet", "alpha": 0.3, "rounding": "cumulative"},
            "local": {"learning_rate": 0.1, "epochs": 2, "batch_size": 10},
        },
        network=network if sites is None else {**network, "sites": sites},
        devices={"compute": {"kind": "rate", "samples_per_s": 40.0, "spread_sigma": 0.5}},
        rounds=rounds,
        selector={"kind": "uniform", "cohort": cohort},
    )


def reached_s(history: History) -> float:
    """Return the second at which the target is first reached; infinity for never."""
    time_s = history.time_to_accuracy(TARGET)
    return np.inf if time_s is None else time_s


def middle_s(histories: list[History]) -> float:
    """Return the median of the seconds to the target over the seeds."""
    return float(np.median([reached_s(history) for history in histories]))


def megabits(history: History, table: Any, *columns: str) -> float:
    """Return how many bits of some columns had ended their way when the target was reached, in millions."""
    done = history.column(table, "end_s") <= reached_s(history)
    return float(sum(history.column(table, column)[done].sum() for column in columns)) / 1e6


def shown(seconds: float) -> str:
    return f"{seconds:.1f}" if np.isfinite(seconds) else "never"


def print_ways(runs: Runs) -> None:
    header = ["round (s)", "final acc", f"s to {TARGET:.0%}", "(least", "most)", "uploads (Mbit)", "backhaul (Mbit)"]
    print(f"{'':>28}" + "".join(f"{title:>16}" for title in header))
    for name, histories in runs.items():
        times_s = [reached_s(history) for history in histories]
        wired = [
            0.0
            if history.edge_participations is None
            else megabits(history, "edge_participations", "downlink_bits", "uplink_bits")
            for history in histories
        ]
        cells = [
            f"{np.median([history.column('rounds', 'duration_s').mean() for history in histories]):.2f}",
            f"{np.median([history.column('evaluations', 'accuracy')[-10:].mean() for history in histories]):.1%}",
            *(shown(seconds) for seconds in (float(np.median(times_s)), min(times_s), max(times_s))),
            f"{np.median([megabits(history, 'participations', 'uplink_bits') for history in histories]):,.0f}",
            f"{np.median(wired):,.0f}",
        ]
        print(f"{name:>28}" + "".join(f"{cell:>16}" for cell in cells))


def print_backhauls(over: dict[int, list[list[History]]], best_s: float) -> None:
    """Print the median time to the target for each backhaul and number of edge rounds."""
    print(f"\nmedian s to {TARGET:.0%} over the backhaul; the cell's best is {shown(best_s)}")
    print(f"{'Mbit/s':>12}" + "".join(f"{f'e = {e}':>12}" for e in over))
    for i, rate_bps in enumerate(BACKHAULS_BPS):
        print(f"{rate_bps / 1e6:>12g}" + "".join(f"{shown(middle_s(runs[i])):>12}" for runs in over.values()))


def backhauls(over: dict[int, list[list[History]]], best_s: float) -> Figure:
    """Return the median time to the target over the rate of the backhaul, a curve for each number of edge rounds."""
    figure = Figure(figsize=(6.4, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for (e, runs), style in zip(over.items(), ("o-", "s--", "^-."), strict=True):
        times_s = [middle_s(histories) for histories in runs]
        axes.plot(np.array(BACKHAULS_BPS) / 1e6, times_s, style, markersize=5, label=f"edges, e = {e}")
    if np.isfinite(best_s):
        axes.axhline(best_s, color="grey", linestyle=":", label="cell, its best deadline")
    axes.set_xscale("log")
    if any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
        axes.set_yscale("log")
    axes.set_xlabel("backhaul of each edge server (Mbit/s)")
    axes.set_ylabel(f"simulated seconds to {TARGET:.0%} accuracy")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
