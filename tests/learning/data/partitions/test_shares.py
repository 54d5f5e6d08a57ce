"""Whole numbers in given proportions: exact sums, and numbers by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.learning.data.partitions.shares import shared


@pytest.mark.parametrize(
    ("total", "weights", "least", "expected"),
    [
        (10, [1, 1, 1], 0, [4, 3, 3]),
        (7, [5, 3, 2], 0, [4, 2, 1]),  # 3.5, 2.1 and 1.4: the largest remainder is the first one's
        (10, [0, 1, 3], 1, [1, 2, 7]),  # 9 are left: 2.25 and 6.75
        (12, [100, 1, 1], 3, [6, 3, 3]),
        (5, [1e-300, 1e300], 0, [0, 5]),
        (6, [0, 0, 1], 2, [2, 2, 2]),
    ],
)
def test_by_hand(total, weights, least, expected):
    assert shared(total, np.array(weights, dtype=float), least).tolist() == expected


@given(
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(lambda weights: max(weights) > 0),
    least=st.integers(0, 3),
    beyond=st.integers(0, 500),
)
def test_sums_are_exact_and_each_is_within_one_of_its_share(weights, least, beyond):
    total = least * len(weights) + beyond
    found = shared(total, np.array(weights), least)
    assert found.sum() == total
    assert found.min() >= least
    if least == 0:
        assert np.abs(found - total * np.array(weights) / sum(weights)).max() < 1 + 1e-6
