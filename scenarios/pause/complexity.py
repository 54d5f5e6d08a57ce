"""How does the work of PAUSE's searches grow with the crowd? Table I of its paper, counted and timed.

    python scenarios/pause/complexity.py [--sets N]

K users, a tenth of them selected, and the terms that a run of exact PAUSE on the two-speed crowd has after each user
took part. Counted are the sets that brute force looks at, and the neighbours of a set in both graphs: of Algorithm 2 by
its rules R1 and R2, of random sets and of the best set of a walk of 3,000 iterations. Timed are 1,000 iterations of
both walks, which draw one neighbour and never list all of them, the exact arg max of fedsim, and enumeration where
there are few sets. It takes some seconds.
"""

import math
from functools import partial

import numpy as np
from annealing import WEIGHTS, Search, exact_ms, milliseconds, states
from crowds import TAU_MIN_S
from paper_runs.command import in_words, options
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause
from fedsim.selectors.pause.enumeration import PauseEnumeration

CROWDS = (10, 20, 30, 100, 300, 1000, 3000)
MOST_SETS = 200_000
KAPPA = 70.0
HEADS = (
    *("K", "m", "sets, power of 10", "neighbours, vanilla", "Algorithm 2, random sets", "after a walk"),
    *("enumeration ms", "1,000 iterations, vanilla ms", "Algorithm 2 ms", "exact arg max ms"),
)


def neighbours(lists: list[FloatArray], members: IntArray) -> int:
    """Return how many neighbours a set has.

    One of its users leaves, one of the others enters (R1), and the one that leaves is the lowest of the set, or the one
    that enters is the lowest of the new set, in one of the lists (R2).
    """
    others = np.setdiff1d(np.arange(lists[0].size), members)
    joined = np.zeros((members.size, others.size), dtype=np.bool_)
    for values in lists:
        rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        own = rank[members]
        joined[np.argmin(own)] = True
        low = np.sort(own)
        # Without its lowest user the set's lowest is the second one.
        least = np.where(own == low[0], low[1] if low.size > 1 else rank.size, low[0])
        joined |= rank[others][None] < least[:, None]
    return int(np.count_nonzero(joined))


def row(clients: int, sets: int) -> list[float]:
    """Return one row of the table; NaN where enumeration would take too long."""
    m = max(2, clients // 10)
    weights, covered = WEIGHTS[300], math.ceil(clients / m)
    (state,) = states(Pause(m, TAU_MIN_S, *weights), clients, [covered + 10])
    terms = state.terms
    lists = [np.asarray(values) for values in (terms.latency, terms.privacy, terms.generalisation)]
    rng = np.random.default_rng(0)
    drawn = [rng.choice(clients, m, replace=False) for _ in range(sets)]
    tailored, vanilla = (Search(KAPPA, vanilla=one).walk(state, np.random.default_rng(1)) for one in (False, True))
    walked_ms = [milliseconds(partial(walk.run, 1000)) for walk in (tailored, vanilla)]
    tailored.run(2000)
    enumerated = partial(PauseEnumeration(m, TAU_MIN_S, *weights).search, terms, rng)
    return [
        clients,
        m,
        math.log10(math.comb(clients, m)),
        m * (clients - m),
        float(np.mean([neighbours(lists, members) for members in drawn])),
        float(neighbours(lists, np.asarray(tailored.best))),
        milliseconds(enumerated) if math.comb(clients, m) <= MOST_SETS else math.nan,
        walked_ms[1],
        walked_ms[0],
        exact_ms(terms),
    ]


def main() -> None:
    asked = options(__doc__, sets=200).parse_args()
    rows = [row(clients, asked.sets) for clients in CROWDS]
    print(markdown(HEADS, [["-" if math.isnan(value) else f"{value:.4g}" for value in values] for values in rows]))
    large = np.log(np.array(rows)[3:])
    powers = {column: np.polyfit(large[:, 0], large[:, column], 1)[0] for column in (3, 4, 5, 7, 8, 9)}
    print("from K = 100 on, powers of K: " + ", ".join(f"{HEADS[at]} {power:.2f}" for at, power in powers.items()))


if __name__ == "__main__":
    in_words(main)
