"""Simulated annealing over cohorts: PAUSE's Algorithm 2 and its vanilla form, as walks with a visible state.

The state of a walk (section IV) is a set V of m clients; a neighbour U differs from it in one client. The walk moves to
U always if U has at least the energy (18) of V, else with probability ``exp(-(E(V) - E(U)) / tau_j)`` at the
temperature ``tau_j = C / (kappa log(1 + j))`` of its j-th iteration. A neighbour is a pair of a leaving member and an
entering client; a pair is drawn in constant expected time, without a list of neighbours.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeVar, cast

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.pause.energy import Terms

_DRAWS = 1024
_Value = TypeVar("_Value", int, float)


class Annealing:
    """Vanilla SA: any set that differs in exactly one client is a neighbour (R1 alone).

    Two faults of Algorithm 2 as printed are corrected. It accepts a worse set with probability
    ``exp(-(E(U) - E(V)) / tau)``, which is above 1 as E(U) < E(V): the sign is a misprint, the published code has it as
    above. And its result is the set of the last move that did not decrease the energy, which may be worse than an
    earlier one: here the result is the best set of the walk, the first included.
    """

    def __init__(self, terms: Terms, start: IntArray, scale: float, rng: np.random.Generator) -> None:
        self._latency, self._bonus = _floats(terms.latency), _floats(terms.bonus)
        self._scale, self._uniform = scale, _uniform(rng)
        self._step = 0
        inside = np.zeros(terms.latency.size, dtype=np.bool_)
        inside[start] = True
        outside = np.flatnonzero(~inside)
        place = np.empty(terms.latency.size, dtype=np.int64)
        place[start], place[outside] = np.arange(start.size), np.arange(outside.size)
        self._inside: list[int] = start.tolist()
        self._outside, self._place = outside.data, place.data
        self._outsiders = outside.size
        # Infinity after the last member is the smallest latency of an empty set, which a set of one leaves.
        self._lowest: list[float] = [*sorted(terms.latency[start].tolist()), math.inf]
        self._bonuses: float = math.fsum(terms.bonus[start])
        self.energy: float = self._lowest[0] + self._bonuses
        self.best_energy = self.energy
        self.best = self._inside.copy()

    @property
    def members(self) -> list[int]:
        return self._inside.copy()

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._step += 1
            leaves, enters = self._neighbour()
            energy = self._energy_after(leaves, enters)
            gain = energy - self.energy
            if gain >= 0 or next(self._uniform) < math.exp(gain * math.log1p(self._step) / self._scale):
                self._swap(leaves, enters)
                self.energy = energy
                if energy > self.best_energy:
                    self.best_energy, self.best = energy, self._inside.copy()

    def _neighbour(self) -> tuple[int, int]:
        """Return leaving and entering client; each of the m (K - m) pairs has equal probability."""
        member, outsider = divmod(int(next(self._uniform) * len(self._inside) * self._outsiders), self._outsiders)
        return self._inside[member], self._outside[outsider]

    def _energy_after(self, leaves: int, enters: int) -> float:
        lowest = self._lowest[1] if self._latency[leaves] == self._lowest[0] else self._lowest[0]
        return min(lowest, self._latency[enters]) + self._bonuses + self._bonus[enters] - self._bonus[leaves]

    def _swap(self, leaves: int, enters: int) -> None:
        place = self._place
        member, outsider = place[leaves], place[enters]
        self._inside[member], self._outside[outsider] = enters, leaves
        place[enters], place[leaves] = member, outsider
        _exchange(self._lowest, self._latency[leaves], self._latency[enters])
        self._bonuses += self._bonus[enters] - self._bonus[leaves]


class TailoredAnnealing(Annealing):
    """Algorithm 2: the neighbours are the active and passive ones of R2, found by N1 and N2.

    Each of the three terms, UCB, p and g, gives an order of the clients; ties are broken at random, once for the walk.
    V's *active* neighbours lose the lowest member of V in one of the orders, for any other client. Its *passive*
    neighbours have V as an active neighbour: the entering client is then the lowest of the new set in one of the
    orders. If the leaving member is lowest in no order, these are the clients below V's lowest in some order, a prefix
    of the order; if it is lowest in some order, the neighbour is active already. So the neighbours are the disjoint
    union of ``lowest members x outsiders`` and ``other members x union of three prefixes``. A pair is drawn from all
    members and the three prefixes in sequence, and drawn again if it occurs earlier: each neighbour then has equal
    probability, as in step 4 of the algorithm, at a cost that depends on neither K nor the number of neighbours.
    """

    def __init__(self, terms: Terms, start: IntArray, scale: float, rng: np.random.Generator) -> None:
        super().__init__(terms, start, scale, rng)
        shuffled = rng.permutation(terms.latency.size)
        self._order: list[memoryview[int]] = []
        self._rank: list[memoryview[int]] = []
        self._ranks: list[list[int]] = []
        for values in (terms.latency, terms.privacy, terms.generalisation):
            order = shuffled[np.argsort(values[shuffled], kind="stable")]
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            self._order.append(order.data)
            self._rank.append(rank.data)
            self._ranks.append(np.sort(rank[start]).tolist())
        self._find_lowest()

    def _find_lowest(self) -> None:
        """Find the lowest member of each order, and the number of clients below it."""
        self._below = [ranks[0] for ranks in self._ranks]
        lowest = {order[below]: None for order, below in zip(self._order, self._below, strict=True)}
        self._leavers = list(lowest)
        self._active = len(self._leavers) * self._outsiders
        self._below_all = sum(self._below)
        self._pairs = self._active + len(self._inside) * self._below_all

    def _neighbour(self) -> tuple[int, int]:
        while True:
            pair = int(next(self._uniform) * self._pairs)
            if pair < self._active:
                member, outsider = divmod(pair, self._outsiders)
                return self._leavers[member], self._outside[outsider]
            member, place = divmod(pair - self._active, self._below_all)
            leaves = self._inside[member]
            if leaves in self._leavers:
                continue
            enters = self._from_below(place)
            if enters is not None:
                return leaves, enters

    def _from_below(self, place: int) -> int | None:
        """Return the client at a place of the three prefixes in sequence; None if an earlier prefix has it as well."""
        axis = 0
        while place >= self._below[axis]:
            place -= self._below[axis]
            axis += 1
        enters = self._order[axis][place]
        for earlier in range(axis):
            if self._rank[earlier][enters] < self._below[earlier]:
                return None
        return enters

    def _swap(self, leaves: int, enters: int) -> None:
        super()._swap(leaves, enters)
        for rank, ranks in zip(self._rank, self._ranks, strict=True):
            _exchange(ranks, rank[leaves], rank[enters])
        self._find_lowest()


def energy_range(terms: Terms, omega: float) -> float:
    """Return C of (19): a bound of energy differences between two sets, plus ``omega``."""
    m = terms.m
    last = terms.latency.size - m
    ucb = np.partition(terms.latency, (0, last))
    bonuses = 0.0
    for weight, values in ((terms.alpha, terms.generalisation), (terms.gamma, terms.privacy)):
        bonuses += weight / m * (np.partition(values, last)[last:].sum() - np.partition(values, m - 1)[:m].sum())
    return float(ucb[last] - ucb[0] + bonuses + omega)


def starting_set(client: IntArray, m: int, kept: IntArray, rng: np.random.Generator) -> IntArray:
    """Return m positions among the candidates: the given clients among them, and others at random."""
    old = np.flatnonzero(np.isin(client, kept))[:m]
    others = np.setdiff1d(np.arange(client.size), old, assume_unique=True)
    return np.concatenate([old, rng.choice(others, size=m - old.size, replace=False)])


def _floats(array: FloatArray) -> "memoryview[float]":
    """Return a view whose items are Python floats, at a third of the cost of NumPy's items and without a copy."""
    return cast("memoryview[float]", array.data)


def _exchange(ascending: list[_Value], old: _Value, new: _Value) -> None:
    del ascending[bisect_left(ascending, old)]
    insort(ascending, new)


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    """Yield numbers from [0, 1), drawn in blocks: single draws of a generator cost ten times as much."""
    while True:
        yield from rng.random(_DRAWS).tolist()
