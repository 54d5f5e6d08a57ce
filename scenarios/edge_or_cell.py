"""Edge or cell? One crowd served by a far cell, or by near edge servers below a cloud: accuracy against seconds.

    python scenarios/edge_or_cell.py [--rounds N] [--seeds N] [--out FOLDER]

The flat federation of `edge_or_cell.toml` shares the spectrum of one base station in the middle. In the hierarchical
one (HierFAVG) seven sites 600 m apart are edge servers: each shares its spectrum among its own clients, averages their
updates for e edge rounds, and sends its model over a wire to the cloud. Places, shadowing towards the site in the
middle, data, devices and clients a round (21) are the same. ``--rounds`` counts edge rounds, and the cell's.

Edges are faster since their clients are near, and since the spectrum is used seven times at once. The row with a
seventh of the spectrum for each site shows what nearness does alone. The backhaul makes edges slower; more edge rounds
between two merges save its time, at the price of models that drift apart.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from study_scripts import HERE, Column, last_accuracy, number, panels, run, sizes, summary, table, told, written

from fedsim import History, Scenario, Study, draw

TO_TARGET = "time_to_80%"
DEADLINES_S = (60.0, 20.0, 10.0, 5.0)
EDGE_ROUNDS = (1, 2, 5)
MBPS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)  # of the backhaul; the last one is fibre
SITES = 7  # one in the middle and a ring of six


def edges(rounds: int, e: int, mbps: float, share: float = 1.0, merging: Any = "synchronous") -> dict[str, Any]:
    """Return what edge servers change; with a share of the spectrum for each there is no interference."""
    sites = {"inter_site_distance_m": 600.0, "serving_rings": 1, "uplink_backoff_db": 10.0}
    wire = {"kind": "link", "rate_bps": 1e6 * mbps, "delay_s": 0.02}
    return {
        "selector.cohort": 21 // SITES,
        "network.sites": {**sites, "load": 0.5 if share == 1 else 0.0},
        "network.downlink.bandwidth_hz": 10e6 * share,
        "network.uplink.bandwidth_hz": 10e6 * share,
        "rounds.count": max(1, rounds // e),
        "rounds.edges": {"grouping": "site", "rounds": e, "merging": merging, "backhaul": wire},
    }


def variants(rounds: int) -> dict[str, dict[str, Any]]:
    policies: dict[str, Any] = {f"deadline {s:g} s": {"kind": "deadline", "deadline_s": s} for s in DEADLINES_S}
    cells = {
        f"cell, {name}": {"rounds.policy": how} for name, how in {"wait for all": "wait-for-all", **policies}.items()
    }
    near = {f"edges, e = {e}, {mbps:g} Mbit/s": edges(rounds, e, mbps) for e in EDGE_ROUNDS for mbps in MBPS}
    near["edges, 1/7 of the spectrum"] = edges(rounds, 1, MBPS[-1], 1 / SITES)
    # A round of an asynchronous cloud takes in one edge, so that it needs seven times as many.
    mixing = {"kind": "asynchronous", "mixing": 0.3}
    return {**cells, **near, "edges, asynchronous": edges(SITES * rounds, 1, MBPS[-1], merging=mixing)}


def megabits(rows: Any, columns: Sequence[str], history: History) -> float:
    """Return how many bits of some columns had ended their way when the target was reached, in millions."""
    if rows not in history.tables():
        return 0.0
    done = history.column(rows, "end_s") <= number(TO_TARGET, history)
    return float(sum(history.column(rows, column)[done].sum() for column in columns)) / 1e6


COLUMNS: dict[str, Column] = {
    "round (s)": ("mean_round_s", ".2f"),
    "final acc": (last_accuracy, ".1%"),
    "s to 80%": (TO_TARGET, ".1f"),
    "(least": (TO_TARGET, ".1f", np.min),
    "most)": (TO_TARGET, ".1f", np.max),
    "uploads (Mbit)": (partial(megabits, "participations", ["uplink_bits"]), ",.0f"),
    "backhaul (Mbit)": (partial(megabits, "edge_participations", ["downlink_bits", "uplink_bits"]), ",.0f"),
}


def main() -> None:
    given = sizes(__file__, __doc__, rounds=80, seeds=3)
    base = Scenario.load(HERE / "edge_or_cell.toml").replace({"rounds.count": given.rounds})
    found = run(Study.of(base, variants=variants(given.rounds), seeds=given.seeds), given.out)
    runs = {name.removesuffix(f", {MBPS[-1]:g} Mbit/s"): of for name, of in found.items()}
    summary({name: of for name, of in runs.items() if "Mbit/s" not in name}, COLUMNS)
    middle_s = {name: float(np.median([number(TO_TARGET, one) for one in of])) for name, of in found.items()}
    best_s = min(at for name, at in middle_s.items() if name.startswith("cell"))
    print(f"\nmedian s to 80% over the backhaul; the cell's best is {told(best_s, '.1f')}")
    over = {f"e = {e}": [middle_s[f"edges, e = {e}, {mbps:g} Mbit/s"] for mbps in MBPS] for e in EDGE_ROUNDS}
    by_rate = zip(MBPS, *over.values(), strict=True)
    table(["Mbit/s", *over], [[f"{mbps:g}", *(told(at, ".1f") for at in of)] for mbps, *of in by_rate])

    shown = ["cell, wait for all", "cell, deadline 20 s", *(f"edges, e = {e}" for e in EDGE_ROUNDS)]
    curves = draw([runs[name][0] for name in shown], smoothing=3, labels=shown)
    curves.axes[0].set(xscale="log", xlim=(1.0, None))
    wires, (axes,) = panels(1, xlabel="backhaul of each edge server (Mbit/s)", ylabel="simulated seconds to 80%")
    for (name, times_s), style in zip(over.items(), ("o-", "s--", "^-."), strict=True):
        axes.plot(MBPS, times_s, style, markersize=5, label=f"edges, {name}")
    axes.axhline(best_s, color="grey", linestyle=":", label="cell, its best deadline") if np.isfinite(best_s) else None
    reached = any(np.isfinite(line.get_ydata()).any() for line in axes.lines)
    axes.set(xscale="log", yscale="log" if reached else "linear")
    axes.legend(frameon=False)
    written({"accuracy.png": curves, "backhaul.png": wires}, given.out)


if __name__ == "__main__":
    main()
