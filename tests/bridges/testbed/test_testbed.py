"""A testbed plays rounds whose seconds are counted by hand, and ends as any run."""

import math
import threading

import numpy as np
import pytest

from fedsim import Scenario, Testbed, simulate
from fedsim.errors import StepError
from tests.support.hand_made import by_hand
from tests.support.stepped import table_bytes


def rounds(count=3, **more):
    return {"count": count, **more}


def test_a_round_is_counted_by_hand():
    """Client k delivers after 1 + 2 + (k + 1) s: clients 3 and 1 after 7 and 5 s."""
    before, testbed = set(threading.enumerate()), Testbed(by_hand())
    result = testbed.round([3, 1])
    assert set(threading.enumerate()) <= before, "there are no threads"
    assert result.client.tolist() == [3, 1]
    assert result.end_s.tolist() == [7.0, 5.0]
    assert result.client[result.arrivals].tolist() == [1, 3]
    assert (result.downlink_s.tolist(), result.compute_s.tolist(), result.uplink_s.tolist()) == ([1, 1], [2, 2], [4, 2])
    assert result.outcome.tolist() == ["delivered", "delivered"]
    assert result.used.all()
    assert result.weight.tolist() == [0.5, 0.5]
    assert (result.number, result.version, result.ended_by, result.candidates) == (1, 1, "enough", 4)
    assert (result.round_start_s, result.round_end_s, testbed.now_s) == (0.0, 7.0, 7.0)
    assert testbed.round([0]).end_s.tolist() == [11.0]


@pytest.mark.parametrize(
    ("stated", "ends_s", "weights"),
    [
        ({"samples": 10}, [4.0, 6.0], [0.5, 0.5]),  # 1 s of work
        ({"samples": [0, 40]}, [3.0, 9.0], [0.0, 1.0]),
        ({"samples": [30, 10]}, [6.0, 6.0], [0.75, 0.25]),
        ({"flops": 5e7}, [8.0, 10.0], [0.5, 0.5]),  # 50 samples, 5 s
        ({"compute_s": [0.5, 0.0]}, [3.5, 5.0], [0.5, 0.5]),
        ({"compute_s": 1.0, "samples": 1000}, [4.0, 6.0], [0.5, 0.5]),
    ],
)
def test_work_is_stated(stated, ends_s, weights):
    """Clients 1 and 3 receive and send for 3 and 5 s beside their work; what is stated holds for one round.

    The two forward passes of FedSUV, over 20 samples in 4 / 3 s, come on top of all but stated seconds.
    """
    testbed = Testbed(by_hand())
    result, after = testbed.round([1, 3], **stated), testbed.round([1, 3])
    assert (result.end_s.tolist(), result.weight.tolist()) == (pytest.approx(ends_s), weights)
    assert (after.duration_s.tolist(), after.weight.tolist()) == (pytest.approx([5.0, 7.0]), [0.5, 0.5])
    measured = Testbed(by_hand(selector={"kind": "fedsuv", "cohort": 2})).round([1, 3], **stated).duration_s
    assert measured == pytest.approx(result.duration_s + (0 if "compute_s" in stated else 4 / 3))


def test_sizes_are_stated():
    """Links of 1 Mbit/s, in FedScale's kbit of 1024 bits: seconds are megabits."""
    network = {"kind": "fedscale", "median_kbps": 1e6 / 1024, "sigma": 0.0}
    testbed = Testbed(by_hand(network=network))
    asking = Testbed(by_hand(network=network, selector={"kind": "loss-proportional", "cohort": 2}))
    assert asking.round([0], up_bits=1e6).uplink_bits.tolist() == [1e6 + 32], "the loss comes with it"
    result = testbed.round([0, 1, 2], down_bits=2e6, up_bits=[1e6, 0.0, 3e6], compute_s=0.0)
    assert result.downlink_bits.tolist() == [2e6] * 3
    assert result.uplink_bits.tolist() == [1e6, 0.0, 3e6]
    assert result.end_s.tolist() == pytest.approx([3.0, 2.0, 5.0])
    assert testbed.round([3], compute_s=0.0).duration_s.tolist() == pytest.approx([2.0])  # 1 Mbit each by the scenario


def test_a_limit_ends_a_round_that_waits_for_all():
    testbed = Testbed(by_hand())
    result = testbed.round([0, 3], limit_s=5.0)
    assert (result.outcome.tolist(), testbed.now_s) == (["delivered", "late"], 5.0)
    assert testbed.round([3]).delivered.all()  # the limit held for one round


