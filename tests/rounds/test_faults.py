"""Crashes of clients, outages of their links and restarts of the server, against expectations worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.devices import Bernoulli
from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.network.medium.multicast import Multicast
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.adaptive import MovingAverage, QuantileDeadline
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from fedsim.rounds.policies.count_based import KFastest, Quorum
from fedsim.rounds.policies.late import Partial, Stale
from fedsim.rounds.policies.safa import Safa
from fedsim.rounds.server import server
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.stories import rows
from tests.support.worlds import (
    Asking,
    CountingLearner,
    Everybody,
    FirstWanted,
    Pipe,
    available_in,
    batteries,
    serve,
)

LONG_S = 1000.0


ALWAYS = [(0, LONG_S)]


def test_a_client_that_is_down_is_no_candidate_and_the_server_waits_for_the_first_return():
    """Client 0 crashes at 4 and is back at 12, client 1 is down from 7 to 20."""
    selector = Everybody()
    up = available_in([(0, 4), (12, 99)], [(0, 7), (20, 99)])
    history, *_ = serve(Deadline(deadline_s=10), [1] * 2, [2] * 2, [3] * 2, devices_up=up, selector=selector, count=3)
    assert [view.client.tolist() for view in selector.views] == [[0, 1], [0], [0]]
    assert rows(history.rounds, "start_s", "end_s", "candidates") == [(0, 10, 2), (12, 18, 1), (18, 24, 1)]
    assert rows(history.participations, "client", "outcome", "end_s") == [
        (0, "dropped", 4),
        (1, "delivered", 6),
        (0, "delivered", 18),
        (0, "delivered", 24),
    ]


# A client has 1 s of downlink, 2 s of work and 3 s of uplink.
BY_HAND = {
    "the device crashes in the downlink": (
        *("devices", [(0, 0.25), (0.5, 99)]),
        ("dropped", "downlink", 0.25, 0, 0, 0, 0.25, 0.25, 0),
    ),
    "in the work": ("devices", [(0, 2.5), (2.6, 99)], ("dropped", "compute", 1, 1.5, 0, 0, 2.5, 1, 0)),
    "in the upload": ("devices", [(0, 4.5), (9, 99)], ("dropped", "uplink", 1, 2, 1.5, 0, 4.5, 1, 0.5)),
    "as all is done": ("devices", [(0, 6), (9, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "never": ("devices", [(0, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "a link in the downlink": (
        "links",
        [(0, 0.5), (0.6, 99)],
        ("dropped", "downlink", 0.5, 0, 0, 0, 0.5, 0.5, 0.0),
    ),
    "as the downlink ends": ("links", [(0, 1), (1.5, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "and is back before the work is done": ("links", [(0, 1.5), (2.5, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "and is back as the work is done": ("links", [(0, 1.5), (3, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "and is back after the work": ("links", [(0, 1.5), (5, 99)], ("delivered", None, 1, 2, 3, 2, 8, 1, 1)),
    "as the work ends": ("links", [(0, 3), (4, 99)], ("delivered", None, 1, 2, 3, 1, 7, 1, 1)),
    "twice before the upload": ("links", [(0, 1.5), (2, 2.5), (5, 99)], ("delivered", None, 1, 2, 3, 2, 8, 1, 1)),
    "in the uplink": ("links", [(0, 3.75), (4, 99)], ("dropped", "uplink", 1, 2, 0.75, 0, 3.75, 1, 0.25)),
    "after it has waited": (
        "links",
        [(0, 2), (4, 5.5), (6, 99)],
        ("dropped", "uplink", 1, 2, 1.5, 1, 5.5, 1, 0.5),
    ),
    "as the uplink ends": ("links", [(0, 6), (7, 99)], ("delivered", None, 1, 2, 3, 0, 6, 1, 1)),
    "until the deadline": ("links", [(0, 2), (40, 99)], ("late", "uplink", 1, 2, 0, 17, 20, 1, 0)),
    "and the deadline later": (
        "links",
        [(0, 2), (18.5, 99)],
        ("late", "uplink", 1, 2, 1.5, 15.5, 20, 1, 0.5),
    ),
    "and the device while it waits": ("both", [(0, 2), (5, 99)], ("dropped", "uplink", 1, 2, 0, 1, 4, 1, 0)),
}
COLUMNS = (
    *("outcome", "cut_in", "downlink_s", "compute_s", "uplink_s", "queue_s"),
    *("end_s", "downlink_bits", "uplink_bits"),
)


@pytest.mark.parametrize("case", BY_HAND)
def test_devices_and_links_that_fail_worked_by_hand(case):
    """Where both fail, the device does at 4 s."""
    what, up, expected = BY_HAND[case]
    links, devices = (None if what == other else available_in(up) for other in ("devices", "links"))
    devices = available_in([(0, 4), (9, 99)]) if what == "both" else devices
    history, *_ = serve(Deadline(deadline_s=20), [1], [2], [3], links_up=links, devices_up=devices)
    assert rows(history.participations, *COLUMNS) == [pytest.approx(expected, abs=1e-12)]
    fates = {"delivered": "used", "dropped": "wasted-dropped", "late": "wasted-late"}
    assert rows(history.participations, "fate") == [(fates[expected[0]],)]
    assert rows(history.rounds, "end_s") == [(expected[6] if expected[0] == "delivered" else 20.0,)]


def test_a_device_that_crashes_in_a_downlink_that_never_ends():
    up = {"links_up": available_in([(0, 6), (7, 99)]), "devices_up": available_in([(0, 4), (9, 99)])}
    history, *_ = serve(Deadline(deadline_s=20), [np.inf], [2], [1], **up)
    assert rows(history.participations, *COLUMNS) == [("dropped", "downlink", 4, 0, 0, 0, 4, 0, 0)]


def test_a_client_whose_link_is_down_is_no_candidate():
    selector = Everybody()
    up = available_in([(0, 5), (6.5, 99)], [(0, 99)])
    history, *_ = serve(WaitForAll(), [1] * 2, [2] * 2, [2] * 2, links_up=up, selector=selector, count=3)
    assert [view.client.tolist() for view in selector.views] == [[0, 1], [1], [0, 1]]
    assert rows(history.rounds, "start_s", "candidates") == [(0, 2), (5, 1), (10, 2)]


@pytest.mark.parametrize("uplink", [EqualSharing, FirstCome])
def test_a_transfer_that_is_lost_frees_the_shared_medium(uplink):
    """Two uploads of 1 bit begin at 3 on a pipe of 1 bit/s. The link of client 0 fails at 3.5 for good.

    Shared equally, each has sent 1/4 bit then, and client 1 is done after 3/4 s more; first come, client 0 has sent
    1/2 bit, and client 1 begins then.
    """
    up = available_in([(0, 3.5), (90, 99)], ALWAYS)
    links = Pipe([1, 1], [1, 1], up=uplink)
    history, *_ = serve(Deadline(deadline_s=20), [1] * 2, [2] * 2, [1] * 2, links=links, links_up=up)
    lost, sent = rows(history.participations, "outcome", "cut_in", "end_s", "uplink_bits", "queue_s")
    if uplink is EqualSharing:
        assert lost == pytest.approx(("dropped", "uplink", 3.5, 0.25, 0.0))
        assert sent == pytest.approx(("delivered", None, 4.25, 1.0, 0.0))
    else:
        assert lost == pytest.approx(("dropped", "uplink", 3.5, 0.5, 0.0))
        assert sent == pytest.approx(("delivered", None, 4.5, 1.0, 0.5))


def test_an_upload_waits_for_its_link_and_then_for_the_medium():
    """Client 0's upload is due at 3 s, its link is back at 5 s, and client 1 sends from 4.5 s to 5.5 s."""
    up = available_in([(0, 2), (5, 99)], ALWAYS)
    links = Pipe([1, 1], [1, 1], up=FirstCome)
    history, *_ = serve(Deadline(deadline_s=20), [1] * 2, [2, 3.5], [1] * 2, links=links, links_up=up)
    assert rows(history.participations, "client", "queue_s", "uplink_s", "end_s") == [
        (0, 2.5, 1.0, 6.5),
        (1, 0.0, 1.0, 5.5),
    ]


