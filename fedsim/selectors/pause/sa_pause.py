"""SA-PAUSE and vanilla SA: PAUSE with simulated annealing in place of the arg max of (14).

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning", section IV. `fedsim.selectors.pause.pause.Pause` finds the exact arg max faster; these are here to
reproduce the paper and to measure what the relaxation costs.
"""

from abc import abstractmethod
from typing import Literal

import numpy as np

from fedsim.arrays import IntArray
from fedsim.selectors.contracts import Cohort, RoundView, check_number, check_whole
from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.pause.pause import best_cohort


class AnnealedPause(PauseBandit):
    """Search for a set of great energy (18) by simulated annealing.

    While m candidates are untried, every set of them has infinite energy and nothing is to be searched: m of them
    are taken, of greatest ``alpha g + gamma p`` and at random among equals (the published code takes any m of them,
    which is the same where clients hold equal data).

    Parameters
    ----------
    cohort, tau_min_s, alpha, beta, gamma, zeta, time_index
        As in `fedsim.selectors.pause.energy.PauseBandit`.
    iterations : int >= 1
        How many neighbours are looked at. The paper does not say; its published runs have 500 and 1,000 with
        30 clients, 3,000 and 4,000 with 300.
    kappa : float > 0
        What the temperature is divided by (section V-D). 1 is Algorithm 2, for which Theorem 4 holds and which is
        close to a random walk for any number of iterations one can wait for; the paper has 30 for large crowds, the
        logs of its published runs 70.
    start : "random" or "last"
        Where a search begins: at random as in Algorithm 2, or at the previous round's cohort, a warm start. Members
        that are no candidates any more are replaced at random.
    """

    def __init__(
        self,
        cohort: int,
        tau_min_s: float = 0.05,
        alpha: float = 100.0,
        beta: float = 2.0,
        gamma: float = 5.0,
        zeta: float = 1.0,
        iterations: int = 3000,
        kappa: float = 30.0,
        start: Literal["random", "last"] = "random",
        time_index: Literal["paper", "reference-code"] = "paper",
    ) -> None:
        super().__init__(cohort, tau_min_s, alpha, beta, gamma, zeta, time_index)
        check_whole("iterations", iterations, lowest=1)
        check_number("kappa", kappa, lowest=0, above=True)
        if start not in ("random", "last"):
            raise ValueError(f"start: {start!r} is not allowed; it must be 'random' or 'last'")
        self.iterations, self.kappa, self.start = iterations, kappa, start
        self._last: IntArray = np.zeros(0, dtype=np.int64)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the set that the search finds, and remember it; all candidates if there are no more than m."""
        cohort = super().select(view, rng)
        self._last = cohort.client
        return cohort

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the best set that the walk has seen."""
        if terms.untried >= terms.m:
            return best_cohort(terms.latency, terms.bonus, terms.m, rng)
        walk = self.walk(terms, rng)
        walk.run(self.iterations)
        return np.sort(np.array(walk.best, dtype=np.int64))

    @abstractmethod
    def walk(self, terms: Terms, rng: np.random.Generator) -> Annealing:
        """Return a walk at its start; fewer than m candidates are untried."""

    def first(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return where a search begins."""
        kept = self._last if self.start == "last" else self._last[:0]
        return starting_set(terms.client, terms.m, kept, rng)


class SaPause(AnnealedPause):
    """SA-PAUSE: Algorithm 2, over active and passive neighbours.

    C is that of (19) with ``omega`` 1e-9 (the paper asks for a small positive constant, the published code has 0). Ties
    in the three sorted lists are broken at random, where the published code adds noise of 1e-8 to g and p. The sign
    misprint in the acceptance probability and the best set that gets lost are corrected: see
    `fedsim.selectors.pause.annealing.Annealing`. Without privacy p is 0 for everybody, and so is its part of C; its
    order is then random, where the published code leaves it out. Parameters are those of `AnnealedPause`.
    """

    omega = 1e-9

    def walk(self, terms: Terms, rng: np.random.Generator) -> TailoredAnnealing:
        """Return the walk of Algorithm 2."""
        return TailoredAnnealing(terms, self.first(terms, rng), energy_range(terms, self.omega) / self.kappa, rng)


class VanillaSaPause(AnnealedPause):
    """Vanilla SA (section IV-B): every set that differs in one client is a neighbour, and nothing is sorted.

    C is the paper's ``2 alpha + gamma + 1``. The paper calls it a bound of the energy differences; it is one as long as
    UCBs differ by at most 1, which zeta and the confidence term of (13) may exceed. Parameters are those of
    `AnnealedPause`.
    """

    def walk(self, terms: Terms, rng: np.random.Generator) -> Annealing:
        """Return the walk over all sets that differ in one client."""
        heat = (2 * self.alpha + self.gamma + 1) / self.kappa
        return Annealing(terms, self.first(terms, rng), heat, rng)
