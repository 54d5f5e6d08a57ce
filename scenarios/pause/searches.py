"""Searches of PAUSE for a set of great energy: walks of annealing, the exact one, and what a set misses."""

from collections.abc import Collection, Sequence
from itertools import pairwise, product
from time import process_time
from timeit import timeit
from typing import NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import Terms
from fedsim.selectors.pause.pause import best_cohort
from fedsim.selectors.pause.sa_pause import SaPause


class Walk(NamedTuple):
    """A way to walk: Algorithm 2 or vanilla annealing, from a random set or from the last cohort."""

    kappa: float
    warm: bool = False
    vanilla: bool = False

    @property
    def name(self) -> str:
        return f"{'vanilla, ' if self.vanilla else ''}kappa {self.kappa:g}{', warm start' if self.warm else ''}"

    def begin(self, terms: Terms, rng: np.random.Generator, last: Collection[int] = ()) -> Annealing:
        start = starting_set(terms.client, terms.m, np.array(last if self.warm else (), dtype=np.int64), rng)
        if self.vanilla:
            return Annealing(terms, start, (2 * terms.alpha + terms.gamma + 1) / self.kappa, rng)
        return TailoredAnnealing(terms, start, energy_range(terms, SaPause.omega) / self.kappa, rng)


def gap(terms: Terms, energy: float) -> float:
    """Return what an energy lacks to that of the exact arg max, in per cent of what 100 random sets lack on average."""
    rng = np.random.default_rng(0)
    sets = [rng.choice(terms.client.size, terms.m, replace=False) for _ in range(100)]
    best = terms.energy(best_cohort(terms.latency, terms.bonus, terms.m))
    return 100.0 * max(best - energy, 0.0) / (best - float(np.mean([terms.energy(members) for members in sets])))


def gaps(way: Walk, met: Sequence[tuple[int, Terms, IntArray]], marks: Sequence[int], seeds: int) -> FloatArray:
    """Return mean gap and milliseconds of walks after numbers of iterations; met are rounds, terms, last cohorts."""
    rows = []
    for (after, terms, last), seed in product(met, range(seeds)):
        began = process_time()
        walk = way.begin(terms, np.random.default_rng([after, seed]), last)
        for done, mark in pairwise([0, *marks]):
            walk.run(mark - done)
            rows.append((terms, walk.best_energy, 1e3 * (process_time() - began)))
    found = [(gap(own, energy), took_ms) for own, energy, took_ms in rows]
    return np.asarray(np.array(found).reshape(-1, len(marks), 2).mean(axis=0))


def exact_ms(terms: Terms) -> float:
    """Return the processor time of the exact method."""
    return 50.0 * timeit(lambda: best_cohort(terms.latency, terms.bonus, terms.m), timer=process_time, number=20)