@pytest.mark.parametrize("down", [EqualSharing, Multicast])
@pytest.mark.parametrize("up_rule", [None, EqualSharing])
def test_links_fail_during_shared_downlinks_and_delay_the_uploads_after_them(down, up_rule):
    """The downlink ends at 2 s for two that share it, at 1 s with a multicast; the link of client 1 fails during it.

    Client 0's link is down from after its downlink to 9 s, so that its upload of 1 s waits.
    """
    heard_s = 2.0 if down is EqualSharing else 1.0
    up = available_in([(0, heard_s + 0.5), (9, 99)], [(0, 0.5), (50, 99)])
    rule = Multicast if down is Multicast else down
    links = Pipe([1, 1], [1, 1], down=rule, up=up_rule)
    history, *_ = serve(Deadline(deadline_s=20), [1] * 2, [2] * 2, [1] * 2, links=links, links_up=up)
    kept, lost = rows(history.participations, "outcome", "cut_in", "end_s")
    assert lost == ("dropped", "downlink", 0.5)
    if down is EqualSharing:
        # The other is alone on the pipe from 0.5 s on.
        assert history.participations.column("downlink_s").to_pylist()[0] == pytest.approx(1.25)
    assert kept == ("delivered", None, pytest.approx(10.0))


def test_privacy_is_charged_when_a_deferred_upload_starts_and_only_then():
    up = available_in([(0, 2), (5, 99)], [(0, 2), (50, 99)], ALWAYS)
    budget = GeometricBudget(epsilon=20.0, eta=0.1)
    history, _, _, ledger = serve(
        Deadline(deadline_s=10), [1] * 3, [2] * 3, [3] * 3, links_up=up, budget=budget, count=1
    )
    assert [value > 0 for value in history.participations.column("epsilon").to_pylist()] == [True, False, True]
    assert ledger.spent[0] == ledger.spent[2] > ledger.spent[1] == 0
    assert history.participations.column("outcome").to_pylist() == ["delivered", "late", "delivered"]


