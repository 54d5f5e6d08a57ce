"""The table of flows without a clock: edges of blocks, and links that no flow uses."""

import numpy as np

from fedsim.network.topology.flow_state import FlowState, Route


def route(*links):
    return Route(links, (1.0,) * len(links), 0.0)


class Alternating:
    """Link 0 has twice its capacity in even blocks of a second and none in odd ones."""

    coherence_s, most_blocks, last_block = 1.0, 10**6, 10**6

    def fades(self, link):
        return link == 0

    def ratios(self, link, block):
        return np.where(block % 2 == 0, 2.0, 0.0)[:, None] * np.ones(link.size)


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
