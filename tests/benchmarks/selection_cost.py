"""Milliseconds that a selection takes, for every selector in the catalogue and crowds of 10^3 to 10^6 candidates.

    python -m tests.benchmarks.selection_cost [KIND ...] [--cohort 100] [--rounds 5] [--most-s 10]

prints a table: for each size the median of the later rounds, question, selection and feedback together, in milliseconds
of processor time (set OMP_NUM_THREADS=1); the exponent with which that grew over the last step; and the first
round, with whatever is built then, at the largest size. Everybody is a candidate, has been heard from once and answers
every question. A size at which a round would take longer than ``--most-s`` is left
out, and so are sizes that a method refuses or whose n^2 distances of updates would not fit into memory. Not a test: it
asserts nothing.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.errors import SelectorError
from fedsim.selectors import (
    SELECTORS,
    Answers,
    Cohort,
    OracleView,
    Probe,
    Reports,
    RoundView,
    Selector,
    SelectorPort,
)
from tests.support.views import answers_of, reports_of, view_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIMENSIONS, FEATURES, LABELS, MOST_OF_PAIRS = 16, 6, 10, 10_000
OPTIONS: dict[str, dict[str, Any]] = {
    "fedcs": {"deadline_s": 20.0},
    "cpow-d": {"samples": 32},
    "fedcor": {"warmup": 2, "interval": 50},
    "pause-enumeration": {"cohort": 2},
}


class Crowd:
    """So many clients: what a server knows of them, and what they answer and deliver."""

    def __init__(self, clients: int, seed: int = 0) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.mean_s = rng.uniform(0.1, 1.0, clients)
        self.view = view_of(
            clients,
            samples=rng.integers(10, 200, clients),
            privacy_budget=10.0,
            features=np.exp(rng.standard_normal((clients, FEATURES))),
            up_bits=1e6,
            snr_hz=10.0 ** rng.uniform(5.0, 9.0, clients),
            allocates=True,
            fading_gain=rng.exponential(1.0, clients),
            charge_j=rng.uniform(10.0, 100.0, clients),
            capacity_j=np.full(clients, 100.0),
            charging_w=rng.uniform(0.0, 1.0, clients),
            participation_j=rng.uniform(1.0, 5.0, clients),
            label_histogram=np.random.default_rng([seed, 1]).dirichlet(np.full(LABELS, 0.3), clients),
        )

    def look(self, number: int, selector: Selector) -> RoundView:
        """Return the view of a round, an oracle's if the selector is one."""
        view = replace(self.view, round=number, time_s=10.0 * number)
        if not SelectorPort.of(selector).oracle:
            return view
        return OracleView(
            **vars(view),
            expected_duration_s=self.mean_s,
            coming_duration_s=lambda: self.mean_s,
            stays=lambda _from_s, until_s: self.mean_s * 20.0 >= until_s,
        )

    def answer(self, probe: Probe) -> Answers:
        if probe.asks == "resources":
            times_s = self.mean_s[probe.client]
            return answers_of(probe.client, compute_s=times_s, uplink_s=0.1 * times_s)
        norms = self.rng.random(probe.client.size) if probe.asks == "update_norm" else None
        return answers_of(probe.client, loss=self.rng.random(probe.client.size), update_norm=norms)

    def report(self, number: int, cohort: Cohort, needs: tuple[str, ...]) -> Reports:
        """Return what became of a cohort, and remember it as a server does."""
        client, delivered = cohort.client, self.rng.random(cohort.client.size) < 0.9
        loss = np.where(delivered, self.rng.random(client.size), np.nan)
        measured = dict.fromkeys(needs, loss)
        if "update" in needs:
            updates = self.rng.standard_normal((client.size, DIMENSIONS)).astype(np.float32)
            measured["update"] = np.where(delivered[:, None], updates, np.float32(np.nan))
        self.view.participations[client] += 1
        self.view.last_duration_s[client[delivered]] = self.mean_s[client[delivered]]
        self.view.last_loss[client[delivered]] = loss[delivered]
        made = reports_of(client, self.mean_s[client], delivered=delivered, number=number, time_s=10.0 * number + 1.0)
        return replace(made, loss=loss, measured=measured)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    done = work()
    return done, 1e3 * (time.process_time() - began)


def play(kind: str, clients: int, cohort: int, rounds: int) -> list[float]:
    """Return milliseconds of each round after everybody has been heard from once."""
    options = {name: value for name, value in {"cohort": cohort}.items() if name in SELECTORS.option_names(kind)}
    selector: Any = SELECTORS.make({"kind": kind, **options, **OPTIONS.get(kind, {})}).build()
    needs, crowd, took_ms = SelectorPort.of(selector).needs, Crowd(clients), []
    # Some keep what they see of a view: they must have seen one before they hear of it.
    everybody = crowd.look(1, selector)
    if hasattr(selector, "probe"):
        selector.probe(everybody, np.random.default_rng(0))
    selector.select(everybody, np.random.default_rng(0))
    selector.observe(crowd.report(1, Cohort(everybody.client), needs))
    for number in range(2, rounds + 2):
        view, asked_ms = crowd.look(number, selector), 0.0
        if hasattr(selector, "probe"):
            probe, asked_ms = timed(lambda: selector.probe(view, np.random.default_rng(number)))  # noqa: B023
            if probe is not None:
                view = replace(view, answers=crowd.answer(probe))
        chosen, chose_ms = timed(lambda: selector.select(view, np.random.default_rng([number])))  # noqa: B023
        chosen = chosen if isinstance(chosen, Cohort) else Cohort(np.asarray(chosen))
        reports = crowd.report(number, chosen, needs)
        _, learnt_ms = timed(lambda: selector.observe(reports))  # noqa: B023
        took_ms.append(asked_ms + chose_ms + learnt_ms)
    return took_ms


def measure(kind: str, cohort: int, rounds: int, most_s: float) -> tuple[list[str], str, str]:
    """Return the cells of a row: milliseconds by size, growth, and the first round."""
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