def test_a_battery_pays_for_the_bits_of_a_deferred_upload():
    """3 J down, 5 J of work and 4 J up: 10 J reach half of an upload that begins at 5 s and would take 3 s."""
    power = batteries([10.0, 12.0], receive=3.0, sample=0.5, send=4.0)
    up = available_in([(0, 2), (5, 99)], [(0, 2), (5, 99)])
    history, *_ = serve(Deadline(deadline_s=20), [1] * 2, [2] * 2, [3] * 2, links_up=up, batteries=power)
    assert rows(history.participations, "outcome", "end_s", "uplink_bits", "energy_j", "queue_s") == [
        ("dropped", 6.5, 0.5, 10.0, 2.0),
        ("delivered", 8.0, 1.0, 12.0, 2.0),
    ]


@pytest.mark.parametrize("up", [None, [ALWAYS]], ids=["no outages", "outages"])
@pytest.mark.parametrize(
    ("prices", "due_j"), [({"work_w": 2.0}, 8.0), ({"sample": 2.0}, 8.0)], ids=["watts", "samples"]
)
def test_shortened_work_after_a_shared_downlink_is_paid_for_as_far_as_it_got(up, prices, due_j):
    """Of 10 s of work 8 are the least; after 1 s of downlink 4 of them are done at the deadline, half of 8 of 10.

    At 2 W that is 8 J; of 8 samples at 2 J each half are passed, which is 8 J too.
    """
    links = Pipe([1], [1], down=EqualSharing)
    history, *_ = serve(
        Deadline(deadline_s=5),
        *([1], [10], [1]),
        links=links,
        late=Partial(least_work=0.8),
        links_up=None if up is None else available_in(*up),
        batteries=batteries([50.0], **prices),
    )
    assert rows(history.participations, "work", "compute_s", "cut_in", "energy_j") == [
        pytest.approx((0.8, 4.0, "compute", due_j))
    ]


def restart(*at_s, down_s=3.0):
    return ServerRestart(at_s=at_s, down_s=down_s)


