"""How good is PAUSE's simulated annealing? Its chance of the best set (Theorem 4), its energy gap, and its cost.

    python scenarios/pause/annealing.py [--walks W] [--iterations J] [--rounds N]

Tables 1 and 2 take the terms (UCB, g, p) that a run of exact PAUSE on the two-speed crowd has after some rounds.

1. The probability that Algorithm 2 is at a best set after j iterations, K = 12 and m = 3: exactly, from the law of its
   Markov chain, and by walks, with the probability that a walk has seen one. Theorem 4 says that the first tends to 1
   for kappa = 1; beside it is how many iterations that takes.
2. The gap between the energy of the best set seen and that of the exact arg max, for K = 300, m = 15 and K = 3,000,
   m = 60, as a share of the gap of a random set, with the time of a selection and that of the exact method (CPU time).
3. The same gap of the sets that SA-PAUSE itself selects, on the states of its own run of 300 rounds.

What the gap costs in seconds a round, ``figures.py --set learning=none`` prints. All of it takes some minutes
of a processor.
"""

import itertools
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from annealing_chain import Chain, chain_of
from crowds import TAU_MIN_S, Crowd
from paper_runs.command import in_words, options
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause, RoundView
from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.pause.pause import best_cohort
from fedsim.selectors.pause.sa_pause import SaPause

CROWDS = ((30, 5, 1000), (300, 15, 3000))
"""Clients, cohort and iterations of figures 2 and 6."""
KAPPAS = (1.0, 10.0, 30.0, 70.0)
WEIGHTS = {30: (100.0, 2.0, 5.0, 1.0), 300: (20.0, 1.0, 10.0, 3.0)}
"""alpha, beta, gamma and zeta of figures 2 and 6."""


@dataclass(frozen=True)
class State:
    """The terms that a selector meets after some rounds, the cohort of the round before, and the one it takes."""

    after: int
    terms: Terms
    last: IntArray
    taken: IntArray


def states(selector: PauseBandit, clients: int, rounds: Collection[int], seed: int = 0) -> list[State]:
    """Return the states of one run after some numbers of rounds."""
    found, last = list[State](), [np.zeros(0, dtype=np.int64)]

    def look(own: PauseBandit, view: RoundView, members: IntArray) -> None:
        if view.round - 1 in rounds:
            found.append(State(view.round - 1, own.terms(view), last[-1], members))
        last.append(members)

    Crowd(clients).play(selector, max(rounds) + 1, seed, look)
    return found


def looked_at(walk: Annealing, marks: list[int], look: Callable[[], Any]) -> list[Any]:
    """Return what is seen of a walk after each number of iterations."""
    found = []
    for done, mark in itertools.pairwise([0, *marks]):
        walk.run(mark - done)
        found.append(look())
    return found


@dataclass(frozen=True)
class Search:
    """One way to search: Algorithm 2 or vanilla SA, from a random set or from the last cohort."""

    kappa: float
    warm: bool = False
    vanilla: bool = False

    @property
    def name(self) -> str:
        return f"{'vanilla, ' if self.vanilla else ''}kappa {self.kappa:g}{', warm start' if self.warm else ''}"

    def walk(self, state: State, rng: np.random.Generator) -> Annealing:
        terms = state.terms
        start = starting_set(terms.client, terms.m, state.last if self.warm else state.last[:0], rng)
        if self.vanilla:
            return Annealing(terms, start, (2 * terms.alpha + terms.gamma + 1) / self.kappa, rng)
        return TailoredAnnealing(terms, start, energy_range(terms, SaPause.omega) / self.kappa, rng)


SEARCHES = (
    *(Search(1.0), Search(30.0), Search(70.0)),
    *(Search(30.0, warm=True), Search(70.0, warm=True), Search(70.0, vanilla=True)),
)


def walks_to_best(chain: Chain, state: State, kappa: float, marks: list[int], walks: int) -> FloatArray:
    """Return the shares of walks at a best set, and of those that have seen one, after each number of iterations."""
    goal = float(chain.energy.max()) - 1e-9
    heat = energy_range(state.terms, SaPause.omega) / kappa
    found = []
    for number in range(walks):
        walk = Search(kappa).walk(state, np.random.default_rng([number, int(1000 * heat)]))
        found.append(looked_at(walk, marks, lambda walk=walk: (walk.energy >= goal, walk.best_energy >= goal)))
    return np.mean(found, axis=0).T


