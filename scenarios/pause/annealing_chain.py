"""The exact law of a walk of simulated annealing over small crowds, from the paper's definition of neighbours.

Nothing of fedsim's walk is used: sets and neighbours (R1 and R2) are listed, and the law of the walk's place is carried
from one iteration to the next.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.pause.energy import Terms


@dataclass(frozen=True)
class Chain:
    """All sets of m clients, in lexicographic order, and which of them are neighbours."""

    sets: IntArray
    energy: FloatArray
    joined: BoolArray

    @property
    def best(self) -> BoolArray:
        """The sets of greatest energy, up to rounding (the paper's J)."""
        return np.asarray(self.energy >= self.energy.max() - 1e-12)

    def chances(self, heat: float, marks: list[int]) -> list[float]:
        """Return the probability of being at a best set after each number of iterations, from a uniform start."""
        here, there = np.nonzero(self.joined)
        share = 1.0 / self.joined.sum(axis=1)[here]
        loss = np.minimum(self.energy[there] - self.energy[here], 0.0)
        law = np.full(self.energy.size, 1.0 / self.energy.size)
        found = []
        for step in range(1, marks[-1] + 1):
            moved = law[here] * share * np.exp(loss * np.log1p(step) / heat)
            law = law + np.bincount(there, moved, law.size) - np.bincount(here, moved, law.size)
            if step in marks:
                found.append(float(law[self.best].sum()))
        return found


def chain_of(terms: Terms, ties: IntArray) -> Chain:
    """Return the chain of Algorithm 2; ``ties`` ranks the clients where terms are equal."""
    sets = np.array(list(combinations(range(terms.latency.size), terms.m)))
    inside = (sets[:, :, None] == np.arange(terms.latency.size)).any(axis=1)
    active = np.zeros((len(sets), len(sets)), dtype=np.bool_)
    for values in (terms.latency, terms.privacy, terms.generalisation):
        rank = np.lexsort((ties, values)).argsort()
        lowest = sets[np.arange(len(sets)), rank[sets].argmin(axis=1)]
        active |= ~inside.T[lowest]
    one_apart = inside.astype(np.int64) @ inside.T == terms.m - 1
    return Chain(sets, np.array([terms.energy(members) for members in sets]), one_apart & (active | active.T))
