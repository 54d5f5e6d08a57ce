"""Rounds over a shared medium: hand-worked times, and cells in which more clients cost time."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, WaitForAll
from tests.support.short_runs import timed
from tests.support.stories import rows
from tests.support.worlds import Pipe, Sequence, serve

TIMES = ("downlink_s", "compute_s", "uplink_s", "queue_s", "end_s", "outcome", "cut_in")


def test_shared_uplink_alone_worked_by_hand():
    """Uploads of 1 bit begin at 2, 2.5 and 9 s: the first two have half the pipe each while both are in progress."""
    links = Pipe([1, 1, 5], [0, 0, 0], up=EqualSharing)
    history, *_ = serve(WaitForAll(), [0] * 3, [1, 1.5, 4], [0] * 3, links=links)
    assert rows(history.participations, *TIMES) == [
        (1.0, 1.0, 1.5, 0.0, 3.5, "delivered", None),
        (1.0, 1.5, 1.5, 0.0, 4.0, "delivered", None),
        (5.0, 4.0, 1.0, 0.0, 10.0, "delivered", None),
    ]
    assert history.column("rounds", "duration_s").tolist() == [10]


def test_shared_downlink_alone_and_a_dedicated_uplink_after_it():
    links = Pipe([0, 0], [3, 4], down=FirstCome)
    history, *_ = serve(WaitForAll(), [0] * 2, [5, 6], [0] * 2, links=links)
    assert rows(history.participations, *TIMES) == [
        (1.0, 5.0, 3.0, 0.0, 9.0, "delivered", None),
        (1.0, 6.0, 4.0, 1.0, 12.0, "delivered", None),
    ]


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


def test_a_client_that_leaves_during_a_transfer_frees_its_share():
    links = Pipe([0] * 2, [0] * 2, down=EqualSharing, up=EqualSharing)
    history, *_ = serve(Deadline(deadline_s=9), [0] * 2, [1] * 2, [0] * 2, links=links, leaves_s=[1.0, np.inf])
    assert rows(history.participations, "downlink_s", "downlink_bits", "uplink_bits", "end_s", "outcome") == [
        (1.0, 0.5, 0.0, 1.0, "dropped"),
        (1.5, 1.0, 1.0, 3.5, "delivered"),
    ]


def test_waiting_in_the_queue_and_cut_there_counts_as_queueing():
    links = Pipe([0] * 3, [0] * 3, up=FirstCome)
    history, *_ = serve(Deadline(deadline_s=2.5), [0] * 3, [1] * 3, [0] * 3, links=links)
    assert rows(history.participations, "uplink_s", "queue_s", "uplink_bits", "outcome", "cut_in") == [
        (1.0, 0.0, 1.0, "delivered", None),
        (0.5, 1.0, 0.5, "late", "uplink"),
        (0.0, 1.5, 0.0, "late", "uplink"),
    ]


def test_a_shared_upload_that_ends_exactly_at_the_deadline_is_delivered():
    links = Pipe([0] * 2, [0] * 2, up=EqualSharing)
    history, *_ = serve(Deadline(deadline_s=2.3), [0] * 2, [0.3] * 2, [0] * 2, links=links)
    assert rows(history.participations, "outcome") == [("delivered",)] * 2


def test_privacy_is_charged_when_a_shared_upload_starts():
    links = Pipe([0] * 2, [0] * 2, up=FirstCome)
    history, *_ = serve(
        Deadline(deadline_s=2), [0] * 2, [1, 5], [0] * 2, links=links, budget=GeometricBudget(epsilon=20.0, eta=0.1)
    )
    first, second = rows(history.participations, "epsilon")
    assert first[0] > 0
    assert second[0] == 0


def test_waiting_for_a_shared_link_that_carries_nothing_is_refused():
    links = Pipe([0, np.inf], [0] * 2, down=EqualSharing)
    with pytest.raises(ScenarioError, match=r"client 1.*the policy waits for every client"):
        serve(WaitForAll(), [0] * 2, [1] * 2, [0] * 2, links=links)


def test_a_shared_link_that_carries_nothing_is_cut_by_the_deadline():
    links = Pipe([0, np.inf], [0] * 2, down=EqualSharing)
    history, *_ = serve(Deadline(deadline_s=3), [0] * 2, [1] * 2, [0] * 2, links=links)
    assert rows(history.participations, "outcome", "downlink_s", "downlink_bits") == [
        ("delivered", 1.0, 1.0),
        ("late", 3.0, 0.0),
    ]


def cell(cohort, down, up, **values):
    network = {
        "kind": "cell",
        "access": "none",
        "fading": "none",
        "shadowing_sigma_db": 0.0,
        "downlink": {"sharing": down, "bandwidth_hz": 1e7},
        "uplink": {"sharing": up, "bandwidth_hz": 1e7},
    }
    rounds = {"count": 3, "policy": values.get("policy", "wait-for-all")}
    return timed(clients=40, bits=1e6, samples=10, cohort=cohort, network=network, rounds=rounds)


RULES = ("equal", "proportional-fair", "max-relative-snr", "first-come", "minimum-makespan")


@pytest.mark.parametrize("rule", RULES)
def test_selecting_more_clients_costs_time(rule):
    mean_s = [simulate(cell(size, rule, rule)).column("rounds", "duration_s").mean() for size in (1, 4, 16)]
    assert mean_s[1] > 2 * mean_s[0]
    assert mean_s[2] > 2 * mean_s[1]


def test_dedicated_shares_and_multicast_do_not_cost_more_for_more_of_the_same():
    everyone = simulate(cell(40, "dedicated", "dedicated"))
    slowest = max(simulate(cell(40, "multicast", "dedicated")).column("participations", "downlink_s"))
    assert slowest == pytest.approx(everyone.column("participations", "downlink_s").max(), abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_client_alone_takes_what_its_dedicated_link_would(rule):
    """Without fading the ergodic efficiency is the efficiency, and a single client has the spectrum alone."""
    shared, alone = (simulate(cell(1, kind, kind)).column("participations", "end_s") for kind in (rule, "dedicated"))
    np.testing.assert_allclose(shared, alone, rtol=1e-9)


def test_all_uploads_of_a_cohort_that_starts_together_finish_together():
    """Multicast starts all uploads at once but for the propagation delays, which are below a microsecond."""
    history = simulate(cell(8, "multicast", "minimum-makespan"))
    ends = history.column("participations", "end_s")[:8]
    assert np.ptp(ends) < 2e-6
    assert ends[0] > 0.05


@pytest.mark.parametrize("rule", RULES)
def test_a_deadline_over_shared_spectrum_cuts_some_and_passes_the_audit(rule):
    whole_s = simulate(cell(20, rule, rule)).column("rounds", "duration_s").min()
    history = simulate(cell(20, rule, rule, policy={"kind": "deadline", "deadline_s": 0.9 * whole_s}))
    assert history.column("rounds", "late").min() > 0
