"""What does a cell's edge do to fairness? Clients' delivered shares against their distance, for two deadlines.

    python scenarios/cell_edge.py [--rounds N] [--out FOLDER]

A hexagonal cell among six others on the same frequencies, timing only, with uniform selection. Place and shadowing
last, and fading averages out over an upload, so that most clients deliver always or never. Jain's index of the
deliveries (Jain, Chiu and Hawe, DEC-TR-301, 1984) is ``sum(x)**2 / (n * sum(x**2))``: 1 if all deliver equally often,
1/n if one client delivers everything. That of the selections shows how much of the inequality is the chance of being
selected.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim import Scenario, simulate
from fedsim.history import save
from fedsim.streams import Streams

DEADLINES_S = (1.0, 4.0)
CLIENTS = 400
COHORT = 20
INTER_SITE_M = 500.0
NEIGHBOURS_LOAD = 0.5
MODEL_BITS = 1e6
UPLINK_HZ = 360e3  # two LTE resource blocks for each client
COHERENCE_S = 0.02
SAMPLES = 100  # per client
SAMPLES_PER_S = 400.0  # of the median device
RINGS = 8  # of equally many clients


@dataclass(frozen=True)
class Counts:
    """How often each client was asked and delivered, arrays of shape (CLIENTS,)."""

    selected: NDArray[np.int64]
    delivered: NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description="Delivered shares over the distance to the site.")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("runs/cell_edge"))
    arguments = parser.parse_args()

    counts = {deadline_s: count(scenario(deadline_s, arguments.rounds)) for deadline_s in DEADLINES_S}
    crowd = scenario(DEADLINES_S[0], 1)
    distance_m = np.hypot(*crowd.crowd.placement.positions(CLIENTS, Streams(crowd.seed)).T)

    print_table(distance_m, counts)
    files = {"delivered_by_distance.png": by_distance(distance_m, counts), "deliveries.png": concentration(counts)}
    print()
    for name, figure in files.items():
        save(figure, arguments.out / name)
        print(arguments.out / name)


def scenario(deadline_s: float, rounds: int) -> Scenario:
    return Scenario(
        name="cell-edge",
        crowd={"clients": CLIENTS, "placement": {"kind": "hexagons", "inter_site_distance_m": INTER_SITE_M}},
        learning={"kind": "none", "model_bits": MODEL_BITS, "samples_per_client": SAMPLES},
        network={
            "kind": "cell",
            "fading": {"kind": "rayleigh", "coherence_s": COHERENCE_S},
            "uplink": {"bandwidth_hz": UPLINK_HZ},
            "sites": {"inter_site_distance_m": INTER_SITE_M, "load": NEIGHBOURS_LOAD},
        },
        devices={"compute": {"kind": "rate", "samples_per_s": SAMPLES_PER_S, "spread_sigma": 0.5, "jitter_sigma": 0.1}},
        rounds={"count": rounds, "policy": {"kind": "deadline", "deadline_s": deadline_s}},
        selector={"kind": "uniform", "cohort": COHORT},
    )


def count(chosen: Scenario) -> Counts:
    history = simulate(chosen)
    client = history.column("participations", "client")
    arrived = history.column("participations", "outcome") == "delivered"
    return Counts(np.bincount(client, minlength=CLIENTS), np.bincount(client[arrived], minlength=CLIENTS))


def jain(counts: NDArray[np.int64]) -> float:
    """Return Jain's index of how often each client did something; NaN if none ever did."""
    squares = float((counts.astype(np.float64) ** 2).sum())
    return float(counts.sum()) ** 2 / (counts.size * squares) if squares else float("nan")


def rings(distance_m: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Return the clients of each ring, the nearest first."""
    return np.array_split(np.argsort(distance_m), RINGS)


def share(counts: Counts, client: NDArray[np.int64]) -> float:
    """Return the share of these clients' participations that were delivered; NaN if none was asked."""
    selected = int(counts.selected[client].sum())
    return float(counts.delivered[client].sum()) / selected if selected else float("nan")


def print_table(distance_m: NDArray[np.float64], counts: dict[float, Counts]) -> None:
    print(f"{'distance (m)':>24}" + "".join(f"{f'deadline {deadline_s:g} s':>16}" for deadline_s in counts))
    lines = {
        f"{distance_m[ring[0]]:.0f} to {distance_m[ring[-1]]:.0f}": [
            f"{share(one, ring):.1%}" for one in counts.values()
        ]
        for ring in rings(distance_m)
    }
    lines["everybody"] = [f"{share(one, np.arange(CLIENTS)):.1%}" for one in counts.values()]
    lines["never delivered"] = [
        f"{int(((one.delivered == 0) & (one.selected > 0)).sum())} of {int((one.selected > 0).sum())}"
        for one in counts.values()
    ]
    lines["Jain, deliveries"] = [f"{jain(one.delivered):.3f}" for one in counts.values()]
    lines["Jain, selections"] = [f"{jain(one.selected):.3f}" for one in counts.values()]
    for title, cells in lines.items():
        print(f"{title:>24}" + "".join(f"{cell:>16}" for cell in cells))


def by_distance(distance_m: NDArray[np.float64], counts: dict[float, Counts]) -> Figure:
    """Return each client's delivered share over its distance, with the share of each ring."""
    figure = Figure(figsize=(6.8, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    middle_m = [float(np.median(distance_m[ring])) for ring in rings(distance_m)]
    for (deadline_s, one), marker, line in zip(counts.items(), "o^", ("-", "--"), strict=True):
        asked = one.selected > 0
        shares = one.delivered[asked] / one.selected[asked]
        colour = f"C{list(counts).index(deadline_s)}"
        axes.scatter(distance_m[asked], shares, s=9, marker=marker, alpha=0.35, linewidths=0, color=colour)
        label = f"deadline {deadline_s:g} s: Jain index {jain(one.delivered):.2f}"
        of_rings = [share(one, ring) for ring in rings(distance_m)]
        axes.plot(middle_m, of_rings, f"{marker}{line}", color=colour, markersize=6, label=label)
    axes.plot([], [], "o", markersize=3, alpha=0.5, color="grey", label="one client")
    axes.axvline(INTER_SITE_M / 2, color="grey", linestyle=":", label="edge towards a neighbour")
    axes.set_xlim(left=0)
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("distance to the site (m)")
    axes.set_ylabel("delivered share of a client's participations")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure


def concentration(counts: dict[float, Counts]) -> Figure:
    """Return Lorenz curves: which share of all deliveries the clients that deliver least have together."""
    figure = Figure(figsize=(5.2, 4.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    crowd = np.linspace(0.0, 1.0, CLIENTS + 1)
    curves = {f"deliveries, deadline {deadline_s:g} s": one.delivered for deadline_s, one in counts.items()}
    curves["selections"] = next(iter(counts.values())).selected
    for (label, values), line in zip(curves.items(), ("-", "--", ":"), strict=True):
        if values.sum():
            together = np.concatenate([[0.0], np.cumsum(np.sort(values)) / values.sum()])
            axes.plot(crowd, together, line, label=f"{label}: Jain {jain(values):.2f}")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, label="all equal")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("share of the crowd, those with the fewest first")
    axes.set_ylabel("their share of all deliveries or selections")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
