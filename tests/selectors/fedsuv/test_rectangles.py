"""Intersections, eliminations and dominance, by hand and by the definitions read out client by client."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.selectors.fedsuv.rectangles import Bounds, Rectangles, diagonal, dominated, eliminated


def bounds(*sides):
    return Bounds(*(np.atleast_1d(np.asarray(side, dtype=float)) for side in sides))


def sides(found):
    return [side.tolist() for side in vars(found).values()]


def test_rectangles_begin_as_the_plane_and_shrink():
    rectangles = Rectangles(3, "restart")
    assert sides(rectangles.of(np.array([1]))) == [[-np.inf], [np.inf], [-np.inf], [np.inf]]
    rectangles.intersect(np.array([1]), bounds(0.0, 0.8, -1.0, 4.0))
    found = rectangles.intersect(np.array([1]), bounds(0.2, 0.9, -3.0, 2.0))
    assert sides(found) == [[0.2], [0.8], [-1.0], [2.0]]
    assert sides(rectangles.of(np.array([1]))) == sides(found)
    assert sides(rectangles.of(np.array([2]))) == [[-np.inf], [np.inf], [-np.inf], [np.inf]]


@pytest.mark.parametrize(
    ("when_disjoint", "first", "new", "expected"),
    [
        ("restart", (0.0, 0.4, 1.0, 2.0), (0.1, 0.9, 5.0, 6.0), [[0.1], [0.4], [5.0], [6.0]]),
        ("collapse", (0.0, 0.4, 1.0, 2.0), (0.1, 0.9, 5.0, 6.0), [[0.1], [0.4], [2.0], [2.0]]),
        ("collapse", (0.5, 0.6, 0.0, 1.0), (0.1, 0.2, 0.0, 1.0), [[0.5], [0.5], [0.0], [1.0]]),
    ],
)
def test_a_side_that_has_nothing_in_common_with_the_new_one(when_disjoint, first, new, expected):
    rectangles = Rectangles(1, when_disjoint)
    rectangles.intersect(np.array([0]), bounds(*first))
    assert sides(rectangles.intersect(np.array([0]), bounds(*new))) == expected


def test_the_diagonal_by_hand():
    assert diagonal(bounds(0.0, 3.0, 10.0, 50.0), utility_scale=10.0).tolist() == [5.0]


def test_elimination_by_hand():
    """The best lower bound is 0.5: an upper bound of 0.5 is out, one of 0.51 is not."""
    low, high = np.array([0.5, 0.0, 0.1, -2.0]), np.array([0.7, 0.5, 0.51, 0.49])
    assert eliminated(low, high).tolist() == [False, True, False, True]
    assert eliminated(np.array([0.3]), np.array([0.3])).tolist() == [False]
    assert eliminated(np.zeros(0), np.zeros(0)).tolist() == []


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        # The second's best corner (0.4, 2) lies below the first's worst (0.5, 3); the third's is higher in utility.
        (([0.5, 0.1, 0.1], [0.9, 0.4, 0.4], [3.0, 1.0, 1.0], [5.0, 2.0, 3.5]), [False, True, False]),
        # Touching corners dominate, and equal points do not.
        (([0.5, 0.1], [0.9, 0.5], [3.0, 1.0], [5.0, 3.0]), [False, False]),
        (([0.5, 0.1], [0.9, 0.5], [3.0, 1.0], [5.0, 2.9]), [False, True]),
        (([0.5, 0.5], [0.5, 0.5], [2.0, 2.0], [2.0, 2.0]), [False, False]),
    ],
)
def test_dominance_by_hand(corners, expected):
    assert dominated(bounds(*corners)).tolist() == expected


CORNERS = st.lists(st.tuples(*[st.integers(0, 5)] * 4), max_size=12)


@given(CORNERS)
def test_dominance_is_that_of_the_definition(corners):
    rows = np.array(corners, dtype=float).reshape(-1, 4)
    low = np.minimum(rows[:, :2], rows[:, 2:])
    high = np.maximum(rows[:, :2], rows[:, 2:])
    found = dominated(Bounds(low[:, 0], high[:, 0], low[:, 1], high[:, 1]))
    for i in range(len(rows)):
        others = [j for j in range(len(rows)) if j != i]
        by_definition = any(np.all(high[i] <= low[j]) and np.any(high[i] < low[j]) for j in others)
        assert found[i] == by_definition


@given(CORNERS)
def test_the_unbounded_are_never_dominated(corners):
    rows = np.array(corners, dtype=float).reshape(-1, 4)
    plane = np.full(len(rows), np.inf)
    assert not dominated(Bounds(rows[:, 0], plane, rows[:, 1], plane)).any()
