"""Client-rounds per second of timing-only runs on a graph with radio access, over drawn fading and over means.

    python tests/benchmarks/graph_access.py [--client-rounds 1000] [--cohort N ...]

prints for each network and cohort the client-rounds per second of both readings, and the ratio of the two: medians of
three pairs run in turn, in processor time, without the first round and what is built before it. Not a test: it asserts
nothing.
"""

import argparse
import statistics

from rounds_per_second import scenario, seconds

from fedsim import Scenario, simulate

PAIRS = 3
WIDE = {"capacity_bps": 1e9, "delay_s": 0.002}
COHERENCE_S = 0.02


def graph(spectrum: str, bandwidth_hz: float, read: str, cells: int = 1, backhaul_bps: float = 1e9) -> dict:
    """Return a graph of cells with Rayleigh fading, and wires from each to the cloud."""
    ways = {"bandwidth_hz": bandwidth_hz, "fading_in_shares": read}
    return {
        "kind": "graph",
        "topology": {
            "kind": "two-tier",
            "cells": cells,
            "site_distance_m": 500.0,
            "fronthaul": WIDE,
            "backhaul": {**WIDE, "capacity_bps": backhaul_bps},
        },
        "access": {
            "kind": "radio",
            "spectrum": spectrum,
            "delay_s": 0.005,
            "cell": {
                "kind": "cell",
                "fading": {"kind": "rayleigh", "coherence_s": COHERENCE_S},
                "downlink": {**ways, "transmit_power_dbm": 33.0},
                "uplink": {**ways, "transmit_power_dbm": 23.0},
            },
        },
    }


NETWORKS = {
    "shared": ("shared", 20e6, 1, 1e9),
    "dedicated": ("dedicated", 1e6, 1, 1e9),
    "dedicated, full wire": ("dedicated", 1e6, 1, 50e6),
    "shared, 7 cells, full wires": ("shared", 20e6, 7, 20e6),
}


def run(chosen: Scenario) -> float:
    """Return the processor time of the rounds of a scenario, beyond that of one round."""
    return seconds(simulate, chosen) - seconds(simulate, chosen.replace({"rounds.count": 1}))


def row(name: str, cohort: int, rounds: int) -> tuple[float, float]:
    """Return client-rounds per second over drawn fading and over means."""
    spectrum, hertz, cells, backhaul_bps = NETWORKS[name]
    both = [
        scenario(graph(spectrum, hertz, read, cells, backhaul_bps), cohort, rounds).replace({"crowd.clients": 1000})
        for read in ("drawn", "mean")
    ]
    took_s = [[run(chosen) for chosen in both] for _ in range(PAIRS)]
    drawn_s, mean_s = (statistics.median(each) for each in zip(*took_s, strict=True))
    return cohort * (rounds - 1) / drawn_s, cohort * (rounds - 1) / mean_s


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", type=int, nargs="*", default=(10, 100, 1000), help="clients per round")
    parser.add_argument("--client-rounds", type=int, default=1000, help="of each run, at least two rounds")
    chosen = parser.parse_args()
    print(f"{'network':>28} {'cohort':>7} {'drawn, 1/s':>11} {'mean, 1/s':>11} {'ratio':>6}")
    for name in NETWORKS:
        for cohort in chosen.cohort:
            drawn, mean = row(name, cohort, 1 + max(1, chosen.client_rounds // cohort))
            print(f"{name:>28} {cohort:>7} {drawn:>11,.0f} {mean:>11,.0f} {drawn / mean:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
