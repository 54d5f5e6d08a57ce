"""What a round costs that a testbed plays, against one of `simulate`: same scenario, same cohorts, by turns.

The cost of a testbed's round is that of `select`, `round` and `report`; cohorts of 10 of 100 clients, timing only.
"""

import argparse
from statistics import median

from crowds import LAW, seconds, timing_only

from fedsim import Scenario, Testbed, simulate

NETWORKS = {"latency": {"kind": "latency", "downlink": LAW, "uplink": LAW}, "cell": {"kind": "cell"}}


def scenario(network: str, rounds: int) -> Scenario:
    policy = {"kind": "deadline", "deadline_s": 5.0}
    return timing_only(
        100,
        NETWORKS[network],
        {"count": rounds, "policy": policy},
        {"kind": "uniform", "cohort": 10},
        devices={"compute": {"kind": "rate", "samples_per_s": 100.0}},
    )


def play(case: Scenario) -> None:
    testbed = Testbed(case)
    while not testbed.over:
        testbed.round(testbed.select(), up_bits=5e5)
        testbed.report(accuracy=0.5)
    testbed.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for network in NETWORKS:
        case, once = scenario(network, options.rounds), scenario(network, 1)
        pairs = []
        for _ in range(options.repeats):
            # Without what a run costs before its first round.
            pairs.append([seconds(call, case) - seconds(call, once) for call in (simulate, play)])
        own, stepped = (median(column) * 1e3 / options.rounds for column in zip(*pairs, strict=True))
        ratio = median(b / a for a, b in pairs)
        print(f"{network:8} simulate {own:.3f} ms, testbed {stepped:.3f} ms a round, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
