"""The exact law of a walk of simulated annealing over small crowds, from the paper's definition of neighbours.

Nothing of fedsim's walk is used: sets, neighbours (R1 and R2) and moves are listed, and the law of the walk's place is
carried from one iteration to the next.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.pause.energy import Terms


@dataclass(frozen=True)
class Chain:
    """All sets of m clients, in lexicographic order, and which of them are neighbours."""

    sets: IntArray
    energy: FloatArray
    joined: NDArray[np.bool_]

    @property
    def best(self) -> NDArray[np.bool_]:
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

    def iterations_until_even(self, heat: float) -> float:
        """Return the log10 of the iterations after which the walk's equilibrium gives the best sets one half.

        At a fixed temperature tau the equilibrium is proportional to the number of neighbours times ``exp(E / tau)``.
        """
        degree, short = self.joined.sum(axis=1), self.energy - self.energy.max()

        def excess(log_steps: float) -> float:
            weight = degree * np.exp(short * log_steps / heat)
            return float(weight[self.best].sum() / weight.sum()) - 0.5

        upper = 1.0
        while excess(upper) < 0:
            upper *= 2
        return float(brentq(excess, 0.0, upper)) / float(np.log(10)) if excess(0.0) < 0 else 0.0


def chain_of(terms: Terms, ties: IntArray) -> Chain:
    """Return the chain of Algorithm 2; ``ties`` ranks the clients where terms are equal."""
    clients = range(terms.latency.size)
    sets = [frozenset(members) for members in combinations(clients, terms.m)]
    number = {members: i for i, members in enumerate(sets)}
    joined = np.zeros((len(sets), len(sets)), dtype=np.bool_)
    for members in sets:
        for values in (terms.latency, terms.privacy, terms.generalisation):
            lowest = min(members, key=lambda k, values=values: (values[k], ties[k]))  # type: ignore[misc]
            for comes in set(clients) - members:
                joined[number[members], number[members - {lowest} | {comes}]] = True
    array = np.array([sorted(members) for members in sets])
    return Chain(array, np.array([terms.energy(members) for members in array]), joined | joined.T)
