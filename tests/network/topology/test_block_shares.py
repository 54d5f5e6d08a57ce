"""Rates over blocks: time parts by hand, wires against the textbook's filling, and what is carried between blocks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.network.topology.block_shares import (
    PAD,
    BlocksAhead,
    FlowsOverBlocks,
    max_min_rates,
    passed_blocks,
    sent_after_s,
    time_parts,
)
from tests.support.step_by_step import filled

BLOCKS = st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(0.0, 100.0) | st.just(0.0)), min_size=1, max_size=8)


@given(blocks=BLOCKS, bits=st.floats(1e-6, 2000.0))
def test_bits_are_sent_when_a_walk_over_the_blocks_has_sent_them(blocks, bits):
    length_s, rate_bps = (np.array(column) for column in zip(*blocks, strict=True))
    sent_bits = np.cumsum(length_s * rate_bps)
    left, expected = bits, math.inf
    for number, (seconds, rate) in enumerate(blocks):
        if rate * seconds >= left and sent_bits[number] >= bits:
            expected = sum(length_s[:number]) + left / rate
            break
        left -= rate * seconds
    found = sent_after_s(np.cumsum(length_s), sent_bits[:, None], rate_bps[:, None], np.array([bits]))
    if math.isfinite(expected) and math.isfinite(found[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:
        # Within rounding of the end of the last block.
        assert abs(sent_bits[-1] - bits) <= 1e-9 * bits or found[0] == expected


def test_passed_blocks_by_hand():
    ends_s = np.array([1.0, 3.0, 6.0])
    found = [passed_blocks(ends_s, at_s) for at_s in (0.0, 0.5, 1.0, 2.5, 3.0, 6.0, 7.0)]
    assert found == list(zip([0, 0, 1, 1, 2, 2, 2], [0.0, 0.5, 0.0, 1.5, 0.0, 3.0, 4.0], strict=True))


def share(flows, capacity):
    """Return the rates of flows given as lists of links, or of (link, weight)."""
    depth = max(len(flow) for flow in flows)
    routes = np.full((len(flows), depth), PAD)
    weights = np.ones((len(flows), depth))
    for i, flow in enumerate(flows):
        for j, step in enumerate(flow):
            routes[i, j], weights[i, j] = step if isinstance(step, tuple) else (step, 1.0)
    return max_min_rates(routes, weights, np.array(capacity, dtype=float))


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
def test_the_same_as_filling_step_by_step(network):
    flows, capacity = network
    expected = filled([dict(flow) for flow in flows], dict(enumerate(capacity)))
    np.testing.assert_allclose(share(flows, capacity), expected, atol=1e-9 * max(capacity))


def test_two_flows_over_one_link_have_its_part_together_and_nothing_has_none():
    routes = np.array([[0, 2], [0, 2], [1, 2]])
    airtimes = np.stack([np.array([[2, PAD]] * 3), np.full((3, 2), PAD)])
    parts = time_parts(routes, airtimes, np.array([1.0, 1.0, 2.0]), np.array([4.0, 4.0, 1.0]))
    np.testing.assert_allclose(parts, [0.5, 0.5, 1.0])
    none = time_parts(routes, airtimes, np.zeros(3), np.array([4.0, 0.0, 1.0]))
    assert none[:2].tolist() == [0.0, 0.0]


def test_a_link_between_two_stations_has_the_lesser_of_their_times():
    # Link 0 shares airtime 2 with link 1, half and half, and is alone on airtime 3.
    routes = np.array([[0, 2, 3], [1, 2, PAD]])
    airtimes = np.array([[[2, PAD, PAD], [2, PAD, PAD]], [[3, PAD, PAD], [PAD, PAD, PAD]]])
    parts = time_parts(routes, airtimes, np.array([1.0, 1.0]), np.array([2.0, 2.0, 1.0, 1.0]))
    np.testing.assert_allclose(parts[:2], [0.5, 0.5])


@pytest.mark.parametrize("seed", range(6))
def test_each_block_is_filled_as_if_it_were_alone(seed):
    """Own links of random capacity in each block, two wires and a trunk, some of which bind in some blocks."""
    rng = np.random.default_rng(seed)
    n, blocks = int(rng.integers(1, 9)), 12
    wire = n + rng.integers(0, 2, n)
    routes = np.column_stack([np.arange(n), wire, np.full(n, n + 2)])
    routes[rng.random(n) < 0.2, 2] = PAD
    weights = np.where(rng.random(routes.shape) < 0.3, 2.0, 1.0)
    fixed = np.append(np.ones(n), rng.uniform(1.0, 8.0, 3))
    capacity = fixed * np.where(np.arange(n + 3) < n, rng.exponential(2.0, (blocks, n + 3)), 1.0)
    found = FlowsOverBlocks.of(routes, weights, fixed).rates_bps(capacity)
    for block in range(blocks):
        np.testing.assert_allclose(found[block], max_min_rates(routes, weights, capacity[block]), rtol=1e-12)


def test_links_without_end_play_no_part():
    routes, weights = np.array([[0, 1], [2, 1]]), np.ones((2, 2))
    flows = FlowsOverBlocks.of(routes, weights, np.array([3.0, math.inf, 5.0]))
    assert flows.rates_bps(np.array([[3.0, math.inf, 5.0]])).tolist() == [[3.0, 5.0]]


def test_a_block_without_end():
    plan = BlocksAhead.over(1.0, np.arange(2), np.array([[2.0, 0.0]]), np.ones((1, 2)), np.array([math.inf]))
    assert plan.after_s(np.array([4.0, 4.0])).tolist() == [2.0, math.inf]
    assert plan.length_s == math.inf
    assert plan.carried(2.0)[0].tolist() == [2.0, 0.0]
