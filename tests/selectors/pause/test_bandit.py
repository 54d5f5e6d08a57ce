"""What bandits remember, and the choice of the greatest values."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.pause.bandit import greatest
from tests.support.views import check_shares, rng


@given(
    values=st.lists(st.one_of(st.integers(0, 3).map(float), st.just(math.inf), st.just(-math.inf)), min_size=1),
    data=st.data(),
)
def test_the_greatest_are_the_greatest(values, data):
    m = data.draw(st.integers(1, len(values)))
    rng = data.draw(st.one_of(st.none(), st.integers(0, 9).map(np.random.default_rng)))
    chosen = greatest(np.array(values), m, rng)
    assert chosen.size == m
    assert np.all(np.diff(chosen) > 0)
    falling = sorted(range(len(values)), key=lambda k: -values[k])
    assert sorted((values[k] for k in chosen), reverse=True) == [values[k] for k in falling[:m]]
    assert rng or chosen.tolist() == sorted(falling[:m]), "without luck the first of equals"


@pytest.mark.statistical
def test_with_luck_equals_share_the_last_place():
    draws = rng(1)
    check_shares(lambda: greatest(np.array([1.0, 2.0, 1.0, 1.0]), 2, draws), [1 / 3, 1.0, 1 / 3, 1 / 3])
