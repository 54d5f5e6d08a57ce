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
    # An idle link has its new capacity for the next flow.
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


class Alternating:
    """Link 0 has twice its capacity in even blocks of a second and none in odd ones."""

    coherence_s, last_block = 1.0, 10**6

    def __init__(self, most_blocks=10**6):
        self.most_blocks = most_blocks

    def fades(self, link):
        return link == 0

    def ratios(self, link, block):
        return np.where(block % 2 == 0, 2.0, 0.0)[:, None] * np.ones(link.size)


def test_a_link_that_fades_by_hand():
    # 4 bit/s twice over, and a wire of 6: 6 bits by 1 s, none in the next, and 3 more by 2.5 s.
    table = FlowState(np.array([4.0, 6.0]), Alternating())
    row = table.take(9.0)
    table.place(row, route(0, 1))
    assert table.share(0.0) == 2.5
    assert [table.rate_at(row, now) for now in (0.0, 0.5, 1.0, 1.5, 2.0)] == [6.0, 6.0, 0.0, 0.0, 6.0]
    table.carry(1.5, 1.5)
    assert table.remaining_bits[row] == 3.0
    # A change in an odd block: what is left takes the same time.
    assert table.share(1.5) == 2.5
    assert table.due(2.4) == []
    assert table.due(2.5) == [row]
    assert table.known_until_s > 2.5


def test_after_many_blocks_a_link_has_its_mean():
    # 8 bits in the first block, none in the second; then 4 bit/s: the other 12 by 5 s.
    table = FlowState(np.array([4.0]), Alternating(most_blocks=2))
    row = table.take(20.0)
    table.place(row, route(0))
    now_s = 0.0
    while not table.due(now_s):
        before_s, now_s = now_s, table.share(now_s)
        table.carry(now_s - before_s, now_s)
    assert now_s == 5.0
    assert table.known_until_s == np.inf


def test_the_last_instant_of_a_block_belongs_to_the_next():
    table = FlowState(np.array([4.0]), Alternating())
    row = table.take(100.0)
    table.place(row, route(0))
    table.share(np.nextafter(1.0, 0.0))
    assert table.rate_at(row, 1.0) == 0.0


def test_only_links_in_use_change_their_fading():
    table = FlowState(np.array([4.0]), Alternating())
    assert not table.fading_changed(0)
    table.place(table.take(1.0), route(0))
    assert table.fading_changed(0)
    constant = FlowState(np.array([4.0]))
    constant.place(constant.take(1.0), route(0))
    assert not constant.fading_changed(0)
