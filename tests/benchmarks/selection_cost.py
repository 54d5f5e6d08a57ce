"""Milliseconds that a selection takes, for every selector in the catalogue and crowds of 10^3 to 10^6 candidates.

    python -m tests.benchmarks.selection_cost [KIND ...] [--cohort 100] [--rounds 5] [--most-s 10]

prints a table: for each size the median of the later rounds, question, selection and feedback together, in milliseconds
of processor time (set OMP_NUM_THREADS=1); the exponent with which that grew over the last step; and the first
round, with whatever is built then, at the largest size. The server is that of `fedsim.testing.check_selector`, where
everybody is a candidate, has taken part once and answers every question. A size at which a round would take longer than
``--most-s`` is left out, and so are sizes that a method refuses or whose n^2 distances of updates would not fit into
memory. Not a test: it asserts nothing.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.errors import SelectorError
from fedsim.selectors import SELECTORS, Cohort
from fedsim.testing.server import Server, Trial

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEATURES, MOST_OF_PAIRS = 6, 10_000
OPTIONS: dict[str, dict[str, Any]] = {
    "fedcs": {"deadline_s": 20.0},
    "cpow-d": {"samples": 32},
    "fedcor": {"warmup": 2, "interval": 50},
    "pause-enumeration": {"cohort": 2},
}


def timed(work: Callable[..., Any], took_ms: list[float]) -> Callable[..., Any]:
    """Return a function that also adds what it takes to the last of some numbers."""

    def call(*arguments: Any) -> Any:
        began = time.process_time()
        done = work(*arguments)
        took_ms[-1] += 1e3 * (time.process_time() - began)
        return done

    return call


def play(kind: str, clients: int, cohort: int, rounds: int) -> list[float]:
    """Return milliseconds of each round after everybody has taken part once."""
    options = {name: value for name, value in {"cohort": cohort}.items() if name in SELECTORS.option_names(kind)}
    selector: Any = SELECTORS.make({"kind": kind, **options, **OPTIONS.get(kind, {})}).build()
    took_ms = [0.0]
    for member in ("probe", "select", "observe"):
        if hasattr(selector, member):
            setattr(selector, member, timed(getattr(selector, member), took_ms))
    crowd = Trial("a crowd", clients, delivering=0.9, answering=1.0, silent_every=0, features=FEATURES)
    server = Server(crowd, 0, selector)
    # Some store what they see of a view: they must have seen one before they hear of it.
    server.run_round(1)
    server._close(1, Cohort(np.arange(clients)), server._outcomes(1, np.random.default_rng(0)))
    for number in range(2, rounds + 2):
        took_ms.append(0.0)
        server.run_round(number)
    return took_ms[1:]


def measure(kind: str, cohort: int, rounds: int, most_s: float) -> tuple[list[str], str, str]:
    cells: list[str] = []
    later: list[float] = []
    compares = "update" in SELECTORS.load(kind).needs or SELECTORS.load(kind).uses_labels
    first_ms, growth, limit = 0.0, 1.0, MOST_OF_PAIRS if compares else math.inf
    for clients in SIZES:
        if clients > limit or (later and later[-1] * 10**growth > 1e3 * most_s):
            cells.append("-")
            continue
        try:
            took_ms = play(kind, clients, min(cohort, clients), rounds)
        except (SelectorError, ValueError, MemoryError):
            cells.append("refused")
            continue
        first_ms = took_ms[0]
        later.append(statistics.median(took_ms[1:]))
        if len(later) > 1:
            growth = math.log10(max(later[-1], 1e-3) / max(later[-2], 1e-3))
        cells.append(f"{later[-1]:.2f}" if later[-1] < 10 else f"{later[-1]:.0f}")
    return cells, f"{growth:.2f}" if len(later) > 1 else "-", f"{first_ms:.0f}" if later else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time selections.")
    parser.add_argument("kinds", nargs="*", help="kinds of selectors; all of them if none is named")
    parser.add_argument("--cohort", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most-s", type=float, default=10.0)
    given = parser.parse_args()
    sizes = "".join(f"{f'10^{round(math.log10(size))}':>10}" for size in SIZES)
    print(f"{'ms per selection':>22}{sizes}{'growth':>8}{'first':>8}", flush=True)
    for kind in given.kinds or sorted(SELECTORS.builtin):
        cells, growth, first = measure(kind, given.cohort, given.rounds, given.most_s)
        print(f"{kind:>22}{''.join(f'{cell:>10}' for cell in cells)}{growth:>8}{first:>8}", flush=True)


if __name__ == "__main__":
    main()
