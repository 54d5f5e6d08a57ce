"""Client-rounds per second of timing-only runs, beside a bare SimPy skeleton with the same three timeouts.

    python tests/benchmarks/rounds_per_second.py [NETWORK ...] [--cohort N ...] [--client-rounds N] [--pairs N]
        [--without-build]

prints, for all networks or those named, and for each cohort, client-rounds per second, and the ratio to the skeleton.
Speed and ratio are medians of some pairs run in turn, in processor time, so that a noisy machine touches both alike.
The time to build a run counts, unless `--without-build` says otherwise. Not a test: it asserts nothing.
"""

import argparse
import statistics

import simpy
from crowds import LAW, cell, seconds, timing_only

from fedsim import simulate
from fedsim.simulation import Simulation

PAIRS = 7
CLIENT_ROUNDS = 50_000
RULES = ("equal", "proportional-fair", "max-relative-snr", "first-come", "minimum-makespan")
COHORTS = (10, 100, 1000)
NETWORKS = {
    "pause-two-speed": {"kind": "pause-two-speed"},
    "latency laws": {"kind": "latency", "downlink": LAW, "uplink": LAW},
    "dedicated": cell("dedicated", "dedicated"),
    **{rule: cell(rule, rule, 20e6, 20e6) for rule in RULES},
    **{f"{rule}, mean": cell(rule, rule, 20e6, 20e6, "mean") for rule in RULES},
    "multicast, dedicated": cell("multicast", "dedicated", 20e6),
}


def skeleton(cohort: int, rounds: int) -> None:
    """Run the bare processes: three timeouts for each client and a server that waits for all."""
    env = simpy.Environment()

    def client():
        yield env.timeout(1.0)
        yield env.timeout(2.0)
        yield env.timeout(3.0)

    def server():
        for _ in range(rounds):
            yield env.all_of([env.process(client()) for _ in range(cohort)])

    env.run(until=env.process(server()))


def row(network: dict, cohort: int, client_rounds: int, pairs: int, *, build: bool) -> tuple[float, float]:
    rounds = client_rounds // cohort
    chosen = timing_only(100_000, network, {"count": rounds}, {"kind": "uniform", "cohort": cohort})
    ours, ratios = [], []
    for _ in range(pairs):
        bare_s = seconds(skeleton, cohort, rounds)
        ours.append(seconds(simulate, chosen) if build else seconds(Simulation(chosen).run))
        ratios.append(bare_s / ours[-1])
    return cohort * rounds / statistics.median(ours), statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="*", default=list(NETWORKS), help=", ".join(NETWORKS))
    parser.add_argument("--cohort", type=int, nargs="*", default=COHORTS, help="clients per round")
    parser.add_argument("--client-rounds", type=int, default=CLIENT_ROUNDS, help="clients times rounds of a run")
    parser.add_argument("--without-build", action="store_true", help="count what a run takes once it is built")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="runs of each kind")
    chosen = parser.parse_args()
    print(f"{'network':>24} {'cohort':>7} {'client-rounds/s':>16} {'of the skeleton':>16}")
    for name in chosen.network:
        for cohort in chosen.cohort:
            speed, ratio = row(
                NETWORKS[name], cohort, chosen.client_rounds, chosen.pairs, build=not chosen.without_build
            )
            print(f"{name:>24} {cohort:>7} {speed:>16,.0f} {ratio:>16.2f}", flush=True)


if __name__ == "__main__":
    main()
