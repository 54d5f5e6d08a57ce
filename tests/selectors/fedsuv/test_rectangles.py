"""Intersections, eliminations and dominance, by hand and by the definitions read out client by client."""

import numpy as np
from hypothesis import given, strategies as st

from fedsim.selectors.fedsuv.rectangles import Bounds, dominated, eliminated


def test_elimination_by_hand():
    """The best lower bound is 0.5: an upper bound of 0.5 is out, one of 0.51 is not."""
    low, high = np.array([0.5, 0.0, 0.1, -2.0]), np.array([0.7, 0.5, 0.51, 0.49])
    assert eliminated(low, high).tolist() == [False, True, False, True]
    assert eliminated(np.array([0.3]), np.array([0.3])).tolist() == [False]
    assert eliminated(np.zeros(0), np.zeros(0)).tolist() == []


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
