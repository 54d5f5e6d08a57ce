"""Walks of simulated annealing against neighbours listed by their definition and the exact law of the chain."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.pause.annealing import Annealing, TailoredAnnealing, energy_range, starting_set
from fedsim.selectors.pause.energy import Terms

HOT = 1e12  # every move is accepted
COLD = 1e-12  # no worse set is accepted


def terms_of(latency, generalisation, privacy, m, alpha=1.0, gamma=1.0):
    columns = [np.array(values, dtype=float) for values in (latency, generalisation, privacy)]
    return Terms(np.arange(len(latency)), *columns, alpha, gamma, m)


def random_terms(seed, clients, m):
    rng = np.random.default_rng(seed)
    return terms_of(rng.random(clients), rng.random(clients) - 0.5, rng.random(clients), m, alpha=0.7, gamma=0.3)


def is_active(one, other, terms):
    """R2: the client that ``one`` has and ``other`` has not is one's lowest in UCB, p or g."""
    (leaves,) = one - other
    axes = (terms.latency, terms.privacy, terms.generalisation)
    return any(leaves == min(one, key=values.__getitem__) for values in axes)


def neighbours_by_definition(members, terms, tailored=True):
    """R1 and R2, over all sets of m clients."""
    everybody = map(frozenset, itertools.combinations(range(terms.latency.size), terms.m))
    close = [other for other in everybody if len(other & members) == terms.m - 1]
    return [o for o in close if not tailored or is_active(members, o, terms) or is_active(o, members, terms)]


KINDS = pytest.mark.parametrize("kind", [Annealing, TailoredAnnealing])


@pytest.mark.statistical
@KINDS
@pytest.mark.parametrize(("clients", "m", "seed"), [(7, 1, 0), (7, 2, 1), (8, 3, 2), (8, 5, 3), (9, 4, 4), (6, 5, 5)])
def test_each_neighbour_is_as_likely(kind, clients, m, seed):
    terms = random_terms(seed, clients, m)
    start = np.random.default_rng(seed).permutation(clients)[:m]
    expected = neighbours_by_definition(frozenset(start.tolist()), terms, kind is TailoredAnnealing)
    draws, seen = 25 * len(expected), {}
    for draw in range(draws):
        walk = kind(terms, start, HOT, np.random.default_rng([seed, draw]))
        walk.run(1)
        members = frozenset(walk.members)
        seen[members] = seen.get(members, 0) + 1
    assert set(seen) == set(expected)
    mean = draws / len(expected)
    chi_square = sum((count - mean) ** 2 / mean for count in seen.values())
    freedom = len(expected) - 1
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom) + 5


def law_after(steps, terms, heat, kind, start):
    """The exact law of the walk's place: Algorithm 2 with the sign of its acceptance probability put right."""
    sets = [frozenset(s) for s in itertools.combinations(range(terms.latency.size), terms.m)]
    energy = {s: min(terms.latency[k] for k in s) + sum(terms.bonus[k] for k in s) for s in sets}
    near = {s: neighbours_by_definition(s, terms, kind is TailoredAnnealing) for s in sets}
    law = {s: float(s == start) for s in sets}
    for j in range(1, steps + 1):
        fresh = dict.fromkeys(sets, 0.0)
        for s, mass in law.items():
            for u in near[s]:
                accepted = min(1.0, math.exp((energy[u] - energy[s]) * math.log(1 + j) / heat))
                fresh[u] += mass / len(near[s]) * accepted
                fresh[s] += mass / len(near[s]) * (1 - accepted)
        law = fresh
    return law


