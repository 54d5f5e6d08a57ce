"""PAUSE: a combinatorial bandit that weighs latency, generalisation and privacy, solved exactly.

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning". Equation numbers are the paper's; K clients, m of them per round, T_k participations of client k.
"""

import math
from heapq import heapreplace
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.pause.bandit import greatest_in_order
from fedsim.selectors.pause.energy import PauseBandit, Terms
from fedsim.selectors.validation import check_whole_numbers

_BLOCK: Final = 4096
_FIRST_BLOCKS: Final = 2
"""The pass over the clients sorts some blocks of them first, and then those that may still matter."""


class Pause(PauseBandit):
    """Select by the arg max of equation (14) over all sets of m clients, in O(K log K) at most.

    The energy of a set is its smallest UCB plus ``alpha / m`` times its generalisation rewards plus
    ``gamma / m`` times its privacy rewards. Ties are broken by the greatest smallest UCB, then at random.
    Parameters are those of `fedsim.selectors.pause.energy.PauseBandit`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fedsim import Testbed
    >>> from fedsim.selectors import Reports
    >>> with Testbed("scenarios/testbed/cell.toml") as testbed:
    ...     view = testbed.view()
    >>> selector, rng, one = Pause(cohort=20, alpha=0.0), np.random.default_rng(0), np.ones(20)
    >>> first = selector.select(view, rng).client
    >>> selector.observe(Reports(round=1, time_s=1.0, client=first, delivered=one > 0, duration_s=one, loss=one))
    >>> later = replace(view, round=2, participations=np.isin(view.client, first).astype(int))
    >>> np.intersect1d(first, selector.select(later, rng).client).size  # the UCB of untried clients is infinite
    0
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
    values, bonuses = _check_arguments(ucb, bonus, m)
    order = None if rng is None else rng.permutation(values.size)
    untried = np.isinf(values)
    count = int(np.count_nonzero(untried))
    if count >= m:
        return greatest_in_order(bonuses if count == values.size else np.where(untried, bonuses, -np.inf), m, order)
    members = _best_set(values, bonuses, m, np.arange(values.size) if order is None else order)
    return np.sort(members[greatest_in_order(bonuses[members], m)])


def _check_arguments(ucb: FloatArray, bonus: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    values, bonuses = np.asarray(ucb, dtype=np.float64), np.asarray(bonus, dtype=np.float64)
    if values.ndim != 1 or values.shape != bonuses.shape:
        raise ValueError(
            f"ucb and bonus: shapes {values.shape} and {bonuses.shape} are not allowed; "
            "they must be two vectors of equal length"
        )
    check_whole_numbers(1, m=m)
    if m > values.size:
        raise ValueError(f"m: {m!r} is not allowed; it must be at most the number of clients, {values.size}")
    if not (values > -np.inf).all():
        raise ValueError("ucb: NaN and -inf are not allowed; values must be finite or +inf")
    if not np.isfinite(bonuses).all():
        raise ValueError("bonus: NaN and infinities are not allowed; values must be finite")
    return values, bonuses


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
    """Return the answer of `_best_set` among the first clients by descending UCB, and a lower bound of its energy."""
    chosen = order
    if passed < ucb.size:
        least = np.partition(ucb, ucb.size - passed)[ucb.size - passed]
        chosen = order[(ucb >= least)[order]]
    ranked = np.argsort(-ucb[chosen], kind="stable")[:passed]
    length, energy = _best_prefix(ucb[chosen[ranked]], bonus[chosen[ranked]], m)
    return np.asarray(chosen[np.sort(ranked[:length])]), energy


def _best_prefix(ucb: FloatArray, bonus: FloatArray, m: int) -> tuple[int, float]:
    """Return the length of the first prefix with the greatest sum of its last UCB and its m largest bonuses.

    The second value is a lower bound of that sum, for the search of later prefixes.

    The first pass goes by blocks: the energy of a prefix that ends in a block is at most the block's first UCB plus the
    largest bonuses at the block's end. Only blocks that may contain the maximum are then passed client by client,
    each from an exact sum, so that rounding errors do not accumulate over the crowd.
    """
    size = max(_BLOCK, m)
    top = bonus[:m]
    best, length = float(ucb[m - 1]) + math.fsum(top), m
    floor = best
    blocks: list[tuple[int, float, FloatArray]] = []
    for start in range(m, ucb.size, size):
        stop = min(start + size, ucb.size)
        before, fresh = top, bonus[start:stop]
        fresh = fresh[fresh > top.min()]
        if fresh.size:
            top = np.partition(np.concatenate([top, fresh]), fresh.size)[fresh.size :]
            total = math.fsum(top)
            blocks.append((start, float(ucb[start]) + total, before))
            floor = max(floor, float(ucb[stop - 1]) + total)
    for start, ceiling, before in blocks:
        if ceiling >= floor and ceiling > best:
            stop = start + size
            best, length = _walk(ucb[start:stop], bonus[start:stop], before, start, best, length)
    return length, floor


def _walk(
    ucb: FloatArray, bonus: FloatArray, top: FloatArray, start: int, best: float, length: int
) -> tuple[float, int]:
    """Return the best energy and prefix length so far, after the clients of one block."""
    heap = sorted(top.tolist())
    total = math.fsum(heap)
    places = np.flatnonzero(bonus > heap[0])
    for place, value, gain in zip(places.tolist(), ucb[places].tolist(), bonus[places].tolist(), strict=True):
        if gain > heap[0]:
            total += gain - heapreplace(heap, gain)
            if value + total > best:
                best, length = value + total, start + place + 1
    return best, length
