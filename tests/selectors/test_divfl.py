"""DivFL: greedy facility location by hand and by trying everything, and where updates come from."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.distance import cdist

from fedsim.selectors.divfl import DivFl, facility_location
from tests.support.views import reports_of, rng, view_of

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]], dtype=np.float32)


def far(distance, chosen):
    return distance[:, list(chosen)].min(axis=1).sum()


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**31), st.data())
def test_lazy_choice_is_greedy_and_near_the_best(rows, columns, seed, data):
    distance = rng(seed).random((rows, columns))  # from who is stood for to who may be chosen
    size = data.draw(st.integers(1, min(columns, 4)))
    chosen = facility_location(distance.T, size, rng(seed + 1)).tolist()
    plain = []
    for _ in range(size):
        plain.append(min(set(range(columns)) - set(plain), key=lambda k: far(distance, [*plain, k])))
    # Where nothing is left to gain any column will do, so sums are compared.
    assert len(set(chosen)) == size
    assert far(distance, chosen) == pytest.approx(far(distance, plain))
    start = rows * distance.max()
    best = min(far(distance, some) for some in itertools.combinations(range(columns), size))
    assert start - far(distance, chosen) >= (1 - 1 / math.e) * (start - best) - 1e-9


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2**31))
def test_stochastic_greedy_chooses_distinct_columns(columns, subset, seed):
    distance = rng(seed).random((columns, 6))
    chosen = facility_location(distance, min(3, columns), rng(seed), subset)
    assert len(set(chosen.tolist())) == min(3, columns)


def test_a_subset_as_large_as_all_is_plain_greedy_and_a_subset_of_one_is_chance():
    distance = cdist(LINE, LINE)
    assert facility_location(distance, 1, rng(), 5).tolist() == [2]
    assert {int(facility_location(distance, 1, rng(seed), 1)[0]) for seed in range(60)} == set(range(5))


def told(selector, client=range(5), update=LINE):
    selector.observe(reports_of(list(client), update=update))
    return selector


def test_everybody_takes_part_first_and_then_the_representative():
    selector = DivFl(2)
    assert selector.select(view_of(5), rng()).client.tolist() == list(range(5))
    cohort = told(selector).select(view_of(5, round=2), rng())
    assert cohort.client.tolist() in ([2, 3], [2, 4])
    assert cohort.weights is None


def test_the_representatives_and_their_weights():
    """Only 0 and 4 are there: all five are at 24 from 0 and at 31 from 4; by themselves the two would be equal."""
    selector = told(DivFl(1, start="zero"))
    assert {int(selector.select(view_of([0, 4], clients=5), rng(seed)).client[0]) for seed in range(20)} == {0}
    cohort = told(DivFl(2, start="zero", weights="represented")).select(view_of(5), rng())
    assert cohort.weights.tolist() == [0.6, 0.4]


def test_in_turn_those_never_selected_come_first():
    selector = DivFl(2, start="in-turn")
    first = selector.select(view_of(5), rng(1)).client
    assert first.size == 2
    told(selector, first, LINE[first])
    played = np.isin(np.arange(5), first).astype(int)
    second = selector.select(view_of(5, round=2, participations=played), rng(2)).client
    assert not set(first.tolist()) & set(second.tolist())
    told(selector, second, LINE[second])
    played[second] = 1
    (last,) = np.flatnonzero(played == 0)
    third = selector.select(view_of(5, round=3, participations=played), rng(3)).client
    assert last in third
    assert third.size == 2


def test_when_everybody_or_chance_is_taken():
    selector = told(DivFl(1, start="zero", refresh_every=3))
    sizes = [selector.select(view_of(5, round=number), rng()).client.size for number in range(1, 8)]
    assert sizes == [5, 1, 1, 5, 1, 1, 5]
    selector = DivFl(2, start="zero")
    assert len({tuple(selector.select(view_of(5), rng(seed)).client.tolist()) for seed in range(80)}) == 10