def test_a_server_that_crashes_loses_transfers_in_progress_and_buffered_updates():
    """Updates arrive at 3 s and 6 s; the server crashes at 4 s and 15 s and is back at 7 s and 18 s."""
    learner, selector = CountingLearner(np.array([10, 10])), Everybody()
    times = ([1, 1], [1, 2], [1, 3])
    history, *_ = serve(
        WaitForAll(), *times, server_restart=restart(4.0, 15.0), learner=learner, selector=selector, count=4
    )
    assert rows(history.rounds, "round", "start_s", "end_s", "model_version", "ended_by") == [
        (1, 0, 4, 0, "restart"),
        (2, 7, 13, 1, "enough"),
        (3, 13, 15, 1, "restart"),
        (4, 18, 24, 2, "enough"),
    ]
    assert rows(history.rounds, "selected", "delivered", "late", "dropped")[0] == (2, 1, 1, 0)
    assert rows(history.participations, "round", "client", "outcome", "fate", "end_s", "cut_in") == [
        (1, 0, "delivered", "wasted-unmerged", 3, None),
        (1, 1, "late", "wasted-late", 4, "uplink"),
        (2, 0, "delivered", "used", 10, None),
        (2, 1, "delivered", "used", 13, None),
        (3, 0, "late", "wasted-late", 15, "uplink"),
        (3, 1, "late", "wasted-late", 15, "compute"),
        (4, 0, "delivered", "used", 21, None),
        (4, 1, "delivered", "used", 24, None),
    ]
    assert history.participations.column("start_version").to_pylist()[2:] == [0, 0, 1, 1, 1, 1], (
        "it goes on from its last model"
    )
    assert [version for version, *_ in learner.asked] == [0, 0, 1, 1], "nothing that was lost is trained"
    assert [reports.round for reports in selector.reports] == [2, 4], "a crashed server has nothing to tell"


@pytest.mark.parametrize(("policy", "up_s"), [(WaitForAll(), 3.0), (Deadline(deadline_s=6), 4.0)])
def test_events_at_the_instant_of_a_crash_come_before_it(policy, up_s):
    """The round ends at 6 s, by its last update or by its deadline, and so does the server."""
    history, *_ = serve(policy, [1, 1], [1, 2], [1, up_s], server_restart=restart(6.0), count=3)
    assert rows(history.rounds, "start_s", "end_s", "model_version")[0] == (0, 6, 1)
    assert rows(history.rounds, "start_s", "end_s", "ended_by")[1] == (6, 6, "restart")
    assert rows(history.rounds, "start_s", "end_s")[2] == (9, 15)


@pytest.mark.parametrize(
    "policy",
    [
        Deadline(deadline_s=6),
        QuantileDeadline(initial_s=6, growth=1),
        MovingAverage(initial_s=6),
        KFastest(k=2, max_wait_s=6),
        KFastest(k=1, over_selection=2, max_wait_s=6),
        Quorum(share=1, max_wait_s=6),
        Quorum(share=0.5, min_wait_s=6, max_wait_s=9),
        Safa(share=1, max_wait_s=6),
    ],
    ids=repr,
)
def test_a_later_round_that_ends_at_the_instant_of_a_crash_has_ended_too(policy):
    """Client 0 takes 6 s and client 1 takes 60 s, so that every rule ends rounds at 6 s and at 12 s."""
    history, *_ = serve(policy, [2, 20], [2, 20], [2, 20], server_restart=restart(12.0), count=3)
    assert rows(history.rounds, "start_s", "end_s", "model_version")[:2] == [(0, 6, 1), (6, 12, 2)]
    assert rows(history.rounds, "start_s", "end_s", "ended_by")[2] == (12, 12, "restart")


def test_the_instant_of_a_crash_does_not_depend_on_the_last_digits_of_the_clock():
    """Three rounds of 0.1 s end at 0.30000000000000004 s, the server at 0.3 s."""
    history, *_ = serve(Deadline(deadline_s=0.1), [0.05, 1], [0, 0], [0, 0], server_restart=restart(0.3), count=4)
    assert [end for (end,) in rows(history.rounds, "ended_by")] == ["deadline", "deadline", "deadline", "restart"]
    assert rows(history.rounds, "model_version") == [(1,), (2,), (3,), (3,)]