def study_best_set(walks: int, iterations: int) -> None:
    """Print the chances of the best set."""
    marks = sorted({round(10**power) for power in np.arange(0, np.log10(iterations) + 0.01, 0.25)})
    shown = [marks.index(10**power) for power in range(5) if 10**power in marks]
    rows = []
    for state, kappa in itertools.product(states(Pause(3, TAU_MIN_S, *WEIGHTS[30]), 12, (100, 300)), KAPPAS):
        chain = chain_of(state.terms, np.random.default_rng(0).permutation(12))
        heat = energy_range(state.terms, SaPause.omega) / kappa
        chances, (on, seen) = chain.chances(heat, marks), walks_to_best(chain, state, kappa, marks, walks)
        cells = (f"{chances[i]:.3f} ({on[i]:.3f}; {seen[i]:.3f})" for i in shown)
        rows.append([f"{state.after}, {kappa:g}", *cells, f"10^{chain.iterations_until_even(heat):.0f}"])
    print(f"Chance of the best of 220 sets, K = 12, m = 3, {walks} walks: exact (walks; seen by then)\n")
    heads = ("rounds of PAUSE, kappa", *(f"j = {marks[i]}" for i in shown), "equilibrium 1/2 at j")
    print(markdown(heads, rows))


def best_and_scale(terms: Terms) -> tuple[float, float]:
    """Return the energy of the exact arg max, and by how much it exceeds the mean of 100 random sets."""
    rng = np.random.default_rng(0)
    sets = [rng.choice(terms.client.size, terms.m, replace=False) for _ in range(100)]
    best = terms.energy(best_cohort(terms.latency, terms.bonus, terms.m))
    return best, best - float(np.mean([terms.energy(members) for members in sets]))


def quality(search: Search, met: list[State], marks: list[int], seeds: int) -> FloatArray:
    """Return gap, lost energy, share of best sets and milliseconds of one way to search after numbers of iterations."""
    rows = []
    for state, seed in itertools.product(met, range(seeds)):
        best, scale = best_and_scale(state.terms)
        began = time.process_time()
        walk = search.walk(state, np.random.default_rng([state.after, seed]))
        seen = looked_at(walk, marks, lambda walk=walk, began=began: (walk.best_energy, time.process_time() - began))
        lost = [max(best - energy, 0.0) for energy, _ in seen]
        rows.append([(one / scale, one, one < 1e-9, 1e3 * took_s) for one, (_, took_s) in zip(lost, seen, strict=True)])
    return np.mean(rows, axis=0).T


def milliseconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the processor time of some work."""
    began = time.process_time()
    for _ in range(times):
        work()
    return 1e3 * (time.process_time() - began) / times


def exact_ms(terms: Terms) -> float:
    return milliseconds(lambda: best_cohort(terms.latency, terms.bonus, terms.m), 20)


def study_gap(rounds: int, iterations: int, seeds: int = 5) -> None:
    marks = [mark for mark in (300, 1000, 3000, 10_000, 30_000) if mark <= 3 * iterations]
    for clients, m in ((300, 15), (3000, 60)):
        covered = clients // m
        last = max(rounds, covered + 10)
        after = [covered + round(part * (last - covered)) for part in (0.1, 0.4, 0.7, 1.0)]
        met = states(Pause(m, TAU_MIN_S, *WEIGHTS[300]), clients, after)
        rows = []
        for search in SEARCHES:
            gap, _, hit, took_ms = quality(search, met, marks, seeds)
            columns = zip(gap, hit, took_ms, strict=True)
            rows.append([search.name, *(f"{100 * g:.2f} ({100 * h:.0f}; {ms:.1f})" for g, h, ms in columns)])
        took = f"0 (100; {np.median([exact_ms(one.terms) for one in met]):.2f})"
        rows.append(["exact arg max", took, *[""] * (len(marks) - 1)])
        crowd = f"K = {clients}, m = {m}, after {after} rounds"
        print(f"Energy gap in % of a random set's (best found in %; ms), {crowd}\n")
        print(markdown(("search", *(f"{mark} iterations" for mark in marks)), rows))


def study_own_run(rounds: int) -> None:
    """Print what SA-PAUSE's own sets lose in its own run, from the round on in which all clients have taken part."""
    rows = []
    for (clients, m, iterations), kappa, start in itertools.product(CROWDS, (30.0, 70.0), ("random", "last")):
        options: dict[str, Any] = {"iterations": iterations, "kappa": kappa, "start": start}
        gaps = []
        for state in states(SaPause(m, TAU_MIN_S, *WEIGHTS[clients], **options), clients, range(rounds)):
            if not state.terms.untried:
                best, scale = best_and_scale(state.terms)
                gaps.append(100.0 * (best - state.terms.energy(state.taken)) / scale)
        missed = f"{np.count_nonzero(np.array(gaps) > 1e-7)} of {len(gaps)}"
        rows.append([str(clients), str(m), f"{kappa:g}", start, f"{np.mean(gaps):.0f} +- {np.std(gaps):.0f}", missed])
    print(f"Energy gap of SA-PAUSE's sets in its own run of {rounds} rounds, in % of a random set's\n")
    print(markdown(("K", "m", "kappa", "start", "gap %", "rounds without the best set"), rows))


def main() -> None:
    asked = options(__doc__, walks=400, iterations=10_000, rounds=300).parse_args()
    study_best_set(asked.walks, asked.iterations)
    study_gap(asked.rounds, asked.iterations)
    study_own_run(asked.rounds)


if __name__ == "__main__":
    in_words(main)