@pytest.mark.statistical
@KINDS
@pytest.mark.parametrize("heat", [0.05, 0.3, 1.5])
def test_the_walk_follows_the_law_of_its_chain(kind, heat):
    terms, steps, walks = random_terms(7, 6, 3), 8, 600
    start = np.array([0, 2, 5])
    law = law_after(steps, terms, heat, kind, frozenset(start.tolist()))
    seen = dict.fromkeys(law, 0)
    for number in range(walks):
        walk = kind(terms, start, heat, np.random.default_rng([number, 3]))
        walk.run(steps)
        seen[frozenset(walk.members)] += 1
    for members, chance in law.items():
        assert abs(seen[members] - walks * chance) < 5 * math.sqrt(walks * chance * (1 - chance)) + 1


@pytest.mark.statistical
def test_ties_are_broken_at_random_and_every_lowest_client_can_leave():
    """All alike: each member is the lowest of some order in some walk, so every neighbour of R1 is met."""
    terms, start = terms_of([1.0] * 5, [0.0] * 5, [0.0] * 5, 2), np.array([0, 1])
    met = set()
    for seed in range(300):
        walk = TailoredAnnealing(terms, start, HOT, np.random.default_rng(seed))
        walk.run(1)
        met.add(frozenset(walk.members))
    assert met == set(neighbours_by_definition(frozenset({0, 1}), terms, tailored=False))


VALUES = st.one_of(st.integers(0, 3).map(float), st.floats(-5, 5))


@st.composite
def problems(draw):
    clients = draw(st.integers(2, 9))
    m = draw(st.integers(1, clients - 1))
    columns = [draw(st.lists(VALUES, min_size=clients, max_size=clients)) for _ in range(3)]
    for client in range(draw(st.integers(0, m - 1))):
        columns[0][client] = math.inf
    return terms_of(*columns, m, alpha=draw(st.floats(0, 10)), gamma=draw(st.floats(0, 10)))


@given(terms=problems(), seed=st.integers(0, 99), heat=st.sampled_from([COLD, 0.5, HOT]))
@KINDS
def test_energies_are_those_of_the_sets_and_the_best_one_is_kept(kind, terms, seed, heat):
    rng = np.random.default_rng(seed)
    walk = kind(terms, starting_set(terms.client, terms.m, terms.client[:0], rng), heat, rng)
    seen = [walk.energy]
    for _ in range(60):
        walk.run(1)
        assert len(set(walk.members)) == terms.m
        assert walk.energy == pytest.approx(terms.energy(np.array(walk.members)), abs=1e-9)
        seen.append(walk.energy)
    assert walk.best_energy == max(seen)
    assert terms.energy(np.array(walk.best)) == pytest.approx(walk.best_energy, abs=1e-9)
    if heat == COLD:
        assert all(later > earlier - 1e-9 for earlier, later in itertools.pairwise(seen))


def test_c_of_equation_19_by_hand():
    terms = terms_of([5.0, 1.0, 4.0, 2.0], [0.1, 0.4, 0.2, 0.3], [1.0, 0.7, 0.9, 0.5], 2, alpha=3.0, gamma=2.0)
    # UCB: second greatest 4, smallest 1. g: (0.4 + 0.3) - (0.1 + 0.2) = 0.4. p: (1 + 0.9) - (0.5 + 0.7) = 0.7.
    assert energy_range(terms, 0.25) == pytest.approx((4 - 1) + 3 / 2 * 0.4 + 2 / 2 * 0.7 + 0.25)
    terms = terms_of([math.inf, math.inf, 4.0, 2.0, 1.0], [0.0] * 5, [0.0] * 5, 3)
    assert energy_range(terms, 0.5) == pytest.approx(4.0 - 1.0 + 0.5)


def test_a_warm_start_keeps_who_is_there_and_fills_up_at_random():
    client, rng = np.array([2, 4, 6, 8, 9]), np.random.default_rng(0)
    filled = set()
    for _ in range(60):
        start = starting_set(client, 3, np.array([9, 5, 2]), rng)
        assert {2, 9} < set(client[start].tolist())
        filled |= set(client[start].tolist()) - {2, 9}
    assert filled == {4, 6, 8}
    assert starting_set(client, 2, client, rng).size == 2