def test_a_model_is_evaluated_after_a_look_at_the_next_candidates():
    """Client 0 takes 4 s and client 1 5 s; an evaluation has the second at which it is told, and is told once."""
    testbed = Testbed(by_hand())
    testbed.view()
    testbed.report(accuracy=0.1)
    testbed.round([0])
    testbed.view()
    testbed.report(accuracy=0.5, loss=1.0)
    with pytest.raises(StepError, match="report: no round was just played"):
        testbed.report(accuracy=0.6)
    testbed.round([1])
    testbed.report(accuracy=0.7)
    testbed.report(accuracy=0.8)
    history = testbed.finish()
    found = [history.column("evaluations", name).tolist() for name in ("round", "time_s", "model_version", "accuracy")]
    assert found == [[0, 1, 2], [0.0, 4.0, 9.0], [0, 1, 2], [0.1, 0.5, 0.8]]
    assert [part.tolist() for part in history.curve("time", "accuracy")] == [found[1], found[3]]
    assert history.evaluations.column("loss").to_pylist() == [None, 1.0, None]
    assert history.time_to_accuracy(0.6) == 9.0
    assert not any("no number any more" in note for note in history.notes)


def test_late_updates_of_earlier_rounds_are_told():
    """Client 3 of round 1 arrives after 7 s, in round 2, which has begun at 5.5 s and ends with client 2 at 11.5 s."""
    policy = {"kind": "deadline", "deadline_s": 5.5}
    testbed = Testbed(by_hand(rounds=rounds(policy=policy, late="stale")))
    first = testbed.round([0, 3])
    assert np.isnan(first.end_s).tolist() == [False, True]
    assert testbed.view().client.tolist() == [0, 1, 2]  # client 3 is busy
    second = testbed.round([1])
    assert (second.late.client.tolist(), second.late.end_s.tolist()) == ([3], [7.0])
    assert (second.late.round.tolist(), second.late.used.tolist(), second.late.staleness.tolist()) == ([1], [True], [1])


def test_the_view_has_the_columns_of_selectors():
    testbed = Testbed(by_hand())
    before = testbed.view()
    assert before.client.tolist() == [0, 1, 2, 3]
    assert before.features[:, :3].tolist() == [[1.0, 2.0, up_s] for up_s in (1.0, 2.0, 3.0, 4.0)]
    testbed.round([1])
    testbed.report(losses=[0.25])
    after = testbed.view()
    assert after.last_duration_s[1] == 5.0
    assert after.participations.tolist() == [0, 1, 0, 0]
    assert before.participations.tolist() == [0, 0, 0, 0]  # a view stays as it is


def test_reported_losses_feed_the_selector():
    """The selector asks for losses, and the view shows them; those of clients that did not deliver stay unknown."""
    selector = {"kind": "loss-proportional", "cohort": 2}
    scenario = by_hand(selector=selector, rounds=rounds(policy={"kind": "deadline", "deadline_s": 5.5}))
    testbed = Testbed(scenario)
    testbed.round([0, 1, 2])
    testbed.report(losses={0: 0.5, 1: 1.5, 2: 9.0})
    assert testbed.view().last_loss[:2].tolist() == [0.5, 1.5]
    assert np.isnan(testbed.view().last_loss[2:]).all()


def test_reported_weights_are_those_of_the_table():
    """An update of no weight is not used, and a loss has no effect on that."""
    testbed = Testbed(by_hand())
    testbed.round([0, 1])
    testbed.report(losses=[0.5, 0.5], weights={0: 0.0, 1: 0.75})
    testbed.round([0, 1])
    testbed.view()
    with pytest.raises(StepError, match="report: weights: no round was just played"):
        testbed.report(weights=[1.0, 1.0])
    rows = testbed.finish().participations.select(["client", "weight", "fate", "served_round"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, 0.0, "wasted-unmerged", None),
        (1, 0.75, "used", 1),
        (0, 0.5, "used", 2),
        (1, 0.5, "used", 2),
    ]


def test_a_selector_that_is_never_asked_is_told_nothing():
    """Oort knows no clients before its first view; once asked, it learns from cohorts that are not its own."""
    testbed = Testbed(by_hand(selector={"kind": "oort", "cohort": 2}))
    testbed.round([0, 1])
    testbed.report(measured={"loss_rms": [1.0, 2.0]})
    assert testbed.select().client.size == 2
    testbed.round([2])
    testbed.report(measured={"loss_rms": [3.0]})
    testbed.round(testbed.select())