@pytest.mark.parametrize("seed", range(8))
def test_an_asynchronous_server_draws_again_when_the_available_clients_have_lost_their_links(seed):
    """The link of client 0 works from 1 s to 1.25 s, too short to deliver; that of client 1 from 2 s on."""
    up = available_in([(1.0, 1.25), (90, 99)], [(2.0, LONG_S)])
    history, *_ = serve(
        FedBuff(buffer=1, concurrency=1, give_up_s=2.0),
        *([0.5] * 2, [0.5] * 2, [0.5] * 2),
        presence=Bernoulli(probability=0.5, retry_s=0.5).build(RunSetup(2, Streams(seed))),
        links_up=up,
        count=2,
    )
    used = [row for row in rows(history.participations, "client", "fate", "start_s") if row[1] == "used"]
    assert [client for client, _, _ in used] == [1, 1]
    assert used[0][2] >= 2.0


def test_a_server_that_crashes_without_available_clients_starts_the_round_after_its_return():
    """The first client is available from 5 s on; the server is down from 4 s to 7 s, then the second is available."""
    selector = Everybody()
    up = available_in([(5, 6), (50, 99)], [(5.5, 99)])
    history, *_ = serve(
        Deadline(deadline_s=9), [1] * 2, [1] * 2, [1] * 2, presence=up, server_restart=restart(4.0), selector=selector
    )
    assert rows(history.rounds, "round", "start_s", "end_s", "ended_by") == [(1, 7, 10, "enough")]
    assert [view.client.tolist() for view in selector.views] == [[1]]


def test_a_server_that_crashes_again_and_again_before_a_round_can_start_is_refused(monkeypatch):
    """The client is available from 90 s on; the server crashes at 4, 14 and 24 s, and has patience for three."""
    monkeypatch.setattr(server, "MOST_RESTARTS", 3)
    times, up = ([1], [1], [1]), available_in([(90, 99)])
    with pytest.raises(ScenarioError, match=r"server_restart: the server crashed 3 times in a row, up to 27 s, before"):
        serve(WaitForAll(), *times, presence=up, server_restart=restart(4.0, 14.0, 24.0), count=1)
    history, *_ = serve(WaitForAll(), *times, presence=up, server_restart=restart(4.0, 14.0), count=1)
    assert rows(history.rounds, "start_s", "end_s", "ended_by") == [(90, 93, "enough")]


def test_a_run_is_over_if_no_client_is_available_after_the_servers_return():
    """The client is available to 3.5 s and from 20 s on; the server crashes at 10 s, and the run ends at 25 s."""
    learner = CountingLearner(np.array([10]))
    history, *_ = serve(
        WaitForAll(),
        *([1], [1], [1]),
        presence=available_in([(0, 3), (20, 30)]),
        server_restart=restart(10.0, down_s=30.0),
        learner=learner,
        count=9,
        evaluate_every=5,
        until_s=25.0,
    )
    assert rows(history.rounds, "round", "end_s", "ended_by") == [(1, 3, "enough")]
    assert history.column("evaluations", "round").tolist() == [1], "the last round is evaluated"


def test_a_buffered_server_loses_its_buffer_and_fills_it_anew():
    """Clients take 3 and 4 s; two at a time fill a buffer of two. The server is down from 6.5 s to 7.5 s.

    The update of 0 comes at 3 s and that of 1 at 4 s: version 1. Client 0, from 3 s on at work again, comes at 6 s and
    waits in the buffer for that of 1, due at 8 s, when the server crashes.
    """
    history, *_ = serve(
        FedBuff(buffer=2, concurrency=2),
        *([1, 1], [1, 2], [1, 1]),
        selector=FirstWanted(),
        server_restart=restart(6.5, down_s=1.0),
        count=3,
    )
    assert rows(history.rounds, "round", "start_s", "end_s", "ended_by", "model_version") == [
        (1, 0, 4, "enough", 1),
        (2, 4, 6.5, "restart", 1),
        (3, 7.5, 11.5, "enough", 2),
    ]
    assert rows(history.rounds, "selected", "delivered", "late", "dropped")[1] == (2, 1, 2, 0)
    assert rows(history.participations, "client", "start_s", "end_s", "fate", "start_version") == [
        (0, 0, 3, "used", 0),
        (1, 0, 4, "used", 0),
        (0, 3, 6, "wasted-unmerged", 0),
        (1, 4, 6.5, "wasted-late", 1),
        (0, 6, 6.5, "wasted-late", 1),
        (0, 7.5, 10.5, "used", 1),
        (1, 7.5, 11.5, "used", 1),
        (0, 10.5, 11.5, "wasted-late", 1),
    ]


