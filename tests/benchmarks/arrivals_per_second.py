"""Arrivals per second of processor time at an asynchronous server, timing only.

    python tests/benchmarks/arrivals_per_second.py [--availability flash] [--selector uniform] [--arrivals 5000]

prints, for FedBuff and FedAsync with 100 clients at work, how many updates a second the server takes in, by the size of
the crowd that it selects from. Each arrival is one look at the
crowd, one selection, one cohort of one sent, and its share of an aggregation. The time to build the crowd does not
count. Not a test: it asserts nothing.
"""

import argparse
import time

from crowds import AVAILABILITY, LAW, timing_only

from fedsim import Scenario
from fedsim.simulation import Simulation

SIZES = (1_000, 10_000, 100_000, 1_000_000)
POLICIES = {
    "fedbuff, buffer 10": ({"kind": "fedbuff", "buffer": 10, "concurrency": 100}, 10),
    "fedasync": ({"kind": "fedasync", "concurrency": 100}, 1),
}


def scenario(
    policy: dict, rounds: int, clients: int, availability: str = "always", selector: str = "uniform"
) -> Scenario:
    """Return a timing-only scenario whose clients all compute and transfer, and are given up where they may leave."""
    patience = {} if availability == "always" else {"give_up_s": 30.0}
    return timing_only(
        clients,
        {"kind": "latency", "downlink": LAW, "uplink": LAW},
        {"count": rounds, "policy": {**policy, **patience}},
        {"kind": selector, "cohort": 1},
        devices={"availability": AVAILABILITY[availability]},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the arrivals at an asynchronous server.")
    parser.add_argument("--availability", choices=AVAILABILITY, default="always")
    parser.add_argument("--selector", default="uniform")
    parser.add_argument("--arrivals", type=int, default=5_000)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest crowd")
    given = parser.parse_args()
    print(f"{'policy':>20} {'clients':>8} {'arrivals/s':>11}")
    for name, (policy, buffer) in POLICIES.items():
        for clients in (size for size in SIZES if size <= given.most):
            rounds = given.arrivals // buffer
            run = Simulation(scenario(policy, rounds, clients, given.availability, given.selector))
            began = time.process_time()
            run.run()
            took_s = time.process_time() - began
            print(f"{name:>20} {clients:>8} {given.arrivals / took_s:>11,.0f}", flush=True)


if __name__ == "__main__":
    main()
