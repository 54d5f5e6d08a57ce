"""Arrivals per second of processor time at an asynchronous server, timing only.

    python tests/benchmarks/arrivals_per_second.py [--availability flash] [--selector uniform] [--arrivals 5000]

prints, for FedBuff and FedAsync with 100 clients at work, how many updates a second the server takes in, by the size of
the crowd that it selects from. Each arrival is one look at the crowd, one selection, one cohort of one sent, and its
share of an aggregation. The time to build the crowd does not count. Not a test: it asserts nothing.
"""

import argparse

from crowds import AVAILABILITY, LAW, seconds, timing_only

from fedsim.simulation import Simulation

SIZES = (1_000, 10_000, 100_000, 1_000_000)
POLICIES = {
    "fedbuff, buffer 10": ({"kind": "fedbuff", "buffer": 10, "concurrency": 100}, 10),
    "fedasync": ({"kind": "fedasync", "concurrency": 100}, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the arrivals at an asynchronous server.")
    parser.add_argument("--availability", choices=AVAILABILITY, default="always")
    parser.add_argument("--selector", default="uniform")
    parser.add_argument("--arrivals", type=int, default=5_000)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest crowd")
    given = parser.parse_args()
    # Clients that may leave are given up.
    patience = {} if given.availability == "always" else {"give_up_s": 30.0}
    devices = {"availability": AVAILABILITY[given.availability]}
    network, selector = {"kind": "latency", "downlink": LAW, "uplink": LAW}, {"kind": given.selector, "cohort": 1}
    print(f"{'policy':>20} {'clients':>8} {'arrivals/s':>11}")
    for name, (policy, buffer) in POLICIES.items():
        rounds = {"count": given.arrivals // buffer, "policy": {**policy, **patience}}
        for clients in (size for size in SIZES if size <= given.most):
            run = Simulation(timing_only(clients, network, rounds, selector, devices=devices))
            print(f"{name:>20} {clients:>8} {given.arrivals / seconds(run.run):>11,.0f}", flush=True)


if __name__ == "__main__":
    main()