def test_clients_given_up_before_a_crash_are_not_given_up_again():
    """Client 1 would be given up at 8 s; the server crashes at 5 s, after which two are in flight at any time."""
    history, *_ = serve(
        FedAsync(concurrency=2, give_up_s=8.0),
        [1] * 3,
        [1, 50, 50],
        [1] * 3,
        selector=FirstWanted(),
        server_restart=restart(5.0, down_s=1.0),
        count=4,
    )
    starts, ends = (np.array(history.participations.column(name).to_pylist()) for name in ("start_s", "end_s"))
    for instant in np.unique(starts):
        assert np.count_nonzero((starts <= instant) & (instant < ends)) <= 2


def test_stale_updates_in_transfer_are_lost_with_the_server_and_counted_once():
    """Client 1 takes 8 s and the deadline is 5 s: it would arrive in the second round, in which the server crashes."""
    history, *_ = serve(
        Deadline(deadline_s=5), [1, 1], [1, 6], [1, 1], late=Stale(), server_restart=restart(7.0), count=3
    )
    assert rows(history.rounds, "start_s", "end_s", "selected", "delivered", "late", "ended_by") == [
        (0, 5, 2, 1, 1, "deadline"),
        (5, 7, 1, 0, 1, "restart"),
        (10, 15, 2, 1, 1, "deadline"),
    ]
    assert rows(history.participations, "client", "start_s", "fate", "end_s") == [
        (0, 0, "used", 3),
        (1, 0, "wasted-late", 7),
        (0, 5, "wasted-late", 7),
        (0, 10, "used", 13),
        (1, 10, "wasted-late", 15),
    ]


def test_batteries_of_clients_that_a_crash_cancels_pay_and_recharge():
    """5 J of work were half done at the crash; the clients take part again afterwards."""
    power = batteries([50.0], receive=3.0, sample=0.5, send=4.0)
    history, *_ = serve(WaitForAll(), [1], [2], [1], batteries=power, server_restart=restart(2.0), count=2)
    assert rows(history.participations, "fate", "start_s", "end_s", "energy_j") == [
        ("wasted-late", 0, 2, 5.5),
        ("used", 5, 9, 12.0),
    ]


times = st.floats(0.25, 4.0)
ups = st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(0.1, 5.0)), min_size=1, max_size=6)


def sojourns(lengths):
    """Return the intervals of a thing that works for, and then is down for, each pair of lengths, and then works."""
    now_s, found = 0.0, []
    for up_s, down_s in lengths:
        found.append((now_s, now_s + up_s))
        now_s += up_s + down_s
    return [*found, (now_s, LONG_S)]


def down_in(intervals, start_s, end_s):
    """Return the first instant from the start on, before the end, at which a thing stops working; None for none."""
    return next((end for _, end in intervals if start_s <= end < end_s), None)