@pytest.mark.parametrize("changes", [{"target_accuracy": 0.5}, {"count": 1}])
def test_a_target_or_the_last_round_ends_the_run(changes):
    testbed = Testbed(by_hand(rounds=rounds(**changes)))
    testbed.round([0])
    testbed.report(accuracy=0.7)
    assert testbed.over
    for name, call in (("round", lambda: testbed.round([0])), ("select", testbed.select)):
        with pytest.raises(StepError, match=rf"{name}: the run is over \(rounds\.count = {changes.get('count', 3)}"):
            call()
    assert testbed.finish().rounds.num_rows == 1


def test_time_passes_up_to_an_arrival():
    """Clients 2 and 3 go on after a deadline of 5 s, and arrive after 6 s and 7 s."""
    policy = {"kind": "deadline", "deadline_s": 5.0}
    testbed = Testbed(by_hand(rounds=rounds(policy=policy, late="drop")))
    testbed.round([0, 2, 3])
    found = [([one.client for one in testbed.advance(8.0, to_arrival=True)], testbed.now_s) for _ in range(3)]
    assert found == [([2], 6.0), ([3], 7.0), ([], 8.0)]
    assert testbed.round([0]).start_s.tolist() == [8.0]


def test_time_passes_to_its_end_where_all_clients_are_busy():
    """Client 0 is back after 4 s."""
    testbed = Testbed(by_hand(rounds=rounds(policy={"kind": "deadline", "deadline_s": 2.0}, late="drop")))
    testbed.round([0, 1, 2, 3])
    assert testbed.advance(3.0) == ()
    assert testbed.now_s == 3.0
    assert [one.client for one in testbed.advance(4.5)] == [0]


def test_time_that_passes_ends_the_run_at_its_last_second():
    """Client 0 delivers at 4 s; no cohort is sent for the round that begins then."""
    testbed = Testbed(by_hand(rounds=rounds(policy="wait-for-all", until_s=10.0)))
    testbed.round([0])
    assert testbed.advance(9.0) == ()
    assert not testbed.over
    assert testbed.advance(12.0) == ()
    assert testbed.over
    with pytest.raises(
        StepError, match=r"after round 1 of 3, at 10 s: rounds\.until_s has come, and no client was sent"
    ):
        testbed.round([1])
    assert testbed.finish().rounds.num_rows == 1


@pytest.mark.parametrize("policy", [{"kind": "deadline", "deadline_s": 9.0}, {"kind": "fedbuff", "give_up_s": 9.0}])
def test_a_run_ends_as_time_passes_that_no_client_is_left(policy, tmp_path):
    """All clients are there for 5 s."""
    (tmp_path / "spans.csv").write_text("client,start_s,end_s\n" + "".join(f"{client},0,5\n" for client in range(4)))
    availability = {"kind": "traces", "path": str(tmp_path / "spans.csv"), "after": "none"}
    policy = {**policy, **({"concurrency": 2} if policy["kind"] == "fedbuff" else {})}
    testbed = Testbed(by_hand(devices={"compute": "zero", "availability": availability}, rounds=rounds(policy=policy)))
    testbed.advance(4.0)
    assert not testbed.over
    testbed.advance(6.0)
    while not testbed.over:
        assert testbed.next_arrival(1.0).closed.number == 1
    with pytest.raises(StepError, match="of 3, at 6 s: no client will ever be available again"):
        testbed.view()
    testbed.finish()


@pytest.mark.parametrize("count", [1, 2])
def test_finished_early_it_is_the_shorter_run(count):
    """A run of three rounds that is finished after one or two has the tables of a run of that number of rounds."""
    testbed = Testbed(by_hand())
    for _ in range(count):
        testbed.round(testbed.select())
    history = testbed.finish()
    assert table_bytes(history) == table_bytes(simulate(Scenario(**by_hand(rounds=rounds(count)))))
    assert f"the run was finished from outside after round {count} of 3" in history.notes
    assert testbed.finish() is history


def test_a_round_that_was_not_played_leaves_no_row():
    """Asked twice, a selector gives the same answer, so that its random numbers are those of `simulate`."""
    testbed = Testbed(by_hand())
    testbed.round([0])
    assert testbed.select() is testbed.select()
    assert testbed.finish().rounds.num_rows == 1
    assert Testbed(by_hand()).finish().rounds.num_rows == 0


