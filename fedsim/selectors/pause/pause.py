"""PAUSE: a combinatorial bandit that weighs latency, generalisation and privacy, solved exactly.

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning". Equation numbers are the paper's; K clients, m of them per round, T_k participations of client k.
"""

import math
from dataclasses import dataclass, field
from heapq import heapreplace
from typing import Final, Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray, all_of
from fedsim.selectors.contracts import RoundView
from fedsim.selectors.options import Above0, AtLeast0
from fedsim.selectors.pause.bandit import greatest_in_order
from fedsim.selectors.pause.energy import PauseBandit, Terms

_BLOCK: Final = 4096
_FIRST_BLOCKS: Final = 2
"""The pass over the clients sorts some blocks of them first, and then those that may still matter."""


class Pause(PauseBandit):
    """Select by the arg max of equation (14) over all sets of m clients, in O(K log K) at most.

    The energy of a set is its smallest UCB plus ``alpha / m`` times its generalisation rewards plus
    ``gamma / m`` times its privacy rewards. Ties are broken by the greatest smallest UCB, then at random.
    Parameters are those of `fedsim.selectors.pause.energy.PauseBandit`.
    """

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the m positions of greatest energy (14)."""
        return best_cohort(terms.latency, terms.bonus, terms.m, rng)


def best_cohort(ucb: FloatArray, bonus: FloatArray, m: int, rng: np.random.Generator | None = None) -> IntArray:
    """Return the m positions that maximise ``min(ucb) + sum(bonus)``, exactly and without enumeration.

    For a given smallest UCB the best set has the m largest bonuses among the clients of at least that UCB. So one
    pass over the clients by descending UCB is sufficient, with a heap of the m largest bonuses so far: the UCB of the
    last client plus the sum of the heap is a lower bound of its set's energy, tight for the best set. The pass ends
    where no later client can belong to a better set, and only the clients before that are sorted. O(K) if the pass is
    short, O(K log K) at most.
    """
    if not all_of(np.isfinite(bonus)):
        raise ValueError("bonus: NaN and infinities are not allowed; values must be finite")
    order = None if rng is None else rng.permutation(ucb.size)
    untried = np.isinf(ucb)
    count = np.count_nonzero(untried)
    if count >= m:
        return greatest_in_order(bonus if count == ucb.size else np.where(untried, bonus, -np.inf), m, order)
    members = _best_set(ucb, bonus, m, np.arange(ucb.size) if order is None else order)
    return np.sort(members if members.size == m else members[greatest_in_order(bonus[members], m)])


def _best_set(ucb: FloatArray, bonus: FloatArray, m: int, order: IntArray) -> IntArray:
    """Return the clients of at least the smallest UCB of the best set, shape (n,), in that order."""
    block = max(_BLOCK, m)
    passed = m + _FIRST_BLOCKS * block
    if passed < ucb.size:
        members, energy = _best_of_first(ucb, bonus, m, order, passed)
        largest = math.fsum(np.partition(bonus, bonus.size - m)[bonus.size - m :])
        # Only down to these clients can a set of greater energy reach.
        promising = int(np.count_nonzero(ucb + largest >= energy))
        if promising <= passed:
            return members
        passed = m + -(-(promising - m) // block) * block
    return _best_of_first(ucb, bonus, m, order, min(passed, ucb.size))[0]


def _best_of_first(ucb: FloatArray, bonus: FloatArray, m: int, order: IntArray, passed: int) -> tuple[IntArray, float]:
    """Return the answer of `_best_set` among the first clients by descending UCB, and its energy."""
    chosen = order
    if passed < ucb.size:
        least = np.partition(ucb, ucb.size - passed)[ucb.size - passed]
        chosen = order[(ucb >= least)[order]]
    ranked = (-ucb[chosen]).argsort(kind="stable")[:passed]
    places = chosen[ranked]
    length, energy = _best_prefix(ucb[places], bonus[places], m)
    return np.asarray(chosen[np.sort(ranked[:length])]), energy


def _best_prefix(ucb: FloatArray, bonus: FloatArray, m: int) -> tuple[int, float]:
    """Return the length of the first prefix with the greatest sum of its last UCB and its m largest bonuses, and it.

    Only clients with more than the least of the m largest bonuses before their block are passed one by one. The sum of
    these bonuses is exact at the start of each block, so that rounding errors do not accumulate over the crowd.
    """
    heap, size = sorted(bonus[:m].tolist()), max(_BLOCK, m)
    best, length = float(ucb[m - 1]) + math.fsum(heap), m
    for start in range(m, ucb.size, size):
        fresh = start + (bonus[start : start + size] > heap[0]).nonzero()[0]
        total = math.fsum(heap)
        for place, value, gain in zip(fresh.tolist(), ucb[fresh].tolist(), bonus[fresh].tolist(), strict=True):
            if gain > heap[0]:
                total += gain - heapreplace(heap, gain)
                if value + total > best:
                    best, length = value + total, place + 1
    return length, best


@dataclass(eq=False, repr=False)
class Bsfl(Pause):
    """Select by the arg max of the smallest UCB plus ``alpha / m`` times the generalisation rewards: PAUSE, gamma 0.

    Parameters
    ----------
    cohort, tau_min_s, alpha, beta, time_index
        As in `fedsim.selectors.pause.energy.PauseEnergy`; alpha is 1 in the published runs.
    confidence : "cohort" or "crowd"
        Factor of log t in the UCB: m + 1, or K as in the first version of the published code.

    Notes
    -----
    In a crowd of which half never delivers, a third of the rounds may be empty at first, as for `CsUcb`: the rewards
    of all those clients are the same, so that they are selected together.
    """

    paper = (
        "Ben Ami, Cohen and Zhao, Client Selection for Generalization in Accelerated Federated Learning: A "
        "Multi-Armed Bandit Approach, IEEE Access 2025"
    )
    may_stall = "clients that never deliver have one index and are selected together, ever more rarely"

    alpha: AtLeast0[float] = 1.0
    gamma: AtLeast0[float] = field(default=0.0, init=False)
    zeta: Above0[float] = field(default=1.0, init=False)
    confidence: Literal["cohort", "crowd"] = "cohort"

    def exploration(self, view: RoundView) -> int:
        """Return the factor of log t in the UCB."""
        return view.clients if self.confidence == "crowd" else super().exploration(view)
