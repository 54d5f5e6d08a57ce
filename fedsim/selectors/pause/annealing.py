"""Simulated annealing over cohorts: PAUSE's Algorithm 2 and its vanilla form, as walks that can be looked at.

Peleg, Lang, Rini, Shlezinger and Cohen, "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated
Learning", section IV. A walk stands on a set of m clients and moves to a neighbour, a set that differs in one client:
always if that has at least as much energy (18), else with probability ``exp(-(E(V) - E(U)) / tau_j)`` at the
temperature ``tau_j = C / (kappa log(1 + j))`` of its j-th iteration. A neighbour is a pair of a member that leaves and
a client that comes; one is drawn in constant expected time, and none is listed.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeVar, cast

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.pause.energy import Terms

_LUCK = 1024
_Value = TypeVar("_Value", int, float)


class Annealing:
    """Vanilla SA: any set that differs in exactly one client is a neighbour (R1 alone).

    Algorithm 2 as printed has two faults that are corrected here. It accepts a worse set with probability
    ``exp(-(E(U) - E(V)) / tau)``, which is above 1 as E(U) < E(V) and energy is to be maximised: the sign is a
    misprint, the published code has it as above. And it answers with the set of the last move that was not downwards,
    which may be worse than an earlier one: the best set seen, the first included, is kept.

    Parameters
    ----------
    terms : Terms
        Fewer than m candidates untried, so that every set has finite energy.
    start : array of shape (m,)
        Positions of the first set; there are more than m candidates.
    heat : float > 0
        C / kappa.
    rng : generator

    Attributes
    ----------
    energy : of the set where the walk stands
    best_energy : of the best set seen
    best : its positions, in no order
    """

    def __init__(self, terms: Terms, start: IntArray, heat: float, rng: np.random.Generator) -> None:
        self._latency, self._bonus = _floats(terms.latency), _floats(terms.bonus)
        self._heat, self._luck = heat, _uniform(rng)
        self._step = 0
        inside = np.zeros(terms.latency.size, dtype=np.bool_)
        inside[start] = True
        outside = np.flatnonzero(~inside)
        place = np.empty(terms.latency.size, dtype=np.int64)
        place[start], place[outside] = np.arange(start.size), np.arange(outside.size)
        self._inside: list[int] = start.tolist()
        self._outside, self._place = outside.data, place.data
        self._strangers = outside.size
        # Behind the last member stands infinity, the smallest latency of what is left of a set of one.
        self._lowest: list[float] = [*sorted(terms.latency[start].tolist()), math.inf]
        self._prizes: float = math.fsum(terms.bonus[start])
        self.energy: float = self._lowest[0] + self._prizes
        self.best_energy = self.energy
        self.best = self._inside.copy()

    @property
    def members(self) -> list[int]:
        """Positions of the set where the walk stands, in no order."""
        return self._inside.copy()

    def run(self, iterations: int) -> None:
        """Walk on for so many iterations."""
        for _ in range(iterations):
            self._step += 1
            leaves, comes = self._neighbour()
            energy = self._energy_after(leaves, comes)
            gain = energy - self.energy
            if gain >= 0 or next(self._luck) < math.exp(gain * math.log1p(self._step) / self._heat):
                self._swap(leaves, comes)
                self.energy = energy
                if energy > self.best_energy:
                    self.best_energy, self.best = energy, self._inside.copy()

    def _neighbour(self) -> tuple[int, int]:
        """Return who leaves and who comes; each of the m (K - m) pairs is as likely."""
        member, stranger = divmod(int(next(self._luck) * len(self._inside) * self._strangers), self._strangers)
        return self._inside[member], self._outside[stranger]

    def _energy_after(self, leaves: int, comes: int) -> float:
        lowest = self._lowest[1] if self._latency[leaves] == self._lowest[0] else self._lowest[0]
        return min(lowest, self._latency[comes]) + self._prizes + self._bonus[comes] - self._bonus[leaves]

    def _swap(self, leaves: int, comes: int) -> None:
        place = self._place
        member, stranger = place[leaves], place[comes]
        self._inside[member], self._outside[stranger] = comes, leaves
        place[comes], place[leaves] = member, stranger
        _exchange(self._lowest, self._latency[leaves], self._latency[comes])
        self._prizes += self._bonus[comes] - self._bonus[leaves]


class TailoredAnnealing(Annealing):
    """Algorithm 2: the neighbours are the active and passive ones of R2, found by N1 and N2.

    Each of the three terms, UCB, p and g, puts the clients in an order; ties in it are broken at random, once for the
    walk. V's *active* neighbours lose the lowest member of V in one of the orders, for anybody. Its *passive* ones are
    those that have V as an active neighbour: whoever comes is then the lowest of the new set in one of the orders.
    If a member leaves that is lowest in no order, that holds for the clients below V's lowest in some order, a prefix
    of it; if one leaves that is lowest in some order, the neighbour is active already. So the union is the disjoint
    union of ``lowest members x strangers`` and ``other members x union of three prefixes``. A pair is drawn from all
    members and the three prefixes in a row, and drawn again unless it is new: then each neighbour is as likely as any
    other, as in step 4 of the algorithm, at a cost that depends on neither K nor the number of neighbours.

    Parameters are those of `Annealing`.
    """

    def __init__(self, terms: Terms, start: IntArray, heat: float, rng: np.random.Generator) -> None:
        super().__init__(terms, start, heat, rng)
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
        self._look_down()

    def _look_down(self) -> None:
        """Note who is lowest in each order and how many stand below."""
        self._below = [ranks[0] for ranks in self._ranks]
        lowest = {order[below]: None for order, below in zip(self._order, self._below, strict=True)}
        self._leavers = list(lowest)
        self._active = len(self._leavers) * self._strangers
        self._below_all = sum(self._below)
        self._pairs = self._active + len(self._inside) * self._below_all

    def _neighbour(self) -> tuple[int, int]:
        """Return who leaves and who comes; each neighbour is as likely."""
        while True:
            pair = int(next(self._luck) * self._pairs)
            if pair < self._active:
                member, stranger = divmod(pair, self._strangers)
                return self._leavers[member], self._outside[stranger]
            member, place = divmod(pair - self._active, self._below_all)
            leaves = self._inside[member]
            if leaves in self._leavers:
                continue
            comes = self._comes_from_below(place)
            if comes is not None:
                return leaves, comes

    def _comes_from_below(self, place: int) -> int | None:
        """Return the client at a place of the three prefixes in a row; None if an earlier prefix has it too."""
        axis = 0
        while place >= self._below[axis]:
            place -= self._below[axis]
            axis += 1
        comes = self._order[axis][place]
        for earlier in range(axis):
            if self._rank[earlier][comes] < self._below[earlier]:
                return None
        return comes

    def _swap(self, leaves: int, comes: int) -> None:
        super()._swap(leaves, comes)
        for rank, ranks in zip(self._rank, self._ranks, strict=True):
            _exchange(ranks, rank[leaves], rank[comes])
        self._look_down()


def energy_range(terms: Terms, omega: float) -> float:
    """Return C of (19): more than any two sets differ in energy, by ``omega``.

    Parameters
    ----------
    terms : Terms
        Fewer than m candidates untried: the m-th greatest UCB is finite then.
    omega : float > 0
    """
    m = terms.m
    last = terms.latency.size - m
    ucb = np.partition(terms.latency, (0, last))
    prizes = 0.0
    for weight, values in ((terms.alpha, terms.generalisation), (terms.gamma, terms.privacy)):
        prizes += weight / m * (np.partition(values, last)[last:].sum() - np.partition(values, m - 1)[:m].sum())
    return float(ucb[last] - ucb[0] + prizes + omega)


def starting_set(client: IntArray, m: int, kept: IntArray, rng: np.random.Generator) -> IntArray:
    """Return m positions among the candidates: those of the clients kept that are there, and others at random."""
    old = np.flatnonzero(np.isin(client, kept))[:m]
    others = np.setdiff1d(np.arange(client.size), old, assume_unique=True)
    return np.concatenate([old, rng.choice(others, size=m - old.size, replace=False)])


def _floats(array: FloatArray) -> "memoryview[float]":
    """Return an array's numbers as Python floats at a third of the cost of its items, and without copying a crowd."""
    return cast("memoryview[float]", array.data)


def _exchange(ascending: list[_Value], old: _Value, new: _Value) -> None:
    del ascending[bisect_left(ascending, old)]
    insort(ascending, new)


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    """Yield numbers from [0, 1); a generator's single draws cost ten times as much."""
    while True:
        yield from rng.random(_LUCK).tolist()