@pytest.mark.slow
@given(st.lists(st.tuples(times, times, times, ups, ups), min_size=1, max_size=4), st.floats(2.0, 12.0))
def test_each_client_follows_its_own_faults(lines, deadline_s):
    """An oracle that walks through the phases of each client by itself; the audit checks the run."""
    down, work, up, crashes, outages = map(list, zip(*lines, strict=True))
    devices, links = [sojourns(one) for one in crashes], [sojourns(one) for one in outages]
    history, *_ = serve(
        Deadline(deadline_s=deadline_s),
        down,
        work,
        up,
        devices_up=available_in(*devices),
        links_up=available_in(*links),
        count=3,
    )
    for row in history.participations.to_pylist():
        i, start_s = row["client"], row["start_s"]
        lost_s = [down_in(devices[i], start_s, math.inf), down_in(links[i], start_s, start_s + down[i])]
        ready_s = start_s + down[i] + work[i]
        begins_s = next(max(ready_s, begin) for begin, end in links[i] if end > ready_s)
        done_s = begins_s + up[i]
        lost_s.append(down_in(links[i], begins_s, done_s))
        if any(abs(end - at) < 1e-9 for _, end in links[i] for at in (start_s + down[i], ready_s, begins_s, done_s)):
            continue  # what comes first of two things at one instant depends on the last digit
        first_s = min((instant for instant in lost_s if instant is not None), default=math.inf)
        over_s = next(end for (end,) in rows(history.rounds, "end_s") if end > start_s or end == row["end_s"])
        expected = min(first_s, done_s, over_s)
        assert row["end_s"] == pytest.approx(expected, abs=1e-9)
        if abs(first_s - done_s) > 1e-9 and abs(first_s - over_s) > 1e-9 and abs(done_s - over_s) > 1e-9:
            said = {first_s: "dropped", done_s: "delivered", over_s: "late"}[expected]
            assert row["outcome"] == said


def test_a_server_that_crashes_while_it_asks_loses_the_answers():
    """The question takes 3 s and 4 s; the server crashes at 3.5 s, and asks again from 6.5 s to 10.5 s."""
    history, *_ = serve(WaitForAll(), [1, 1], [1, 2], [1, 1], selector=Asking(), server_restart=restart(3.5), count=2)
    assert rows(history.rounds, "start_s", "end_s", "selected", "ended_by") == [
        (0, 3.5, 0, "restart"),
        (6.5, 14.5, 2, "enough"),
    ]
    probes = rows(history.probes, "client", "outcome", "end_s")
    assert probes == [(0, "delivered", 3), (1, "late", 3.5), (0, "delivered", 9.5), (1, "delivered", 10.5)]


def test_faults_that_are_over_when_a_question_is_answered_do_not_matter():
    """Both are asked until 5 s. The link of client 0 is down from 1.5 s to 2.5 s, the device of 1 from 3.5 s to 4.5 s.

    Client 0 works through that; client 1 is done by then, as it takes 3 s to answer and client 0 takes 5 s.
    """
    links, devices = available_in([(0, 1.5), (2.5, 99)], ALWAYS), available_in(ALWAYS, [(0, 3.5), (4.5, 99)])
    history, *_ = serve(
        Deadline(deadline_s=9), [1, 1], [3, 1], [1, 1], selector=Asking(), links_up=links, devices_up=devices
    )
    assert [row["outcome"] for row in history.probes.to_pylist()] == ["delivered", "delivered"]
    assert rows(history.participations, "client", "outcome", "start_s", "end_s") == [
        (0, "delivered", 5, 10),
        (1, "delivered", 5, 8),
    ]


# Participations take 3 and 4 s at edge server 0, and 5, 3 and 7 s at edge server 1; a model takes 0.75 s to the cloud.
EDGE_TIMES_S = ([1, 1, 1, 1, 1], [1, 2, 3, 1, 4], [1, 1, 1, 1, 2])


def edge_servers(**options):
    wire = {"kind": "link", "rate_bps": 2.0, "delay_s": 0.25}
    return Edges(**{"grouping": {"kind": "given", "edge": (0, 0, 1, 1, 1)}, "backhaul": wire, **options})


