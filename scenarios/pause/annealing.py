"""How good is PAUSE's simulated annealing? Its chance of the best set (Theorem 4), its energy gap, and its cost.

    python scenarios/pause/annealing.py [--walks W] [--iterations J] [--rounds N]

Tables 1 and 2 take the terms (UCB, g, p) that a run of exact PAUSE on the two-speed crowd has after some rounds.

1. The probability that Algorithm 2 is at a best set after j iterations, K = 12 and m = 3: exactly, from the law of its
   Markov chain, and by walks, with the probability that a walk has seen one. Theorem 4 says that the first tends to 1
   for kappa = 1; beside it is how many iterations that takes.
2. The gap between the energy of the best set seen and that of the exact arg max, for K = 300, m = 15 and K = 3,000,
   m = 60, as a share of the gap of a random set, with the time of a selection and that of the exact method (CPU time).
3. The same gap of the sets that SA-PAUSE itself selects, on the states of its own run of 300 rounds.
4. The cost of the gap: mean round time over 300 rounds that are selected by annealing, beside the published logs.

All of it takes some minutes of a processor.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from annealing_chain import Chain, chain_of
from array_rounds import TAU_MIN_S, Crowd, play, two_speed
from paper_runs.command import in_words, sizes
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause
from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.pause.pause import best_cohort
from fedsim.selectors.pause.sa_pause import SaPause

Weights = tuple[float, float, float, float]

CROWDS = ((30, 5, 1000), (300, 15, 3000))
"""Clients, cohort and iterations of figures 2 and 6."""
STARTS: tuple[Literal["random", "last"], ...] = ("random", "last")
KAPPAS = (1.0, 10.0, 30.0, 70.0)
OMEGA = SaPause.omega
WEIGHTS: dict[int, Weights] = {
    30: (100.0, 2.0, 5.0, 1.0),
    300: (20.0, 1.0, 10.0, 3.0),
}  # alpha, beta, gamma, zeta of figures 2 and 6
LOGGED_S = {30: "PAUSE 0.51 to 0.56, SA-PAUSE 0.60", 300: "SA-PAUSE 0.71 to 0.78"}


@dataclass(frozen=True)
class State:
    """The terms that PAUSE meets after some rounds, and the cohort of the round before."""

    after: int
    terms: Terms
    last: IntArray


def states(crowd: Crowd, m: int, weights: Weights, rounds: list[int], seed: int = 0) -> Iterator[State]:
    """Yield the states of one run of exact PAUSE."""
    selector, last = Pause(m, TAU_MIN_S, *weights), np.zeros(0, dtype=np.int64)
    for played in play(selector, crowd, rounds[-1] + 1, seed):
        if played.view.round - 1 in rounds:
            yield State(played.view.round - 1, selector.terms(played.view), last)
        last = played.members


def walks_to_best(
    chain: Chain, terms: Terms, heat: float, marks: list[int], walks: int
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of walks at a best set, and of those that have seen one, after each number of iterations."""
    goal = float(chain.energy.max()) - 1e-9
    on, seen = np.zeros(len(marks)), np.zeros(len(marks))
    for number in range(walks):
        rng = np.random.default_rng([number, int(1000 * heat)])
        walk = TailoredAnnealing(terms, starting_set(terms.client, terms.m, terms.client[:0], rng), heat, rng)
        done = 0
        for i, mark in enumerate(marks):
            walk.run(mark - done)
            done = mark
            on[i] += walk.energy >= goal
            seen[i] += walk.best_energy >= goal
    return on / walks, seen / walks


def study_best_set(walks: int, iterations: int) -> None:
    """Print the chances of the best set."""
    marks = sorted({round(10**power) for power in np.arange(0, np.log10(iterations) + 0.01, 0.25)})
    shown = [marks.index(10**power) for power in range(5) if 10**power in marks]
    rows = []
    for state in states(two_speed(12), 3, WEIGHTS[30], [100, 300]):
        chain = chain_of(state.terms, np.random.default_rng(0).permutation(12))
        for kappa in KAPPAS:
            heat = energy_range(state.terms, OMEGA) / kappa
            exact = chain.chances(heat, marks)
            on, seen = walks_to_best(chain, state.terms, heat, marks, walks)
            cells = (f"{exact[i]:.3f} ({on[i]:.3f}; {seen[i]:.3f})" for i in shown)
            rows.append([f"{state.after}, {kappa:g}", *cells, f"10^{chain.iterations_until_even(heat):.0f}"])
    print(f"Chance of the best of 220 sets, K = 12, m = 3, {walks} walks: exact (walks; seen by then)\n")
    heads = ("rounds of PAUSE, kappa", *(f"j = {marks[i]}" for i in shown), "equilibrium 1/2 at j")
    print(markdown(heads, rows))


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
        return TailoredAnnealing(terms, start, energy_range(terms, OMEGA) / self.kappa, rng)


SEARCHES = (
    *(Search(1.0), Search(30.0), Search(70.0)),
    *(Search(30.0, warm=True), Search(70.0, warm=True), Search(70.0, vanilla=True)),
)


def best_and_scale(terms: Terms) -> tuple[float, float]:
    """Return the energy of the exact arg max, and by how much it exceeds the mean of 100 random sets."""
    rng = np.random.default_rng(0)
    sets = [rng.choice(terms.client.size, terms.m, replace=False) for _ in range(100)]
    exact = terms.energy(best_cohort(terms.latency, terms.bonus, terms.m))
    return exact, exact - float(np.mean([terms.energy(members) for members in sets]))


