"""Max-min fair shares: by hand, by the textbook's own filling, and by what defines them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.network.topology.block_shares import PAD, max_min_rates
from tests.support.step_by_step import filled


def share(flows, capacity):
    """Return the rates of flows given as lists of links, or of (link, weight)."""
    depth = max(len(flow) for flow in flows)
    routes = np.full((len(flows), depth), PAD)
    weights = np.ones((len(flows), depth))
    for i, flow in enumerate(flows):
        for j, step in enumerate(flow):
            routes[i, j], weights[i, j] = step if isinstance(step, tuple) else (step, 1.0)
    return max_min_rates(routes, weights, np.array(capacity, dtype=float))


@pytest.mark.parametrize(
    ("flows", "capacity", "rates"),
    [
        # The line of three flows: one over both links, one over each. Both links of 10 are halved.
        ([[0, 1], [0], [1]], [10, 10], [5, 5, 5]),
        # The second link is narrower: the long flow gets half of 6, and leaves 7 on the first.
        ([[0, 1], [0], [1]], [10, 6], [3, 7, 3]),
        # A star: one access of 1 below the server's fair share; the others split the rest.
        ([[0, 3], [1, 3], [2, 3]], [1, 100, 100, 9], [1, 4, 4]),
        # Three levels, each freed by the one below: 1; then (7 - 1) / 2; then 20 - 3.
        ([[0, 1], [1, 2], [1], [2]], [1, 7, 20], [1, 3, 3, 17]),
        # A relay's radio is taken twice by what it passes on: 2 r + r = 9.
        ([[(0, 2.0)], [(0, 1.0)]], [9], [3, 3]),
        # A link that carries nothing stops its flows only.
        ([[0, 1], [1]], [0, 8], [0, 8]),
    ],
)
def test_shares_by_hand(flows, capacity, rates):
    np.testing.assert_allclose(share(flows, capacity), rates, rtol=1e-12)


def test_nobody_takes_nothing():
    assert max_min_rates(np.zeros((0, 3), dtype=int), np.zeros((0, 3)), np.ones(2)).shape == (0,)


@st.composite
def networks(draw):
    links = draw(st.integers(1, 7))
    capacity = draw(st.lists(st.one_of(st.just(0.0), st.floats(0.5, 1e3)), min_size=links, max_size=links))
    flow = st.lists(
        st.tuples(st.integers(0, links - 1), st.sampled_from([1.0, 1.0, 2.0])),
        min_size=1,
        max_size=4,
        unique_by=lambda step: step[0],
    )
    return draw(st.lists(flow, min_size=1, max_size=10)), capacity


@given(networks())
@settings(deadline=None, max_examples=60)
def test_the_same_as_filling_step_by_step(network):
    flows, capacity = network
    expected = filled([dict(flow) for flow in flows], dict(enumerate(capacity)))
    np.testing.assert_allclose(share(flows, capacity), expected, atol=1e-9 * max(capacity))