def test_a_cloud_that_crashes_takes_its_edge_servers_with_it():
    """Edge server 0 is back at 5.5 s, edge server 1 would be at 8.5 s; they crash at 6 s and start again at 8 s."""
    history, *_ = serve(
        WaitForAll(), *EDGE_TIMES_S, edges=edge_servers(), server_restart=restart(6.0, down_s=2.0), count=2
    )
    assert rows(history.rounds, "start_s", "end_s", "selected", "delivered", "late", "model_version", "ended_by") == [
        (0, 6, 5, 4, 1, 0, "restart"),
        (8, 16.5, 5, 5, 0, 1, "enough"),
    ]
    edge_rounds = rows(history.edge_rounds, "edge", "round", "start_s", "end_s", "ended_by")
    assert edge_rounds == [
        (0, 1, 0.75, 4.75, "enough"),
        (1, 1, 0.75, 6, "restart"),
        (0, 2, 8.75, 12.75, "enough"),
        (1, 2, 8.75, 15.75, "enough"),
    ]
    assert rows(history.participations, "edge", "round", "client", "end_s", "fate")[:5] == [
        (0, 1, 0, 3.75, "used"),
        (0, 1, 1, 4.75, "used"),
        (1, 1, 2, 5.75, "wasted-unmerged"),
        (1, 1, 3, 3.75, "wasted-unmerged"),
        (1, 1, 4, 6, "wasted-late"),
    ]
    visits = rows(history.edge_participations, "round", "edge", "end_s", "uplink_bits")
    assert visits == [(None, 0, 5.5, 1), (None, 1, 6, 0), (2, 0, 13.5, 1), (2, 1, 16.5, 1)]


def test_an_asynchronous_cloud_continues_from_its_last_model():
    """It aggregates edge server 0 at 5.5 s; at 6 s all is lost, and edge server 0 is back at 8 + 5.5 s."""
    learner = CountingLearner(np.full(5, 10))
    history, *_ = serve(
        WaitForAll(),
        *EDGE_TIMES_S,
        edges=edge_servers(merging="asynchronous"),
        server_restart=restart(6.0, down_s=2.0),
        learner=learner,
        count=4,
    )
    assert rows(history.rounds, "start_s", "end_s", "model_version", "ended_by") == [
        (0, 5.5, 1, "enough"),
        (5.5, 6, 1, "restart"),
        (8, 13.5, 2, "enough"),
        (13.5, 16.5, 3, "enough"),
    ]
    assert rows(history.rounds, "selected", "late")[1] == (3, 1)
    started = rows(history.participations, "client", "start_s", "start_version")
    assert (0, 8.75, 1) in started
    assert (4, 8.75, 1) in started
    visits = rows(history.edge_participations, "edge", "start_s", "end_s")
    assert [visit for visit in visits if visit[2] == 6] == [(0, 5.5, 6), (1, 0, 6)]


@pytest.mark.parametrize("merging", ["synchronous", "asynchronous"])
def test_edge_servers_that_ask_their_clients_crash_in_the_middle_of_it(merging):
    """Edge server 0 asks for 3.75 s, 0.75 + 3 s and 0.75 + 4 s; at 4 s the answer of client 0 has arrived."""
    history, *_ = serve(
        WaitForAll(),
        *EDGE_TIMES_S,
        edges=edge_servers(merging=merging),
        selectors=[Asking(), Asking()],
        server_restart=restart(4.0, down_s=2.0),
        count=2,
    )
    asked = rows(history.probes, "client", "outcome", "end_s")[:5]
    assert sorted(asked) == [
        (0, "delivered", 3.75),
        (1, "late", 4),
        (2, "late", 4),
        (3, "delivered", 3.75),
        (4, "late", 4),
    ]
    assert rows(history.rounds, "end_s", "selected", "ended_by")[0] == (4, 0, "restart")


def test_an_oracle_foresees_the_wait_for_a_link_that_is_down():
    """The link fails at 2 s for 3 s: 1 s down, 2 s of work until 3 s, a wait until 5 s and 4 s up."""
    coming_s = []

    class Oracle(Everybody):
        oracle = True

        def select(self, view, rng):
            coming_s.append((view.coming_duration_s().tolist(), view.coming_uplink_s().tolist()))
            return view.client

    up, power = available_in([(0, 2), (5, 99)]), batteries([50.0], send=1.0)
    serve(Deadline(deadline_s=20), [1], [2], [4], links_up=up, batteries=power, selector=Oracle())
    assert coming_s == [([9.0], [6.0])]
