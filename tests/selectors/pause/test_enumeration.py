"""The arg max of equation (14) against enumeration, its ties, its refusals and its speed."""

import itertools
import math

import numpy as np
import pytest

from fedsim.selectors.pause import pause
from fedsim.selectors.pause.pause import best_cohort
from tests.support.views import check_shares, rng

ULPS = 1e-12


def energy(members, ucb, bonus):
    """Rank a set: first whether everybody in it is untried, then by equation (14)."""
    members = list(members)
    lowest = min(ucb[k] for k in members)
    prizes = math.fsum(bonus[k] for k in members)
    return (1, prizes) if lowest == math.inf else (0, lowest + prizes)


def check_against_enumeration(ucb, bonus, m, rng=None):
    chosen = best_cohort(np.array(ucb, dtype=float), np.array(bonus, dtype=float), m, rng)
    assert chosen.dtype.kind == "i"
    assert chosen.shape == (m,)
    assert np.all(np.diff(chosen) > 0)
    level, value = energy(chosen.tolist(), ucb, bonus)
    best_level, best_value = max(energy(one, ucb, bonus) for one in itertools.combinations(range(len(ucb)), m))
    assert level == best_level
    assert value == pytest.approx(best_value, rel=ULPS, abs=ULPS)


@pytest.mark.parametrize("block", [1, 2, 3, 4096])
@pytest.mark.parametrize("infinite", [0.0, 0.5])
def test_equals_enumeration_whatever_the_blocks(monkeypatch, block, infinite):
    monkeypatch.setattr(pause, "_BLOCK", block)
    luck = np.random.default_rng([block, int(10 * infinite)])
    for _ in range(300):
        size = int(luck.integers(1, 11))
        m = int(luck.integers(1, min(size, 4) + 1))
        ucb, bonus = luck.integers(-3, 4, (2, size)) * luck.choice([1.0, 0.3])
        ucb[luck.random(size) < infinite] = math.inf
        check_against_enumeration(ucb.tolist(), bonus.tolist(), m, luck if luck.random() < 0.5 else None)


@pytest.mark.parametrize(
    ("ucb", "bonus", "expected"),
    [
        # Without rng ties go to lower positions.
        ([math.inf] * 6, [0.0] * 6, [0, 1]),
        ([1.0] * 6, [0.0] * 6, [0, 1, 2]),
        ([1.0, 2.0, 1.0, 1.0], [5.0, 0.0, 5.0, 5.0], [0, 2]),
        # Of sets of equal energy the one with the greater smallest UCB wins.
        ([1.0, 2.0, 3.0], [2.0, 1.0, 0.0], [2]),
        ([1.0, 2.0, 3.0, 3.0], [1.0, 1.0, 0.0, 0.0], [2, 3]),
    ],
)
def test_ties_by_hand(ucb, bonus, expected):
    assert best_cohort(np.array(ucb), np.array(bonus), len(expected)).tolist() == expected


@pytest.mark.statistical
@pytest.mark.parametrize("value", [math.inf, 0.5], ids=["untried", "tried"])
def test_with_rng_every_client_of_a_tie_is_as_likely_as_any_other(value):
    draws = rng(3)
    check_shares(lambda: best_cohort(np.full(12, value), np.zeros(12), 3, draws), [3 / 12] * 12)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_refuses_a_bonus_that_is_not_finite(value):
    with pytest.raises(ValueError, match="bonus"):
        best_cohort(np.ones(2), np.array([0.0, value]), 1)


def test_a_million_clients_in_the_order_that_costs_most():
    """Every prefix has the same energy of 2 and every client changes the heap."""
    size, m = 1_000_000, 1000
    bonus = np.arange(size) / (size * m)
    sums = np.concatenate([[0.0], np.cumsum(bonus)])
    last_m = sums[1:] - sums[np.maximum(0, np.arange(size) - m + 1)]
    ucb = 2.0 - last_m
    chosen = best_cohort(ucb, bonus, m)
    assert np.unique(chosen).size == m
    assert energy(chosen, ucb, bonus)[1] == pytest.approx(2.0, abs=1e-9)
