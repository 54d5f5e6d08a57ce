"""Microseconds that the checks of what parts return cost, for a round of ten clients.

    python tests/benchmarks/checks_of_parts.py [--rounds 20000]

prints, each as the median of several turns: the check of a cohort (ids alone, and with draws, weights and work), the
same with what a call alone costs, a latency law of the user's own with and without its checker, and a checker asked
for fedsim's own law, which is returned as it is. Not a test: it asserts nothing.
"""

import argparse
import statistics
import timeit
from collections.abc import Callable

import numpy as np

from fedsim import Component
from fedsim.arrays import FloatArray
from fedsim.network.distributions import LATENCY_LAW, Constant
from fedsim.selectors import Cohort, RoundView
from fedsim.selectors.validation import as_cohort

TURNS = 7


class Own(Component):
    """A law of the user's own: a constant."""

    def quantile(self, u: FloatArray) -> FloatArray:
        return np.ones_like(u)

    def mean_s(self) -> float:
        return 1.0


def view_of(clients: int) -> RoundView:
    ids, none = np.arange(clients), np.full(clients, np.nan)
    return RoundView(
        round=1,
        time_s=0.0,
        clients=clients,
        client=ids,
        samples=ids,
        total_samples=int(ids.sum()),
        participations=ids,
        last_duration_s=none,
        last_loss=none,
        privacy_spent=none,
        privacy_budget=None,
        features=np.zeros((clients, 0)),
    )


def microseconds(call: Callable[[], object], number: int) -> float:
    return statistics.median(timeit.timeit(call, number=number) / number * 1e6 for _ in range(TURNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000, help="calls of each turn")
    number = parser.parse_args().rounds
    view, ids, u = view_of(100), np.arange(0, 100, 10), np.linspace(0.05, 0.95, 10)
    full = Cohort(ids, draws=np.ones(10, dtype=np.int64), weights=np.ones(10), work=np.ones(10))
    own = Own()
    checked, builtin = LATENCY_LAW.checked(own), Constant(value_s=1.0)
    for what, call in {
        "copy of ten ids, without a check": lambda: Cohort(ids.astype(np.int64)),
        "cohort of ids alone": lambda: as_cohort(ids, view, "selector"),
        "cohort with draws, weights and work": lambda: as_cohort(full, view, "selector"),
        "law of the user's own, without a checker": lambda: own.quantile(u),
        "law of the user's own, checked": lambda: checked.quantile(u),
        "checker asked for fedsim's own law": lambda: LATENCY_LAW.checked(builtin),
    }.items():
        print(f"{what:45} {microseconds(call, number):7.2f} us")


if __name__ == "__main__":
    main()
