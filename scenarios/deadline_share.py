"""Which deadline does which network need? The share of updates delivered over deadlines, per preset.

    python scenarios/deadline_share.py [--rounds N] [--out FOLDER]

A crowd on each preset, within the radius that suits its kind of cell, downloads and uploads one model; work takes no
time. The lines come from one run whose deadline is long: the share of participations that took at most so long. The
markers are runs of their own with that deadline, with the same crowd and cohorts and, as their rounds start earlier,
other fading. A client whose link is too weak for any scheme of its preset never delivers.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim import Scenario, simulate
from fedsim.history import save
from fedsim.results import summarise
from fedsim.scenario.building import build_context

CROWDS_M = {  # preset: nearest and farthest clients
    "urban-macro": (35.0, 289.0),
    "indoor-office": (1.0, 25.0),
    "wifi": (1.0, 20.0),
    "nb-iot": (35.0, 1000.0),
    "5g-midband": (35.0, 115.0),
}
DEADLINES_S = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LONG_S = 1000.0
TARGETS = (0.5, 0.9, 0.99)  # shares delivered
MODEL_BITS = 1e6  # 31,250 parameters of 32 bits
CLIENTS = 1000
COHORT = 50
MARKERS = {"o": 6, "s": 10, "^": 6, "D": 8, "v": 7}  # and their sizes, hollow: those that coincide stay apart


@dataclass(frozen=True)
class Found:
    durations_s: NDArray[np.float64]  # sorted, of the run with the long deadline; infinite if late
    shares: list[float]
    unreachable: float

    def needed_s(self, share: float) -> float:
        """Return the shortest deadline by which at least this share is delivered; `inf` if none is long enough."""
        return float(np.quantile(self.durations_s, share, method="inverted_cdf"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Share delivered over deadlines, per network preset.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs/deadline_share"))
    arguments = parser.parse_args()

    found = {preset: look_at(preset, arguments.rounds) for preset in CROWDS_M}
    print_table(found)
    save(curves(found), arguments.out / "delivered.png")
    print(f"\n{arguments.out / 'delivered.png'}")


def scenario(preset: str, deadline_s: float, rounds: int) -> Scenario:
    nearest_m, farthest_m = CROWDS_M[preset]
    return Scenario(
        name=f"deadline-share-{preset}",
        crowd={
            "clients": CLIENTS,
            "placement": {"kind": "disc", "radius_m": farthest_m, "min_distance_m": nearest_m},
        },
        learning={"kind": "none", "model_bits": MODEL_BITS, "samples_per_client": 1},
        network=preset,
        devices={"compute": "zero"},
        rounds={"count": rounds, "policy": {"kind": "deadline", "deadline_s": deadline_s}},
        selector={"kind": "uniform", "cohort": COHORT},
    )


def look_at(preset: str, rounds: int) -> Found:
    long = scenario(preset, LONG_S, rounds)
    history = simulate(long)
    took_s = history.column("participations", "end_s") - history.column("participations", "start_s")
    took_s[history.column("participations", "outcome") != "delivered"] = np.inf
    shares = [
        float(summarise(simulate(scenario(preset, deadline_s, rounds)))["delivered_share"])
        for deadline_s in DEADLINES_S
    ]
    links = build_context(long, None, None).clients.links
    expected_s = links.expected_downlink_s(MODEL_BITS) + links.expected_uplink_s(MODEL_BITS)
    return Found(np.sort(took_s), shares, float(np.isinf(expected_s).mean()))


def print_table(found: dict[str, Found]) -> None:
    titles = [*(f"{deadline_s:g} s" for deadline_s in DEADLINES_S), *(f"s to {share:.0%}" for share in TARGETS)]
    print(f"{'delivered by':>14}" + "".join(f"{title:>10}" for title in titles) + f"{'no link':>10}")
    for preset, one in found.items():
        shares = "".join(f"{share:>10.1%}" for share in one.shares)
        needed = "".join(f"{told(one.needed_s(share)):>10}" for share in TARGETS)
        print(f"{preset:>14}{shares}{needed}{one.unreachable:>10.1%}")


def told(seconds: float) -> str:
    """Return seconds as text, and that it is more than was tried where it is."""
    return f"> {LONG_S:g}" if np.isinf(seconds) else f"{seconds:.3g}"


def curves(found: dict[str, Found]) -> Figure:
    """Return the share delivered over deadlines: a line and markers for each preset."""
    figure = Figure(figsize=(7.0, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for (preset, one), (marker, size) in zip(found.items(), MARKERS.items(), strict=True):
        took_s = one.durations_s[np.isfinite(one.durations_s)]
        shares = np.arange(1, took_s.size + 1) / one.durations_s.size
        abscissa = np.concatenate([[DEADLINES_S[0] / 2], took_s, [LONG_S]])
        ordinate = np.concatenate([[0.0], shares, shares[-1:] if shares.size else [0.0]])
        label = preset + (f" ({one.unreachable:.1%} have no link)" if one.unreachable else "")
        (line,) = axes.plot(abscissa, ordinate, drawstyle="steps-post", linewidth=1.5)
        colour = line.get_color()
        axes.plot(DEADLINES_S, one.shares, marker, color=colour, markersize=size, markerfacecolor="none")
        axes.plot([], [], f"{marker}-", color=colour, markersize=size, markerfacecolor="none", label=label)
    axes.set_xscale("log")
    axes.set_xlim(DEADLINES_S[0] / 2, LONG_S)
    axes.set_ylim(-0.03, 1.03)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("deadline (s)")
    axes.set_ylabel(f"updates of {MODEL_BITS / 1e6:g} Mbit delivered")
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
