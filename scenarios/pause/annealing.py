"""What does PAUSE's simulated annealing miss, and what does it cost? Energy gaps to the exact arg max.

    python scenarios/pause/annealing.py [--iterations J] [--rounds N]

On the states of a run of exact PAUSE: gaps of the best sets that walks have seen, of Algorithm 2 from a random set and
from the last cohort (warm start) and of vanilla annealing, with the CPU time of a selection. On those of SA-PAUSE's own
run: gaps of the sets that it selects. ``figures.py --set learning=none`` prints their seconds a round. It takes 80 s.
"""

from itertools import product

import numpy as np
from crowds import TAU_MIN_S, WEIGHTS, Crowd
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from searches import Walk, exact_ms, gap, gaps

from fedsim.selectors import Pause
from fedsim.selectors.pause.sa_pause import SaPause

WALKS = [*(Walk(kappa, warm) for warm, kappa in product((False, True), (30.0, 70.0))), Walk(70.0, vanilla=True)]
OWN = (30, 5, 1000), (300, 15, 3000)  # users, cohort and iterations of figures 2 and 6


def on_exact_states(clients: int, m: int, rounds: int, iterations: int) -> None:
    """Print what walks lose on the states of a run of exact PAUSE."""
    marks, covered, selector = (iterations // 30, iterations), clients // m, Pause(m, TAU_MIN_S, *WEIGHTS[300])
    after = [covered + round(part * max(rounds - covered, 10)) for part in (0.1, 0.4, 0.7, 1.0)]
    seen = [(selector.terms(view), members) for view, members in Crowd(clients).play(selector, after[-1] + 1)]
    met = [(number, seen[number][0], seen[number - 1][1]) for number in after]
    found = {way.name: gaps(way, met, marks, seeds=5) for way in WALKS}
    rows = [[name, *(f"{lost:.2f} ({took_ms:.1f})" for lost, took_ms in of)] for name, of in found.items()]
    rows.append(["exact arg max", f"0 ({np.median([exact_ms(terms) for _, terms, _ in met]):.2f})", ""])
    print(f"Energy gap in % of a random set's (ms), K = {clients}, m = {m}, after {after} rounds\n")
    print(markdown(("search", *(f"{mark} iterations" for mark in marks)), rows))


def in_own_run(rounds: int) -> None:
    """Print what SA-PAUSE's own sets lose in its own run, from the round on in which all clients have taken part."""
    rows = []
    for (clients, m, iterations), kappa, warm in product(OWN, (30.0, 70.0), (False, True)):
        selector = SaPause(m, TAU_MIN_S, *WEIGHTS[clients], iterations, kappa, "last" if warm else "random")
        met = ((selector.terms(view), taken) for view, taken in Crowd(clients).play(selector, rounds))
        lost = np.array([gap(terms, terms.energy(taken)) for terms, taken in met if not terms.untried])
        cells = f"{lost.mean():.0f} +- {lost.std():.0f}", f"{np.count_nonzero(lost > 1e-7)} of {lost.size}"
        rows.append([f"{clients}", f"{m}", f"{kappa:g}", selector.start, *cells])
    print(f"Energy gap of SA-PAUSE's sets in its own run of {rounds} rounds, in % of a random set's\n")
    print(markdown(("K", "m", "kappa", "start", "gap %", "rounds without the best set"), rows))


def main() -> None:
    asked = options(__doc__, iterations=30_000, rounds=300).parse_args()
    for clients, m in ((300, 15), (3000, 60)):
        on_exact_states(clients, m, asked.rounds, asked.iterations)
    in_own_run(asked.rounds)


if __name__ == "__main__":
    in_words(main)
