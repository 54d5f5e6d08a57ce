"""What the checks of every run cost: their share of the CPU time of runs about timing only.

    python tests/benchmarks/audit_overhead.py               # half a minute
    python tests/benchmarks/audit_overhead.py --repeats 7

Each line is a run whose rounds send 10, 100 or 1,000 clients, or an asynchronous one. The share is the median of
several runs: CPU seconds in the checks over CPU seconds of the whole run. Not a test: it asserts nothing.
"""

import argparse
import statistics
import time

from fedsim import Scenario
from fedsim.simulation import Simulation

DEADLINE = {"kind": "deadline", "deadline_s": 0.8}
RUNS = {
    "10 clients a round": (10, 100, 2000, DEADLINE),
    "100 clients a round": (100, 1000, 400, DEADLINE),
    "1,000 clients a round": (1000, 2000, 60, DEADLINE),
    "fedbuff, 100 in flight": (10, 1000, 500, {"kind": "fedbuff", "concurrency": 100, "buffer": 10}),
}


def shares(cohort: int, clients: int, rounds: int, policy: dict[str, object]) -> tuple[float, float, int]:
    """Run a scenario; return the CPU seconds of the checks and of the run, and its participations."""
    scenario = Scenario(
        name="audited",
        crowd={"clients": clients},
        learning="none",
        network="pause-two-speed",
        devices={"compute": "zero"},
        rounds={"count": rounds, "policy": policy},
        selector={"kind": "uniform", "cohort": cohort},
    )
    simulation = Simulation(scenario)
    began_s = time.thread_time()
    rows = simulation.run().participations.num_rows
    return simulation.recorder.audited_s, time.thread_time() - began_s, rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{'':<24} {'us a round':>12} {'checks, us':>12} {'ns a row':>10} {'share':>8}")
    for name, (cohort, clients, rounds, policy) in RUNS.items():
        found = [shares(cohort, clients, rounds, policy) for _ in range(options.repeats)]
        checks_s, whole_s = (statistics.median(column) for column in ([f[0] for f in found], [f[1] for f in found]))
        share = statistics.median(checks / whole for checks, whole, _ in found)
        per_round = [1e6 * seconds / rounds for seconds in (whole_s, checks_s)]
        row_ns = 1e9 * checks_s / found[0][2]
        print(f"{name:<24} {per_round[0]:>12.0f} {per_round[1]:>12.1f} {row_ns:>10.0f} {share:>8.2%}", flush=True)


if __name__ == "__main__":
    main()
