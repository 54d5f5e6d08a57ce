"""The table of flows without a clock, by hand."""

import math

import numpy as np

from fedsim.network.topology.flow_state import FlowState, Route


def route(*links):
    return Route(links, (1.0,) * len(links), 0.0)


def test_flows_come_share_and_go_by_hand():
    # Links of 9 and 6 bit/s: a long flow over both and one over each; the second link's two get 3 each, the first's 6.
    table = FlowState(np.array([9.0, 6.0, 5.0]))
    ways = [route(0, 1), route(0), route(1)]
    rows = [table.take(12.0) for _ in ways]
    for row, way in zip(rows, ways, strict=True):
        table.place(row, way)
    assert table.share(10.0) == 12.0
    assert table.rate_bps[rows].tolist() == [3.0, 6.0, 3.0]
    table.carry(2.0, 12.0)
    assert table.remaining_bits[rows].tolist() == [6.0, 0.0, 6.0]
    assert table.due(12.0) == [rows[1]]
    assert table.due(11.9) == []
    table.lift(ways[1])
    table.give_back(rows[1])
    assert table.next_finish_s() == 14.0
    # The link that nobody uses keeps its new capacity for whoever comes.
    assert not table.set_capacity(2, 2.0)
    assert table.set_capacity(1, 2.0)
    again = table.take(8.0)
    assert again == rows[1]
    table.place(again, route(2))
    assert table.share(12.0) == 16.0
    assert table.rate_bps[rows].tolist() == [1.0, 2.0, 1.0]
    assert [table.holds(link) for link in range(3)] == [True, True, True]


def test_a_flow_without_a_way_stands_still():
    table = FlowState(np.array([4.0]))
    row = table.take(8.0)
    table.place(row, route(0))
    assert table.share(0.0) == 2.0
    table.lift(route(0))
    table.place(row, None)
    assert table.share(0.0) == math.inf
    assert table.due(1e9) == []
    assert not table.holds(0)
