"""The table of flows without a clock, by hand."""

import numpy as np

from fedsim.network.topology.flow_state import FlowState, Route


def route(*links):
    return Route(links, (1.0,) * len(links), 0.0)


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
