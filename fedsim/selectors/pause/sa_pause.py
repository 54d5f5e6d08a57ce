"""SA-PAUSE and vanilla SA: PAUSE with simulated annealing instead of the arg max of (14).

`fedsim.selectors.pause.pause.Pause` finds the exact arg max faster. The two selectors here reproduce section IV of the
paper and show the effect of the approximation.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from fedsim.arrays import IntArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.options import Above0, Count
from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.pause.pause import best_cohort
from fedsim.units import Bound


@dataclass(eq=False, repr=False)
class AnnealedPause(PauseBandit):
    """Search for a set of great energy (18) by simulated annealing.

    With m untried candidates, every set of these has infinite energy and there is no search: the m of greatest
    ``alpha g + gamma p`` are taken, ties at random (the published code takes any m, which is equal for clients with
    equal amounts of data).

    Parameters
    ----------
    cohort, tau_min_s, alpha, beta, gamma, zeta, time_index
        As in `fedsim.selectors.pause.energy.PauseBandit`.
    iterations : int >= 1
        Number of neighbours evaluated. The paper does not state it; its published runs have 500 and 1,000 with
        30 clients, 3,000 and 4,000 with 300.
    kappa : float > 0
        Divisor of the temperature (section V-D). 1 is Algorithm 2, for which Theorem 4 holds; with feasible numbers of
        iterations it is close to a random walk. The paper has 30 for large crowds, the logs of its published runs 70.
    start : "random" or "last"
        Start of a search: a random set as in Algorithm 2, or the previous round's cohort (a warm start), in which
        members that are no candidates now are replaced at random.
    """

    iterations: Annotated[Count, Bound(0, 10**6)] = 3000
    kappa: Above0[float] = 30.0
    start: Literal["random", "last"] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._last: IntArray = np.zeros(0, dtype=np.int64)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        cohort = super().select(view, rng)
        self._last = cohort.client
        return cohort

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        if terms.untried >= terms.m:
            return best_cohort(terms.latency, terms.bonus, terms.m, rng)
        walk = self.walk(terms, rng)
        walk.run(self.iterations)
        return np.sort(np.array(walk.best, dtype=np.int64))

    @abstractmethod
    def walk(self, terms: Terms, rng: np.random.Generator) -> Annealing:
        """Return a walk at its start, with fewer than m candidates untried."""

    def first(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        kept = self._last if self.start == "last" else self._last[:0]
        return starting_set(terms.client, terms.m, kept, rng)


class SaPause(AnnealedPause):
    """SA-PAUSE: Algorithm 2, over active and passive neighbours.

    C is that of (19) with ``omega`` 1e-9 (a small positive constant in the paper, 0 in the published code). Ties in the
    three sorted lists are broken at random; the published code adds noise of 1e-8 to g and p. Two faults of the
    algorithm are corrected, see `fedsim.selectors.pause.annealing.Annealing`. Without privacy p and its part of C are
    0, and its order is random; the published code leaves the order out. Parameters are those of `AnnealedPause`.
    """

    omega = 1e-9

    def walk(self, terms: Terms, rng: np.random.Generator) -> TailoredAnnealing:
        return TailoredAnnealing(terms, self.first(terms, rng), energy_range(terms, self.omega) / self.kappa, rng)


class VanillaSaPause(AnnealedPause):
    """Vanilla SA (section IV-B): every set that differs in one client is a neighbour.

    C is the paper's ``2 alpha + gamma + 1``, in the paper a bound of the energy differences. It is a bound if UCBs
    differ by at most 1, which zeta and the confidence term of (13) may exceed. Parameters are those of
    `AnnealedPause`.
    """

    def walk(self, terms: Terms, rng: np.random.Generator) -> Annealing:
        heat = (2 * self.alpha + self.gamma + 1) / self.kappa
        return Annealing(terms, self.first(terms, rng), heat, rng)
