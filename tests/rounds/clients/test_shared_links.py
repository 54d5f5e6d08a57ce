"""Rounds over a shared medium: hand-worked times, and cells in which more clients cost time."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.rounds import Deadline, WaitForAll
from tests.support.short_runs import timed
from tests.support.stories import rows
from tests.support.worlds import Pipe, Sequence, serve

TIMES = (
    *("downlink_s", "compute_s", "uplink_s", "queue_s", "end_s"),
    *("downlink_bits", "uplink_bits", "outcome", "cut_in"),
)


BY_HAND = {
    # Uploads of 1 bit begin at 2, 2.5 and 9 s: the first two have half the pipe each while both are in progress.
    "uplinks": (
        *(WaitForAll(), Pipe([1, 1, 5], [0] * 3, up=EqualSharing), [1, 1.5, 4], None, 10),
        (1.0, 1.0, 1.5, 0.0, 3.5, 1.0, 1.0, "delivered", None),
        (1.0, 1.5, 1.5, 0.0, 4.0, 1.0, 1.0, "delivered", None),
        (5.0, 4.0, 1.0, 0.0, 10.0, 1.0, 1.0, "delivered", None),
    ),
    "downlinks, and uplinks after them": (
        *(WaitForAll(), Pipe([0, 0], [3, 4], down=FirstCome), [5, 6], None, 12),
        (1.0, 5.0, 3.0, 0.0, 9.0, 1.0, 1.0, "delivered", None),
        (1.0, 6.0, 4.0, 1.0, 12.0, 1.0, 1.0, "delivered", None),
    ),
    "a client that leaves frees its share": (
        *(Deadline(deadline_s=9), Pipe([0] * 2, [0] * 2, down=EqualSharing, up=EqualSharing), [1, 1], [1.0, np.inf], 9),
        (1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, "dropped", "downlink"),
        (1.5, 1.0, 1.0, 0.0, 3.5, 1.0, 1.0, "delivered", None),
    ),
    "cut in the queue": (
        *(Deadline(deadline_s=2.5), Pipe([0] * 3, [0] * 3, up=FirstCome), [1] * 3, None, 2.5),
        (0.0, 1.0, 1.0, 0.0, 2.0, 1.0, 1.0, "delivered", None),
        (0.0, 1.0, 0.5, 1.0, 2.5, 1.0, 0.5, "late", "uplink"),
        (0.0, 1.0, 0.0, 1.5, 2.5, 1.0, 0.0, "late", "uplink"),
    ),
    "at the deadline": (
        *(Deadline(deadline_s=2.3), Pipe([0] * 2, [0] * 2, up=EqualSharing), [0.3] * 2, None, 2.3),
        *[(0.0, 0.3, 2.0, 0.0, 2.3, 1.0, 1.0, "delivered", None)] * 2,
    ),
    "a link that carries nothing": (
        *(Deadline(deadline_s=3), Pipe([0, np.inf], [0] * 2, down=EqualSharing), [1] * 2, None, 3),
        (1.0, 1.0, 0.0, 0.0, 2.0, 1.0, 1.0, "delivered", None),
        (3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, "late", "downlink"),
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_shared_links_worked_by_hand(case):
    policy, links, work_s, leaves_s, round_s, *expected = BY_HAND[case]
    none = [0] * len(work_s)
    history, *_ = serve(policy, none, work_s, none, links=links, leaves_s=leaves_s)
    assert rows(history.participations, *TIMES) == [pytest.approx(row) for row in expected]
    assert history.column("rounds", "duration_s").tolist() == [round_s]


def test_late_clients_free_the_medium_for_the_next_round_at_that_instant():
    """Round 1: both upload from 1 s on, cut at 2 s with half a bit each. Round 2: one client alone."""
    links = Pipe([0] * 3, [0] * 3, up=EqualSharing)
    selector = Sequence([np.array([0, 1]), np.array([2])])
    history, *_ = serve(Deadline(deadline_s=2), [0] * 3, [1] * 3, [0] * 3, links=links, selector=selector, count=2)
    assert rows(history.participations, "client", "uplink_s", "uplink_bits", "end_s", "outcome", "cut_in") == [
        (0, 1.0, 0.5, 2.0, "late", "uplink"),
        (1, 1.0, 0.5, 2.0, "late", "uplink"),
        (2, 1.0, 1.0, 4.0, "delivered", None),
    ]
    assert links.up_medium.book().lost == 1.0


def test_waiting_for_a_shared_link_that_carries_nothing_is_refused():
    links = Pipe([0, np.inf], [0] * 2, down=EqualSharing)
    with pytest.raises(ScenarioError, match=r"client 1.*the policy waits for every client"):
        serve(WaitForAll(), [0] * 2, [1] * 2, [0] * 2, links=links)


@pytest.mark.parametrize("rule", ["equal", "proportional-fair", "max-relative-snr", "first-come", "minimum-makespan"])
def test_a_client_alone_takes_what_its_dedicated_link_would(rule):
    """Without fading the ergodic efficiency is the efficiency, and a single client has the spectrum alone."""
    ends_s = []
    for sharing in (rule, "dedicated"):
        direction = {"sharing": sharing, "bandwidth_hz": 1e7}
        network = {"kind": "cell", "access": "none", "fading": "none", "shadowing_sigma_db": 0.0}
        network |= {"downlink": direction, "uplink": direction}
        history = simulate(timed(clients=40, bits=1e6, samples=10, cohort=1, network=network, rounds={"count": 3}))
        ends_s.append(history.column("participations", "end_s"))
    np.testing.assert_allclose(*ends_s, rtol=1e-9)
