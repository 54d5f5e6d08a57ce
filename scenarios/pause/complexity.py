"""How does the work of PAUSE's searches grow with the crowd? Table I of its paper, counted and timed.

    python scenarios/pause/complexity.py [--sets N]

K users, a tenth of them selected, and the terms that a run of exact PAUSE on the two-speed crowd has after each user
took part. Counted are the sets that brute force looks at, and the neighbours of a set in both graphs: of Algorithm 2 by
its rules R1 and R2, of random sets and of the best set of a walk of 3,000 iterations. Timed are 1,000 iterations of
both walks, which draw one neighbour and never list all of them, and the exact arg max of fedsim. It takes some seconds.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from annealing import WEIGHTS, exact_ms, milliseconds, states, walk_of
from crowds import TAU_MIN_S
from paper_runs.command import in_words, options
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause
from fedsim.selectors.pause.sa_pause import VanillaSaPause

CROWDS = (30, 100, 300, 1000, 3000)
KAPPA = 70.0
HEADS = (
    *("K", "sets, power of 10", "neighbours, vanilla", "Algorithm 2, random sets", "after a walk"),
    *("1,000 iterations, vanilla ms", "Algorithm 2 ms", "exact arg max ms"),
)


def neighbours(lists: Sequence[FloatArray], members: IntArray) -> int:
    """Return how many neighbours a set has.

    One of its users leaves, one of the others enters (R1), and the one that leaves is the lowest of the set, or the one
    that enters is the lowest of the new set, in one of the lists (R2).
    """
    others = np.setdiff1d(np.arange(lists[0].size), members)
    joined = np.zeros((members.size, others.size), dtype=np.bool_)
    for values in lists:
        rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        own = rank[members]
        lowest, second = np.argsort(own)[:2]
        joined[lowest] = True
        # Without its lowest user the set's lowest is the second one.
        joined |= rank[others] < np.where(np.arange(own.size) == lowest, own[second], own[lowest])[:, None]
    return int(np.count_nonzero(joined))


def row(clients: int, sets: int) -> list[float]:
    """Return one row of the table."""
    m, rng = max(2, clients // 10), np.random.default_rng(0)
    (state,) = states(Pause(m, TAU_MIN_S, *WEIGHTS[300]), clients, [math.ceil(clients / m) + 10])
    terms = state.terms
    lists = (terms.latency, terms.privacy, terms.generalisation)
    vanilla = VanillaSaPause(m, TAU_MIN_S, *WEIGHTS[300], kappa=KAPPA).walk(terms, np.random.default_rng(1))
    tailored = walk_of(terms, KAPPA, np.random.default_rng(1))
    walked_ms = [milliseconds(partial(walk.run, 1000)) for walk in (vanilla, tailored)]
    tailored.run(2000)
    drawn = [neighbours(lists, rng.choice(clients, m, replace=False)) for _ in range(sets)]
    counted = [m * (clients - m), float(np.mean(drawn)), neighbours(lists, np.asarray(tailored.best))]
    return [clients, math.log10(math.comb(clients, m)), *counted, *walked_ms, exact_ms(terms)]


def main() -> None:
    asked = options(__doc__, sets=200).parse_args()
    rows = [row(clients, asked.sets) for clients in CROWDS]
    print(markdown(HEADS, [[f"{value:.4g}" for value in values] for values in rows]))
    large = np.log(np.array(rows)[1:])
    powers = (f"{head} {np.polyfit(large[:, 0], large[:, at], 1)[0]:.2f}" for at, head in enumerate(HEADS) if at > 1)
    print("from K = 100 on, powers of K: " + ", ".join(powers))


if __name__ == "__main__":
    in_words(main)