def study_own_run(rounds: int) -> None:
    """Print what SA-PAUSE's own sets lose in its own run, from the round on in which all clients have taken part."""
    rows = []
    for (clients, m, iterations), kappa, start in itertools.product(CROWDS, (30.0, 70.0), STARTS):
        options = (m, TAU_MIN_S, *WEIGHTS[clients])
        selector, gaps = SaPause(*options, iterations=iterations, kappa=kappa, start=start), list[float]()
        for played in play(selector, two_speed(clients), rounds, 0):
            terms = selector.terms(played.view)
            if not terms.untried:
                exact, scale = best_and_scale(terms)
                gaps.append(100.0 * (exact - terms.energy(played.members)) / scale)
        missed = f"{np.count_nonzero(np.array(gaps) > 1e-7)} of {len(gaps)}"
        rows.append([str(clients), str(m), f"{kappa:g}", start, f"{np.mean(gaps):.0f} +- {np.std(gaps):.0f}", missed])
    print(f"Energy gap of SA-PAUSE's sets in its own run of {rounds} rounds, in % of a random set's\n")
    print(markdown(("K", "m", "kappa", "start", "gap %", "rounds without the best set"), rows))


class Quality(NamedTuple):
    """Gap and time of one way to search, at growing numbers of iterations; means over states and seeds."""

    gap: FloatArray
    lost: FloatArray
    hit: FloatArray
    took_ms: FloatArray


def quality(search: Search, met: list[State], marks: list[int], seeds: int) -> Quality:
    """Return how good one way to search is, from walks that are looked at on their way."""
    rows = []
    for state in met:
        exact, scale = best_and_scale(state.terms)
        for seed in range(seeds):
            began = time.process_time()
            walk = search.walk(state, np.random.default_rng([state.after, seed]))
            done = 0
            for mark in marks:
                walk.run(mark - done)
                done = mark
                lost = max(exact - walk.best_energy, 0.0)
                rows.append((lost / scale, lost, lost < 1e-9, 1e3 * (time.process_time() - began)))
    return Quality(*np.array(rows).reshape(-1, len(marks), 4).mean(axis=0).T)


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def exact_ms(met: list[State]) -> float:
    """Return the median time of the exact arg max."""
    asked = [(one.terms.latency, one.terms.bonus, one.terms.m) for one in met for _ in range(20)]
    searches = [partial(best_cohort, *one, np.random.default_rng(0)) for one in asked]
    return float(np.median([milliseconds(search) for search in searches]))


def study_gap(rounds: int, iterations: int, seeds: int = 5) -> None:
    marks = [mark for mark in (300, 1000, 3000, 10_000, 30_000) if mark <= 3 * iterations]
    for clients, m in ((300, 15), (3000, 60)):
        covered = clients // m
        last = max(rounds, covered + 10)
        after = [covered + round(part * (last - covered)) for part in (0.1, 0.4, 0.7, 1.0)]
        met = list(states(two_speed(clients), m, WEIGHTS[300], after))
        rows = []
        for search in SEARCHES:
            found = quality(search, met, marks, seeds)
            columns = zip(found.gap, found.hit, found.took_ms, strict=True)
            rows.append([search.name, *(f"{100 * g:.2f} ({100 * h:.0f}; {ms:.1f})" for g, h, ms in columns)])
        rows.append(["exact arg max", f"0 (100; {exact_ms(met):.2f})", *[""] * (len(marks) - 1)])
        crowd = f"K = {clients}, m = {m}, after {after} rounds"
        print(f"Energy gap in % of a random set's (best found in %; ms), {crowd}\n")
        print(markdown(("search", *(f"{mark} iterations" for mark in marks)), rows))


def study_rounds(rounds: int, seeds: int = 3) -> None:
    """Print what annealing costs in simulated seconds and in time to select."""
    rows = []
    for clients, m, iterations in CROWDS:
        options = (m, TAU_MIN_S, *WEIGHTS[clients])
        annealed = partial(SaPause, *options, iterations=iterations)
        methods: dict[str, Callable[[], PauseBandit]] = {
            "exact": partial(Pause, *options),
            "kappa 30": partial(annealed, kappa=30.0),
            "kappa 70": partial(annealed, kappa=70.0),
            "kappa 70, warm start": partial(annealed, kappa=70.0, start="last"),
        }
        for name, make in methods.items():
            began = time.process_time()
            slowest = [
                float(played.duration_s[played.members].max())
                for seed in range(seeds)
                for played in play(make(), two_speed(clients), rounds, seed)
            ]
            took_ms = 1e3 * (time.process_time() - began) / len(slowest)
            rows.append([str(clients), name, f"{np.mean(slowest):.3f}", f"{took_ms:.2f}", LOGGED_S[clients]])
    print(f"Mean round time over {rounds} rounds, mean of {seeds} seeds\n")
    print(markdown(("K", "search", "mean round s", "ms a selection", "the authors' logs, s"), rows))


def main() -> None:
    asked = sizes(__doc__, walks=400, iterations=10_000, rounds=300)
    study_best_set(asked.walks, asked.iterations)
    study_gap(asked.rounds, asked.iterations)
    study_own_run(asked.rounds)
    study_rounds(asked.rounds)


if __name__ == "__main__":
    in_words(main)
