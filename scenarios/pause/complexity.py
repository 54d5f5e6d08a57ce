"""How does the work of PAUSE's searches grow with the crowd? Table I of its paper, counted and timed.

    python scenarios/pause/complexity.py [--sets N]

K users, a tenth of them selected, with the terms of a run of exact PAUSE after each user took part. Counted are the
sets of brute force and the neighbours of a set: of Algorithm 2 by R1 and R2, of random sets and of the best set of a
walk of 3,000 iterations. Timed are 1,000 iterations of both walks, which never list all neighbours, and the exact arg
max of fedsim. It takes some seconds.
"""

import math
from functools import partial
from time import process_time
from timeit import timeit

import numpy as np
from crowds import TAU_MIN_S, WEIGHTS, Crowd
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from scipy.stats import rankdata
from searches import Walk, exact_ms

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause

COUNTED = ("sets, power of 10", "neighbours, vanilla", "Algorithm 2, random sets", "after a walk")
HEADS = ("K", *COUNTED, "1,000 iterations, vanilla ms", "Algorithm 2 ms", "exact arg max ms")


def neighbours(lists: FloatArray, members: IntArray) -> int:
    """Return how many sets differ in one user (R1) such that the one lacking is the lowest in one of the lists (R2)."""
    ranks = rankdata(lists, "ordinal", axis=1)
    own, m = ranks[:, members], members.size
    lowest = np.unique(own.argmin(axis=1)).size
    below = np.count_nonzero((ranks < own.min(axis=1, keepdims=True)).any(axis=0))
    # A lowest user leaves for any other; another one leaves for a user that is the lowest of the new set.
    return int(lowest * (lists.shape[1] - m) + (m - lowest) * below)


def main() -> None:
    sets, rows = options(__doc__, sets=200).parse_args().sets, []
    for clients in (30, 100, 300, 1000, 3000):
        m, rng = max(2, clients // 10), np.random.default_rng(0)
        selector = Pause(m, TAU_MIN_S, *WEIGHTS[300])
        *_, terms = (selector.terms(view) for view, _ in Crowd(clients).play(selector, math.ceil(clients / m) + 11))
        walks = [Walk(70.0, vanilla=vanilla).begin(terms, np.random.default_rng(1)) for vanilla in (True, False)]
        walked_ms = [1e3 * timeit(partial(walk.run, 1000), timer=process_time, number=1) for walk in walks]
        walks[1].run(2000)
        count = partial(neighbours, np.array([terms.latency, terms.privacy, terms.generalisation]))
        drawn = float(np.mean([count(rng.choice(clients, m, replace=False)) for _ in range(sets)]))
        counted = [math.log10(math.comb(clients, m)), m * (clients - m), drawn, count(np.array(walks[1].best))]
        rows.append([clients, *counted, *walked_ms, exact_ms(terms)])
    print(markdown(HEADS, [[f"{value:.4g}" for value in values] for values in rows]))
    large = np.log(np.array(rows)[1:])
    powers = (f"{head} {np.polyfit(large[:, 0], large[:, at], 1)[0]:.2f}" for at, head in enumerate(HEADS) if at > 1)
    print("from K = 100 on, powers of K: " + ", ".join(powers))


if __name__ == "__main__":
    in_words(main)
