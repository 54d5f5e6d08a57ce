"""PAUSE: a combinatorial bandit that weighs latency, generalisation and privacy, solved exactly.

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning". Equation numbers are the paper's; K clients, m of them per round, T_k participations of client k.
"""

import math
from heapq import heapreplace
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import check_whole
from fedsim.selectors.pause.bandit import greatest
from fedsim.selectors.pause.energy import PauseBandit, Terms

_BLOCK: Final = 4096


class Pause(PauseBandit):
    """Select by the arg max of equation (14), over all sets of m clients, in O(K log K).

    The energy of a set is its smallest UCB plus ``alpha / m`` times its generalisation rewards plus
    ``gamma / m`` times its privacy rewards. Of sets of equal energy one with the greatest smallest UCB is taken, at
    random among those. Parameters are those of `fedsim.selectors.pause.energy.PauseBandit`.
    """

    def search(self, terms: Terms, rng: np.random.Generator) -> IntArray:
        """Return the m positions of greatest energy (14)."""
        return best_cohort(terms.latency, terms.bonus, terms.m, rng)


def best_cohort(ucb: FloatArray, bonus: FloatArray, m: int, rng: np.random.Generator | None = None) -> IntArray:
    """Return the m positions that maximise ``min(ucb) + sum(bonus)``, exactly and without enumeration.

    For a given smallest UCB the best set holds the m best bonuses among the clients with at least that UCB. So
    it is enough to pass once over the clients by falling UCB, with a heap of the m best bonuses so far: the UCB
    of the last client plus the sum of the heap is a lower bound of its set's energy, tight for the best set.
    O(K log K).

    Parameters
    ----------
    ucb : array of shape (K,), finite or +inf
        Where at least m are infinite, the answer is the m best bonuses among them.
    bonus : array of shape (K,), finite
        ``(alpha g + gamma p) / m`` of each client.
    m : int from 1 to K
    rng : generator, optional
        Breaks ties, by looking at the clients in a random order. Without one lower positions win among equal
        bonuses, and the set with the greater smallest UCB among sets of equal energy.

    Returns
    -------
    array of shape (m,), ascending positions

    Raises
    ------
    ValueError
        If shapes differ, m is out of range, or a value is NaN, -inf or an infinite bonus.
    """
    values, prizes = _check_arguments(ucb, bonus, m)
    shuffled = np.arange(values.size) if rng is None else rng.permutation(values.size)
    values, prizes = values[shuffled], prizes[shuffled]
    order = np.argsort(-values, kind="stable")
    untried = int(np.count_nonzero(np.isinf(values)))
    length = untried if untried >= m else _best_prefix(values[order], prizes[order], m)
    members = np.sort(order[:length])
    return np.sort(shuffled[members[greatest(prizes[members], m)]])


def _check_arguments(ucb: FloatArray, bonus: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    values, prizes = np.asarray(ucb, dtype=np.float64), np.asarray(bonus, dtype=np.float64)
    if values.ndim != 1 or values.shape != prizes.shape:
        raise ValueError(
            f"ucb and bonus: shapes {values.shape} and {prizes.shape} are not allowed; "
            "they must be two vectors of equal length"
        )
    check_whole("m", m, lowest=1)
    if m > values.size:
        raise ValueError(f"m: {m!r} is not allowed; it must be at most the {values.size} clients there are")
    if not np.all(values > -np.inf):
        raise ValueError("ucb: NaN and -inf are not allowed; values must be finite or +inf")
    if not np.all(np.isfinite(prizes)):
        raise ValueError("bonus: NaN and infinities are not allowed; values must be finite")
    return values, prizes


def _best_prefix(ucb: FloatArray, bonus: FloatArray, m: int) -> int:
    """Return the length of the first prefix with the greatest last UCB plus m best bonuses; ucb falls.

    A first pass takes blocks at a time: no prefix that ends in a block can beat the block's first UCB plus the
    best bonuses at the block's end. Only blocks that may hold the maximum are then walked client by client.
    Each walk starts from a sum without rounding error, so that errors cannot pile up over the crowd.
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
    return length


def _walk(
    ucb: FloatArray, bonus: FloatArray, top: FloatArray, start: int, best: float, length: int
) -> tuple[float, int]:
    """Return the best value and prefix length so far after walking over the clients of one block."""
    heap = sorted(top.tolist())
    total = math.fsum(heap)
    places = np.flatnonzero(bonus > heap[0])
    for place, value, prize in zip(places.tolist(), ucb[places].tolist(), bonus[places].tolist(), strict=True):
        if prize > heap[0]:
            total += prize - heapreplace(heap, prize)
            if value + total > best:
                best, length = value + total, start + place + 1
    return best, length
