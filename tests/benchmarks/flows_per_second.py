"""How many comings and goings of flows a second a shared network works out, with 1,000 of them at any time.

Run it with ``python tests/benchmarks/flows_per_second.py``.
"""

import time

import numpy as np
import simpy

from fedsim.network.medium.fluid import Fluid
from fedsim.network.topology.flow_state import Route

FLOWS = 1000
TRANSFERS = 5000


def changes_per_second(access_bps: np.ndarray) -> float:
    """Return comings and goings per second of real time on a star in which everybody sends again and again."""
    env = simpy.Environment()
    fluid = Fluid(env, np.append(access_bps, 1e9))
    luck = np.random.default_rng(0)
    done = 0

    def client(i):
        nonlocal done
        route = Route((i, FLOWS), (1.0, 1.0), 0.01)
        while True:
            yield fluid.begin(luck.exponential(1e6), route).done
            done += 1

    for i in range(FLOWS):
        env.process(client(i))
    start = time.perf_counter()
    while done < TRANSFERS:
        env.step()
    return 2 * done / (time.perf_counter() - start)


if __name__ == "__main__":
    for name, access_bps in (
        ("all access links alike", np.full(FLOWS, 1e6)),
        ("all access links different", np.random.default_rng(1).uniform(1e5, 1e7, FLOWS)),
    ):
        print(f"{name:30s}{changes_per_second(access_bps):10,.0f} changes/s with {FLOWS} flows")
