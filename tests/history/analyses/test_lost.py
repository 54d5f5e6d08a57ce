"""Who was lost, in which phase and by how many seconds, and deadlines that would have kept them: worked by hand."""

import numpy as np
import pytest

from fedsim import Testbed
from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.late import Drop
from tests.support.hand_made import by_hand
from tests.support.stories import rows
from tests.support.worlds import serve

# Within 5 s client 0 delivers; 1 would end its upload of 3 s to 7 s, 2 its work of 1 s to 6.5 s and then its upload.
WORLD = [1] * 4, [1, 2, 5.5, 4], [1, 4, 1, 1]


def test_of_cancelled_clients_an_upload_tells_about_how_much_was_lacking():
    """Client 1 has sent half of its bits in 2 s; 2 is cut in its work; 3 was lost at 1.5 s in its work."""
    history, *_ = serve(Deadline(deadline_s=5), *WORLD, leaves_s=[np.inf, np.inf, np.inf, 1.5])
    phases = ("downlink", "compute", "uplink")
    assert rows(history.lost(), "client", "selected", "late", "dropped", *phases) == [
        (1, 1, 1, 0, 0, 0, 1),
        (2, 1, 1, 0, 0, 1, 0),
        (3, 1, 0, 1, 0, 1, 0),
    ]
    assert rows(history.lost(), "missed_by_s", "missed_by_about_s") == [(None, 2.0), (None, None), (None, None)]
    kept = history.deadlines_that_keep([0.5, 0.51, 1.0])
    assert rows(kept, "share", "deadline_s", "about_s") == [(0.5, None, 7.0), (0.51, None, None), (1.0, None, None)]


def test_what_was_lacking_is_of_the_message_of_each_client():
    """Links of 1 Mbit/s: in its second round client 0 sends 0.5 of its 1 Mbit in time, beside messages of 2 Mbit."""
    network = {"kind": "fedscale", "median_kbps": 1e6 / 1024, "sigma": 0.0}
    deadline = {"count": 2, "policy": {"kind": "deadline", "deadline_s": 3.0}}
    with Testbed(by_hand(network=network, devices={"compute": "zero"}, rounds=deadline)) as testbed:
        for down_bits in (1e6, 2.5e6):
            testbed.round([0, 1], down_bits=[down_bits, 1e6], up_bits=[1e6, 2e6])
    assert rows(testbed.finish().lost(), "client", "missed_by_about_s") == [(0, 0.5)]


def test_no_deadline_keeps_what_a_crash_of_the_server_has_cut():
    """The deadline of the first round cuts client 1 in the middle of its upload, and a crash its next one."""
    crash = ServerRestart(at_s=(7.0,), down_s=1.0)
    times = [1, 1], [1, 1], [0.5, 4]
    history, *_ = serve(Deadline(deadline_s=4), *times, server_restart=crash, count=2)
    assert history.column("rounds", "ended_by").tolist() == ["deadline", "restart"]
    assert rows(history.lost(), "client", "late", "missed_by_about_s") == [(1, 2, 2.0)]
    kept = history.deadlines_that_keep([0.5, 1.0])
    assert rows(kept, "about_s") == [(6.0,), (None,)]


def test_of_clients_that_go_on_the_seconds_are_known():
    """Client 2 arrives at 7.5 s, and client 3 at 6 s; at 5 s they are in their work, and in their upload."""
    history, *_ = serve(Deadline(deadline_s=5), *WORLD, late=Drop(), count=2)
    names = ("client", "selected", "late", "compute", "uplink", "missed_by_s")
    assert rows(history.lost(), *names) == [(1, 1, 1, 0, 1, 2.0), (2, 1, 1, 1, 0, 2.5), (3, 1, 1, 0, 1, 1.0)]
    alone, *_ = serve(Deadline(deadline_s=5), [1, 1], [1, 1], [1, 4], late=Drop(), count=2)
    assert rows(alone.deadlines_that_keep(), "deadline_s") == [(6.0,), (6.0,), (6.0,)]


def test_the_most_lost_come_first_with_the_median_of_what_was_lacking():
    """Two rounds; client 1 needs 7 s in both, and client 0 is never late."""
    history, *_ = serve(Deadline(deadline_s=5), [1, 1, 1], [1, 2, 1], [1, 4, 8], count=2)
    assert rows(history.lost(), "client", "late", "missed_by_about_s") == [(1, 2, 2.0), (2, 2, 5.0)]


def test_deadlines_longer_than_that_of_a_round_that_lost_clients_cannot_be_seen():
    history, *_ = serve(Deadline(deadline_s=5), *WORLD)
    assert rows(history.deadline_whatif([3.0, 5.0, 5.1]).totals(), "saved_s", "lost") == [(2, 0), (0, 0), (None, None)]
    whole, *_ = serve(WaitForAll(), *WORLD)
    assert rows(whole.deadline_whatif([5.1, 99.0]).totals(), "saved_s") == [(pytest.approx(2.4),), (0,)]


def test_a_run_that_lost_nobody():
    for history in (serve(WaitForAll(), *WORLD)[0], Recorder("empty").history()):
        assert history.lost().num_rows == 0
        assert rows(history.deadlines_that_keep(0.5), "deadline_s", "about_s") == [(None, None)]
    with pytest.raises(RunError, match=r"shares: \[0\.0\] is not allowed"):
        history.deadlines_that_keep(0)
