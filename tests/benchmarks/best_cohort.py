"""Seconds of PAUSE's exact arg max over a million clients, in the orders that are kind and unkind to it.

    python tests/benchmarks/best_cohort.py

prints the median of five calls, and the ratio to sorting the same million UCBs. Not a test: it asserts nothing.
"""

import statistics
import time

import numpy as np

from fedsim.selectors.pause.pause import best_cohort

CLIENTS, COHORT, CALLS = 1_000_000, 1_000, 5


def seconds(work, *arguments) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        work(*arguments)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    ucb, noise = rng.random(CLIENTS), rng.random(CLIENTS)
    orders = {
        "independent": noise,
        "bonus rises with UCB": ucb + 0.1 * noise,
        "bonus rises as UCB falls": (1.0 - ucb) / COHORT,
        "all equal": np.ones(CLIENTS),
    }
    sorting_s = seconds(np.argsort, ucb)
    print(f"{'bonus':>26} {'seconds':>8} {'of one sort':>12}")
    for name, bonus in orders.items():
        took_s = seconds(best_cohort, ucb, bonus, COHORT)
        print(f"{name:>26} {took_s:>8.3f} {took_s / sorting_s:>12.2f}")


if __name__ == "__main__":
    main()
