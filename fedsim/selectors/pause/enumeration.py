"""PAUSE by enumeration of all sets of m clients, as in its paper; for small crowds."""

import math
from collections.abc import Iterator
from itertools import chain, combinations, islice
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.pause.energy import PauseBandit, Terms

MOST_SETS: Final = 10_000_000
_CHUNK: Final = 2**15


class PauseEnumeration(PauseBandit):
    """Select by the arg max of (14) over all C(K, m) sets, one by one; ties are broken at random.

    It is the paper's "brute search", and an independent check of `fedsim.selectors.pause.pause.Pause`. A crowd of 30
    with 5 per round has 142,506 sets. The published code starts from a best energy of 0 and finds no set if all
    energies are negative; here any energy can be the greatest. Parameters are those of
    `fedsim.selectors.pause.energy.PauseBandit`.
    """

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        return enumerated_cohort(terms.latency, terms.bonus, terms.m, rng)


def enumerated_cohort(ucb: FloatArray, bonus: FloatArray, m: int, rng: np.random.Generator) -> IntArray:
    """Return the m positions that maximise ``min(ucb) + sum(bonus)``, by enumeration of all sets."""
    untried = np.flatnonzero(np.isinf(ucb))
    among = np.arange(ucb.size)
    if untried.size >= m:
        among, ucb = untried, np.zeros(ucb.size)
    sets = math.comb(among.size, m)
    if sets > MOST_SETS:
        raise SelectorError(
            f"enumeration: {sets} sets of {m} among {among.size} candidates are not allowed; "
            f"there must be at most {MOST_SETS}; 'pause' finds the same set without enumeration"
        )
    best, equal = -math.inf, 0
    chosen = among[:m]
    for members in _chunks(among, m):
        energy = ucb[members].min(axis=1) + bonus[members].sum(axis=1)
        top = float(energy.max())
        if top < best:
            continue
        ties = np.flatnonzero(energy == top)
        equal = ties.size + (equal if top == best else 0)
        best = top
        if rng.random() * equal < ties.size:
            chosen = members[rng.choice(ties)]
    return chosen


def _chunks(among: IntArray, m: int) -> Iterator[IntArray]:
    """Yield arrays of shape (sets, m) that contain every set of m once, in lexicographic order."""
    sets = combinations(among.tolist(), m)
    while True:
        numbers = np.fromiter(chain.from_iterable(islice(sets, _CHUNK)), dtype=np.int64)
        if not numbers.size:
            return
        yield numbers.reshape(-1, m)
