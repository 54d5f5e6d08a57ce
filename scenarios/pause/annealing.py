"""How good is PAUSE's simulated annealing? Its chance of the best set (Theorem 4), its energy gap, and its cost.

    python scenarios/pause/annealing.py [--iterations J] [--rounds N]

Tables 1 and 2 take the terms (UCB, g, p) that a run of exact PAUSE on the two-speed crowd has after some rounds.

1. The probability that Algorithm 2 is at a best set after j iterations, K = 12 and m = 3, from the law of its Markov
   chain. Theorem 4 says that it tends to 1 for kappa = 1; beside it is how many iterations that takes.
2. The gap between the energy of the best set seen and that of the exact arg max, for K = 300, m = 15 and K = 3,000,
   m = 60, as a share of the gap of a random set, with the time of a selection and that of the exact method (CPU time).
3. The same gap of the sets that SA-PAUSE itself selects, on the states of its own run of 300 rounds.

What the gap costs in seconds a round, ``figures.py --set learning=none`` prints. All of it takes some minutes
of a processor.
"""

import time
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from annealing_chain import chain_of
from crowds import TAU_MIN_S, Crowd
from paper_runs.command import in_words, options
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause, RoundView
from fedsim.selectors.pause.annealing import TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.pause.pause import best_cohort
from fedsim.selectors.pause.sa_pause import SaPause

WEIGHTS = {30: (100.0, 2.0, 5.0, 1.0), 300: (20.0, 1.0, 10.0, 3.0)}
"""alpha, beta, gamma and zeta of figures 2 and 6."""


class State(NamedTuple):
    """The terms that a selector meets after some rounds, the cohort of the round before, and the one it takes."""

    after: int
    terms: Terms
    last: IntArray
    taken: IntArray


def states(selector: PauseBandit, clients: int, rounds: Collection[int]) -> list[State]:
    """Return the states of one run after some numbers of rounds."""
    found, last = list[State](), [np.zeros(0, dtype=np.int64)]

    def look(own: PauseBandit, view: RoundView, members: IntArray) -> None:
        if view.round - 1 in rounds:
            found.append(State(view.round - 1, own.terms(view), last[-1], members))
        last.append(members)

    Crowd(clients).play(selector, max(rounds) + 1, 0, look)
    return found


def walk_of(terms: Terms, kappa: float, rng: np.random.Generator, last: Collection[int] = ()) -> TailoredAnnealing:
    """Return a walk of Algorithm 2 from a random set, or from the last cohort."""
    start = starting_set(terms.client, terms.m, np.array(last, dtype=np.int64), rng)
    return TailoredAnnealing(terms, start, energy_range(terms, SaPause.omega) / kappa, rng)


def study_best_set(iterations: int) -> None:
    """Print the chances of the best set."""
    marks = [10**power for power in range(len(str(iterations)))]
    met = states(Pause(3, TAU_MIN_S, *WEIGHTS[30]), 12, (100, 300))
    rows = []
    for state, kappa in product(met, (1.0, 10.0, 30.0, 70.0)):
        chain = chain_of(state.terms, np.random.default_rng(0).permutation(12))
        heat = energy_range(state.terms, SaPause.omega) / kappa
        chances = (f"{chance:.3f}" for chance in chain.chances(heat, marks))
        rows.append([f"{state.after}, {kappa:g}", *chances, f"10^{chain.iterations_until_even(heat):.0f}"])
    print("Chance of the best of 220 sets, K = 12, m = 3\n")
    print(markdown(("rounds of PAUSE, kappa", *(f"j = {j}" for j in marks), "equilibrium 1/2 at j"), rows))


def best_and_scale(terms: Terms) -> tuple[float, float]:
    """Return the energy of the exact arg max, and by how much it exceeds the mean of 100 random sets."""
    rng = np.random.default_rng(0)
    sets = [rng.choice(terms.client.size, terms.m, replace=False) for _ in range(100)]
    best = terms.energy(best_cohort(terms.latency, terms.bonus, terms.m))
    return best, best - float(np.mean([terms.energy(members) for members in sets]))