@pytest.mark.parametrize(
    ("cohort", "stated", "message"),
    [
        ([4], {}, r"cohort: 4 is no client of this crowd; allowed: ids in 0\.\.3"),
        ([-1], {}, "cohort: -1 is no client of this crowd"),
        ([1, 1], {}, "cohort: client 1 stands more than once"),
        ([], {}, "cohort: it is empty, and 4 clients are candidates"),
        ([0.5], {}, "cohort: .* must be ids of clients"),
        ([[0]], {}, "cohort: .* must be ids of clients"),
        ([0, 1], {"up_bits": -1.0}, "up_bits: -1.0 is not allowed; it must be a finite number of at least 0"),
        ([0, 1], {"down_bits": [1.0, math.nan]}, "down_bits: nan is not allowed"),
        ([0, 1], {"samples": [1, 2, 3]}, r"samples: values of shape \(3,\) are not allowed; .* each of the 2 clients"),
        ([0, 1], {"compute_s": "fast"}, "compute_s: 'fast' is not allowed; it must be numbers"),
        ([0, 1], {"flops": 1.0, "samples": 1.0}, "samples and flops are both given"),
        ([0, 1], {"limit_s": -1.0}, "limit_s: -1.0 is not allowed; it must be at least 0 s"),
    ],
)
def test_wrong_cohorts_and_numbers_are_refused_before_time_passes(cohort, stated, message):
    testbed = Testbed(by_hand())
    with pytest.raises(StepError, match=f"round: {message}"):
        testbed.round(cohort, **stated)
    assert testbed.now_s == 0.0
    assert testbed.round([0, 1]).end_s.tolist() == [4.0, 5.0]


ORDER = {"grouping": {"kind": "order", "count": 2}, "rounds": 1, "backhaul": "none"}
STALE = {"policy": {"kind": "deadline", "deadline_s": 5.5}, "late": "stale"}
NO_FLOPS = {"kind": "none", "model_bits": 1e6, "samples_per_client": 20}


@pytest.mark.parametrize(
    ("tables", "cohort", "stated", "message"),
    [
        ({"rounds": rounds(edges=ORDER)}, [0], {}, r"rounds\.edges: a testbed steps the rounds of one server"),
        ({"rounds": rounds(**STALE)}, [0, 3], {}, "client 3 is no candidate now, .* allowed: the 3 candidates 0, 1, 2"),
        ({"learning": NO_FLOPS}, [0], {"flops": 1.0}, r"flops: 1\.0 is not allowed, .*: learning.flops_per_sample"),
    ],
)
def test_what_a_scenario_does_not_allow_is_refused(tables, cohort, stated, message):
    """Client 3 is busy after a first round of 5.5 s."""

    def play():
        testbed = Testbed(by_hand(**tables))
        for _ in range(2):
            testbed.round(cohort, **stated)

    with pytest.raises(StepError, match=message):
        play()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda testbed: testbed.report(losses=[1.0]), "report: no round was just played"),
        (lambda testbed: testbed.send([0]), "send: the scenario has no asynchronous policy; allowed: round"),
        (lambda testbed: testbed.next_arrival(), "next_arrival: the scenario has no asynchronous policy"),
        (lambda testbed: testbed.view(within_s=-1.0), "view: within_s: -1.0 is not allowed; it must be at least 0 s"),
        (lambda testbed: testbed.advance(-1.0), "advance: until_s: -1.0 is not allowed; it must be at least 0 s"),
        (lambda testbed: testbed.advance(math.inf), "advance: until_s: inf is not allowed"),
    ],
)
def test_calls_out_of_order_are_refused(call, message):
    with pytest.raises(StepError, match=message):
        call(Testbed(by_hand()))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"losses": [1.0, 2.0]}, "report: loss: .* one for each of the 1 clients of the round"),
        ({"losses": 1.0}, "report: loss: .* one for each of the 1 clients"),
        ({"weights": [1.0, 2.0]}, "report: weights: .* one for each of the 1 clients of the round"),
        ({"weights": [-1.0]}, r"report: weights: -1\.0 of client 0 is not allowed"),
        ({"accuracy": 1.5}, r"report: accuracy: 1\.5 is not allowed; it must be a share in \[0, 1\]"),
        ({"loss": "low"}, "report: loss: 'low' is not allowed; it must be a number"),
        ({"measured": {"lose": [1.0]}}, "report: measured: 'lose' is not allowed; it must be some of loss, "),
    ],
)
def test_wrong_reports_are_refused(told, message):
    testbed = Testbed(by_hand())
    testbed.round([0])
    with pytest.raises(StepError, match=message):
        testbed.report(**told)
    testbed.report(losses=[1.0], accuracy=0.5)
    testbed.view()
    with pytest.raises(StepError, match="report: no round was just played"):
        testbed.report(accuracy=0.5)


def test_a_file_and_tables_and_a_scenario_are_the_same(tmp_path):
    scenario = Scenario(**by_hand())
    (tmp_path / "one.toml").write_text(scenario.to_toml())
    ends_s = [Testbed(given).round([2]).end_s[0] for given in (scenario, by_hand(), tmp_path / "one.toml")]
    assert ends_s == [6.0, 6.0, 6.0]
