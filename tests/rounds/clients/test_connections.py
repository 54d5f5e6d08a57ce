"""Connections: hand-worked set-ups after idle, on dedicated and shared links, with questions and cut rounds."""

import pytest

from fedsim.network.contracts import Connection
from fedsim.network.medium.disciplines import EqualSharing
from fedsim.network.medium.multicast import Multicast
from fedsim.rounds import Deadline, WaitForAll
from tests.support.stories import rows
from tests.support.worlds import FixedLinks, Pipe, serve

TIMES = ("downlink_s", "compute_s", "uplink_s", "end_s")
RELEASED = Connection(inactivity_s=3.0, setup_s=0.5)


def with_connection(links, connection=RELEASED):
    links.connection = connection
    return links


def test_a_client_pays_after_idle_and_after_long_work_worked_by_hand():
    """Client 0 works 4 s, above the timer of 3; client 1 works 1 s. Round 2 begins as client 0's uplink ends."""
    links = with_connection(FixedLinks([2.0, 1.0], [3.0, 1.0]))
    history, *_ = serve(WaitForAll(), [2, 1], [4, 1], [3, 1], links=links, count=2)
    assert rows(history.participations, *TIMES) == [
        (2.5, 4.0, 3.5, 10.0),
        (1.5, 1.0, 1.0, 3.5),
        # Client 0 was last heard at 10 s, client 1 at 3.5 s.
        (2.0, 4.0, 3.5, 19.5),
        (1.5, 1.0, 1.0, 13.5),
    ]


def test_the_timer_itself_is_no_release():
    links = with_connection(FixedLinks([1.0], [1.0]))
    history, *_ = serve(WaitForAll(), [1], [3], [1], links=links, count=2)
    assert history.column("participations", "uplink_s").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("down", [None, EqualSharing])
@pytest.mark.parametrize("up", [None, EqualSharing])
def test_set_ups_take_no_share_of_a_shared_medium(down, up):
    """Two clients, messages of 1 bit over pipes of 1 bit/s: both set up for 0.5 s, and share only after that."""
    links = with_connection(Pipe([1, 1], [1, 1], down=down, up=up))
    history, *_ = serve(WaitForAll(), [1] * 2, [4] * 2, [1] * 2, links=links, count=2)
    down_s, up_s = 1.0 if down is None else 2.0, 1.0 if up is None else 2.0
    for row, setup_s in zip(rows(history.participations, *TIMES[:3]), (0.5, 0.5, 0.0, 0.0), strict=True):
        assert row == (down_s + setup_s, 4.0, up_s + 0.5)


def test_a_broadcast_needs_no_connection_and_keeps_none():
    links = with_connection(Pipe([1], [1], down=Multicast), Connection(3.0, 0.5, by_downlink=False))
    history, *_ = serve(WaitForAll(), [1], [1], [1], links=links, count=2)
    assert rows(history.participations, *TIMES[:3]) == [(1.0, 1.0, 1.5)] * 2


def test_a_client_cut_in_its_work_was_last_heard_at_the_end_of_its_downlink():
    """Round 1 ends at 6 s; the client worked from 1.5 s on, so that it is idle for 4.5 s, above the timer of 3."""
    links = with_connection(FixedLinks([1.0], [1.0]))
    history, *_ = serve(Deadline(deadline_s=6), [1], [9], [1], links=links, count=2)
    assert history.column("participations", "downlink_s").tolist() == [1.5, 1.5]
    # Cut in the downlink it was heard until then; the 0.5 s of its set-up have carried nothing.
    links = with_connection(FixedLinks([8.0], [1.0]))
    history, *_ = serve(Deadline(deadline_s=6), [8], [9], [1], links=links, count=2)
    assert history.column("participations", "downlink_bits").tolist() == pytest.approx([5.5 / 8, 6 / 8])