def gaps(met: Sequence[State], kappa: float, marks: Sequence[int], seeds: int, *, warm: bool = False) -> FloatArray:
    """Return the mean gap in per cent and the milliseconds of walks after numbers of iterations, shape (marks, 2)."""
    rows = []
    for state, seed in product(met, range(seeds)):
        best, scale = best_and_scale(state.terms)
        began = time.process_time()
        walk = walk_of(state.terms, kappa, np.random.default_rng([state.after, seed]), state.last if warm else ())
        for done, mark in pairwise([0, *marks]):
            walk.run(mark - done)
            took_s = time.process_time() - began
            rows.append((100.0 * max(best - walk.best_energy, 0.0) / scale, 1e3 * took_s))
    return np.asarray(np.array(rows).reshape(-1, len(marks), 2).mean(axis=0))


def milliseconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the processor time of some work."""
    began = time.process_time()
    for _ in range(times):
        work()
    return 1e3 * (time.process_time() - began) / times


def exact_ms(terms: Terms) -> float:
    return milliseconds(lambda: best_cohort(terms.latency, terms.bonus, terms.m), 20)


def study_gap(rounds: int, iterations: int) -> None:
    """Print what walks lose on the states of a run of exact PAUSE."""
    marks = (iterations // 30, iterations)
    for clients, m in ((300, 15), (3000, 60)):
        covered = clients // m
        last = max(rounds, covered + 10)
        after = [covered + round(part * (last - covered)) for part in (0.1, 0.4, 0.7, 1.0)]
        met = states(Pause(m, TAU_MIN_S, *WEIGHTS[300]), clients, after)
        rows = []
        for warm, kappa in product((False, True), (30.0, 70.0)):
            cells = (f"{gap:.2f} ({ms:.1f})" for gap, ms in gaps(met, kappa, marks, seeds=5, warm=warm))
            rows.append([f"kappa {kappa:g}{', warm start' if warm else ''}", *cells])
        rows.append(["exact arg max", f"0 ({np.median([exact_ms(one.terms) for one in met]):.2f})", ""])
        print(f"Energy gap in % of a random set's (ms), K = {clients}, m = {m}, after {after} rounds\n")
        print(markdown(("search", *(f"{mark} iterations" for mark in marks)), rows))


def study_own_run(rounds: int) -> None:
    """Print what SA-PAUSE's own sets lose in its own run, from the round on in which all clients have taken part."""
    rows = []
    for (clients, m, iterations), kappa in product(((30, 5, 1000), (300, 15, 3000)), (30.0, 70.0)):
        for start in ("random", "last"):
            selector = SaPause(m, TAU_MIN_S, *WEIGHTS[clients], iterations, kappa, start)
            lost = []
            for state in states(selector, clients, range(rounds)):
                if not state.terms.untried:
                    best, scale = best_and_scale(state.terms)
                    lost.append(100.0 * (best - state.terms.energy(state.taken)) / scale)
            missed = f"{np.count_nonzero(np.array(lost) > 1e-7)} of {len(lost)}"
            rows.append(
                [f"{clients}", f"{m}", f"{kappa:g}", start, f"{np.mean(lost):.0f} +- {np.std(lost):.0f}", missed]
            )
    print(f"Energy gap of SA-PAUSE's sets in its own run of {rounds} rounds, in % of a random set's\n")
    print(markdown(("K", "m", "kappa", "start", "gap %", "rounds without the best set"), rows))


def main() -> None:
    asked = options(__doc__, iterations=30_000, rounds=300).parse_args()
    study_best_set(asked.iterations)
    study_gap(asked.rounds, asked.iterations)
    study_own_run(asked.rounds)


if __name__ == "__main__":
    in_words(main)
