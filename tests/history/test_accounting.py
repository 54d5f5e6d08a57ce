"""Where time and bits went, what made rounds long, what a deadline would have saved: worked by hand, and as laws."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import simulate
from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.network.medium.disciplines import FirstCome
from fedsim.results import report, sentences
from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from fedsim.rounds.policies.count_based import KFastest, Quorum
from fedsim.rounds.policies.late import Drop, Stale
from fedsim.rounds.policies.safa import Safa
from tests.support.short_runs import timed
from tests.support.worlds import Asking, FirstWanted, Pipe, batteries, serve

SECONDS = ("downlink_s", "compute_s", "queue_s", "uplink_s")


def fates(history, *names):
    return {row["fate"]: tuple(row[name] for name in names) for row in history.by_fate().to_pylist()}


def causes(history, *names):
    return [tuple(row[name] for name in names) for row in history.critical_path().to_pylist()]


def test_every_fate_has_its_seconds_and_bits():
    """Deadline 5 s: client 0 has delivered at 3 s, 1 is cut off in its upload, 2 was lost at 2 s in its work."""
    history, *_ = serve(Deadline(deadline_s=5), [1] * 3, [1, 2, 3], [1, 4, 1], leaves_s=[np.inf, np.inf, 2.0])
    names = ("participations", *SECONDS, "total_s", "downlink_bits", "uplink_bits")
    assert fates(history, *names) == {
        "used": (1, 1, 1, 0, 1, 3, 1, 1),
        "stale-used": (0, 0, 0, 0, 0, 0, 0, 0),
        "wasted-late": (1, 1, 2, 0, 2, 5, 1, 0.5),
        "wasted-dropped": (1, 1, 1, 0, 0, 2, 1, 0),
        "wasted-unmerged": (0, 0, 0, 0, 0, 0, 0, 0),
    }
    shares = fates(history, "time_share", "bits_share")
    assert shares["wasted-late"] == pytest.approx((0.5, 1.5 / 4.5))
    assert sum(time for time, _ in shares.values()) == pytest.approx(1.0)


def test_what_came_too_late_or_with_too_few_others_is_counted_as_that():
    """Client 1 arrives at 6 s after a deadline of 5 s: thrown away, or used stale, or too few beside client 0."""
    world = [1, 1], [1, 4], [1, 1]
    for late, fate in ((Drop(), "wasted-late"), (Stale(), "stale-used")):
        history, *_ = serve(Deadline(deadline_s=5), *world, late=late, count=2)
        assert fates(history, "participations", "total_s")[fate] == (1, 6)
    history, *_ = serve(Deadline(deadline_s=5), *world, minimum_updates=2)
    assert fates(history, "total_s") == {
        **dict.fromkeys(("used", "stale-used", "wasted-dropped"), (0,)),
        "wasted-late": (5,),
        "wasted-unmerged": (3,),
    }


def test_joules_are_accounted_for_too():
    power = batteries([50.0, 50.0], receive=3.0, sample=0.5, send=4.0)
    history, *_ = serve(Deadline(deadline_s=4), [1, 1], [1, 1], [1, 4], batteries=power)
    assert fates(history, "energy_j")["used"] == (12.0,)
    assert fates(history, "energy_j")["wasted-late"] == (10.0,)


def test_questions_are_neither_used_nor_wasted():
    history, *_ = serve(Deadline(deadline_s=9), [1, 1], [2, 2], [1, 30], selector=Asking([1], up_bits=0.5))
    assert fates(history, "participations", "total_s", "downlink_bits", "uplink_bits")["probe"] == (1, 33, 1, 0.5)
    assert fates(history, "time_share")["probe"] == pytest.approx((33 / (33 + 4 + 9),))


# Clients 0 and 1 take 3 s and 5 s, and as long to answer a question: the cohort is sent 5 s after its round begins.
ASKED_S = [1, 1], [1, 3], [1, 1]


def test_a_question_may_be_what_makes_a_round_long():
    history, *_ = serve(WaitForAll(), *ASKED_S, selector=Asking(), count=2)
    names = ("round", "duration_s", "cause", "client", "phase", "phase_s")
    assert causes(history, *names) == [(1, 10, "client", 1, "probe", 5), (2, 10, "client", 1, "probe", 5)]
    asked_one, *_ = serve(WaitForAll(), [1, 1], [6, 1], [1, 1], selector=Asking([1]))
    assert causes(asked_one, *names) == [(1, 11, "client", 0, "compute", 6)]


@pytest.mark.parametrize("deadline_s", [1.0, 3.0, 4.0, 5.0, 6.0])
def test_a_deadline_counts_from_the_end_of_a_question_in_prediction_as_in_a_run(deadline_s):
    asked, *_ = serve(WaitForAll(), *ASKED_S, selector=Asking(), count=2)
    hurried, *_ = serve(Deadline(deadline_s=deadline_s), *ASKED_S, selector=Asking(), count=2)
    whatif = asked.deadline_whatif([deadline_s])
    assert asked.column("rounds", "duration_s") - whatif.saved_s[:, 0] == pytest.approx(
        hurried.column("rounds", "duration_s")
    )
    assert whatif.lost[:, 0].tolist() == hurried.column("rounds", "late").tolist()


def test_a_deadline_counts_from_when_somebody_was_free_to_be_sent():
    """The only client takes 3 s and is late after 2 s; the second round lasts from 2 s to 5 s and sends it at 3 s."""
    history, *_ = serve(Deadline(deadline_s=2), [1], [1], [1], late=Stale(), count=2)
    assert history.column("rounds", "end_s").tolist() == [2, 5]
    assert history.deadline_whatif([1.0, 1.5]).saved_s.tolist() == [[1, 0.5], [1, 0.5]]


def test_nothing_has_happened():
    history = Recorder("empty").history()
    assert sum(count for (count,) in fates(history, "participations").values()) == 0
    assert history.critical_path().num_rows == 0
    nothing = dict.fromkeys(("saved_s", "saved_share", "late", "lost", "lost_share", "shortened"), 0)
    assert history.deadline_whatif([1.0]).totals().to_pylist() == [{"deadline_s": 1.0, **nothing}]


CAUSE = ("duration_s", "cause", "client", "phase", "phase_s", "missing")
CAUSES = {
    "the slowest": (WaitForAll(), ([1, 1], [3, 1], [0.5, 4]), {"count": 2}, *[(6, "client", 1, "uplink", 4, 0)] * 2),
    # Three uploads of 1 s are due at 0.5 s, 0.6 s and 0.7 s, one after another: the last waits for 1.8 s.
    "a queue": (
        *(WaitForAll(), ([0] * 3, [0.6, 0.7, 0.5], [1] * 3), {"links": Pipe([0] * 3, [1] * 3, up=FirstCome)}),
        (3.5, "client", 1, "queue", 1.8, 0),
    ),
    # Client 1 takes 6 s, so that a deadline of 5 s ends the round, one of 6 s comes with it, and one of 7 s after.
    "a deadline": (Deadline(deadline_s=5), ([1, 1], [1, 4], [1, 1]), {}, (5, "deadline", None, None, None, 1)),
    "with the last one": (Deadline(deadline_s=6), ([1, 1], [1, 4], [1, 1]), {}, (6, "client", 1, "compute", 4, 0)),
    "before it": (Deadline(deadline_s=7), ([1, 1], [1, 4], [1, 1]), {}, (6, "client", 1, "compute", 4, 0)),
    # Client 0 arrives at 5 s; the deadline then ends the round, because client 1 is missing.
    "as one arrives": (Deadline(deadline_s=5), ([1, 1], [3, 9], [1, 1]), {}, (5, "deadline", None, None, None, 1)),
    "the second of three": (
        *(KFastest(k=2, over_selection=1.5), ([1] * 3, [7, 1, 3], [1] * 3), {}),
        (5, "client", 2, "compute", 3, 1),
    ),
    "a least wait": (
        *(Quorum(share=0.5, min_wait_s=4, max_wait_s=9), ([1] * 2, [1, 7], [1] * 2), {}),
        (4, "wait", None, None, None, 1),
    ),
    "a crash": (
        *(WaitForAll(), ([1], [3], [1]), {"server_restart": ServerRestart(at_s=(2.0,), down_s=1.0), "count": 2}),
        (2, "restart", None, None, None, 1),
        (5, "client", 0, "compute", 3, 0),
    ),
    # Clients take 3 and 8 s; the buffer of two is full at 6 s with the second of client 0, at 9 s with the third.
    "the last of a buffer": (
        *(FedBuff(buffer=2, concurrency=2), ([1, 1], [1, 6], [1, 1]), {"selector": FirstWanted(), "count": 2}),
        (6, "client", 0, "downlink", 1, 0),
        (3, "client", 0, "downlink", 1, 0),
    ),
    # Two arrive at 3 s and are merged one after another, and so are the two after them at 6 s.
    "one after another": (
        *(FedAsync(concurrency=2), ([1, 1], [1, 1], [1, 1]), {"count": 4}),
        *[(seconds, "client", client, "downlink", 1, 0) for seconds, client in ((3, 0), (0, 1), (3, 0))],
        (0, "client", 1, "downlink", 1, 0),
    ),
    # The only client has a charge for one participation of two that a buffer needs, or for none.
    "nobody is left": (
        *(FedBuff(buffer=2, concurrency=1, give_up_s=9.0), ([1], [1], [1])),
        {"batteries": batteries([3.5], work_w=3.0, least=1.0)},
        (3, "client", 0, "downlink", 1, 0),
    ),
    "it was lost": (
        *(FedBuff(buffer=2, concurrency=1, give_up_s=9.0), ([1], [1], [1])),
        {"batteries": batteries([1], work_w=9.0)},
        (9, "wait", None, None, None, 1),
    ),
    # Everybody is to be picked: client 1 is at work from 0 s to 28 s; client 0 arrives after 3 s of each round.
    "an earlier client": (
        *(Safa(share=1.0, max_wait_s=10.0), ([1, 8], [1, 10], [1, 10]), {"count": 3}),
        (10, "deadline", None, None, None, 1),
        (10, "deadline", None, None, None, 0),
        (8, "client", 1, "compute", 10, 0),
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_causes_worked_by_hand(case):
    policy, times_s, options, *expected = CAUSES[case]
    history, *_ = serve(policy, *times_s, **options)
    assert causes(history, *CAUSE) == [pytest.approx(row) for row in expected]


def test_clients_of_rounds_that_were_not_over_are_no_trouble():
    """Edge server 1 is back at 3 s and 6 s, and the run is over; edge server 0 is in the middle of its first round."""
    edges = Edges(grouping={"kind": "given", "edge": (1, 0)}, merging="asynchronous", backhaul="none")
    history, *_ = serve(WaitForAll(), [1, 9], [1, 9], [1, 9], edges=edges, count=2)
    assert history.column("participations", "client").tolist() == [0, 0, 1]
    assert causes(history, "edge", "round", "cause", "client") == [(1, 1, "client", 0), (1, 2, "client", 0)]
    assert history.deadline_whatif([2.0]).lost.tolist() == [[1], [1]]


def test_questions_of_rounds_that_were_not_over_are_accounted_for():
    """The same, but clients are asked first, as long as they take; edge server 0 still waits for an answer at 6 s."""
    edges = Edges(grouping={"kind": "given", "edge": (1, 0)}, merging="asynchronous", backhaul="none")
    asking = [Asking(), Asking()]
    history, *_ = serve(WaitForAll(), [1, 9], [1, 9], [1.5, 9], edges=edges, selectors=asking)
    assert causes(history, "edge", "duration_s", "client", "phase", "phase_s") == [(1, 7, 0, "probe", 3.5)]
    used_s = history.accounts.to_pydict()
    assert used_s["cut_off_s"] == [0, 7]
    assert used_s["idle_s"] == [0, 0]


def test_a_question_is_part_of_its_own_round_alone():
    history, *_ = serve(WaitForAll(), [1], [3], [1], selector=Asking(rounds=(2,)), count=3)
    assert causes(history, "duration_s", "phase", "phase_s") == [(5, "compute", 3), (10, "probe", 5), (5, "compute", 3)]


def test_rounds_of_edge_servers_and_of_their_cloud_have_causes_of_their_own():
    """Edge server 0 is back after 0.75 + 4 + 0.75 s, edge server 1 after 0.75 + 7 + 0.75 s, round after round."""
    wire = {"kind": "link", "rate_bps": 2.0, "delay_s": 0.25}
    edges = Edges(grouping={"kind": "given", "edge": (0, 0, 1)}, backhaul=wire)
    history, *_ = serve(
        WaitForAll(),
        *([1, 1, 2], [1, 2, 4], [1, 1, 1]),
        edges=edges,
        server_restart=ServerRestart(at_s=(10.0,), down_s=1.0),
        count=2,
    )
    assert causes(history, "edge", "round", "duration_s", "cause", "client", "phase", "phase_s") == [
        (0, 1, 4, "client", 1, "compute", 2),
        (0, 2, 0.75, "restart", None, None, None),
        (1, 1, 7, "client", 2, "compute", 4),
        (1, 2, 0.75, "restart", None, None, None),
    ]
    names = ("round", "duration_s", "cause", "edge", "phase", "phase_s")
    assert [tuple(row[name] for name in names) for row in history.cloud_path().to_pylist()] == [
        (1, 8.5, "edge", 1, "edge rounds", 7),
        (2, 1.5, "restart", None, None, None),
    ]
    pages = {page.title: page.lines for page in report(history)}
    assert pages["causes of the lengths of the cloud's rounds"] == [
        ("edge: edge rounds", "1", "8.50", "85.0%", "7.0"),
        ("restart", "1", "1.50", "15.0%", "-"),
    ]
    whatif = history.deadline_whatif([3.0])
    assert (whatif.edge.tolist(), whatif.round.tolist()) == ([0, 0, 1, 1], [1, 2, 1, 2])
    assert whatif.saved_s.ravel().tolist() == [1, 0, 4, 0]
    assert whatif.lost.ravel().tolist() == [1, 0, 1, 0]
    flat, *_ = serve(WaitForAll(), [1], [1], [1])
    assert flat.cloud_path() is None


def test_of_edge_servers_that_are_back_together_the_first_is_named():
    edges = Edges(grouping={"kind": "given", "edge": (0, 1, 2)}, backhaul="none")
    history, *_ = serve(WaitForAll(), [1, 1, 1], [1, 3, 3], [1, 1, 1], edges=edges)
    path = history.cloud_path().to_pylist()
    assert [(row["edge"], row["phase"], row["phase_s"]) for row in path] == [(1, "edge rounds", 5)]


def test_what_a_deadline_would_have_saved_and_lost():
    """Updates come at 3 s, 4 s and 7 s, round after round: a deadline of 4 s lets two of three in."""
    history, *_ = serve(WaitForAll(), [1] * 3, [1, 2, 5], [1] * 3, count=2)
    whatif = history.deadline_whatif([4.0, 2.0, 7.0, 9.0, 3.5])
    assert whatif.saved_s.tolist() == [[3, 5, 0, 0, 3.5]] * 2
    assert whatif.lost.tolist() == [[1, 3, 0, 0, 2]] * 2
    assert whatif.lost_share[0] == pytest.approx([1 / 3, 1, 0, 0, 2 / 3])
    assert whatif.used.tolist() == [3, 3]
    total = {"deadline_s": 4.0, "saved_s": 6.0, "saved_share": 6 / 14, "late": 2, "lost": 2, "lost_share": 1 / 3}
    assert whatif.totals().to_pylist()[0] == pytest.approx({**total, "shortened": 2})


def test_a_deadline_loses_no_update_that_came_in_the_round_before():
    """Client 1 arrives at 6 s, 1 s into the second round, and is used at its end: none that is late is lost."""
    history, *_ = serve(Deadline(deadline_s=5), [1] * 2, [1, 4], [1] * 2, late=Stale(), count=2)
    whatif = history.deadline_whatif([0.5, 2.0, 4.0])
    assert whatif.used.tolist() == [1, 2]
    assert whatif.late.tolist() == [[1, 1, 0], [2, 1, 0]]
    assert not whatif.lost.any()
    assert "saved 4 s (50.0%) and made 2 used updates late, for later rounds to use" in sentences(history, [2.0])[-1]


def test_rounds_without_updates_lose_none():
    history, *_ = serve(Deadline(deadline_s=5), [9], [9], [9], count=2)
    whatif = history.deadline_whatif([2.0])
    assert whatif.saved_s.tolist() == [[3], [3]]
    assert np.isnan(whatif.lost_share).all()


@pytest.mark.parametrize("deadlines_s", [[0.0], [-1.0], [np.nan], [1.0, np.inf]])
def test_deadlines_must_be_seconds_above_zero(deadlines_s):
    history, *_ = serve(WaitForAll(), [1], [1], [1])
    with pytest.raises(RunError, match="deadlines_s"):
        history.deadline_whatif(deadlines_s)


tenths = st.integers(1, 60).map(lambda tenth: tenth / 10)


@given(st.lists(st.tuples(tenths, tenths, tenths), min_size=1, max_size=5), tenths, st.integers(1, 3))
def test_where_rounds_are_alike_the_prediction_is_what_a_run_with_that_deadline_does(lines, deadline_s, count):
    """Times of their own and everybody in every round: later rounds are not changed by a deadline in earlier ones."""
    world = [list(one) for one in zip(*lines, strict=True)]
    waited, *_ = serve(WaitForAll(), *world, count=count)
    hurried, *_ = serve(Deadline(deadline_s=deadline_s), *world, count=count)
    whatif = waited.deadline_whatif([deadline_s])
    assert waited.column("rounds", "end_s")[-1] - whatif.saved_s.sum() == pytest.approx(
        hurried.column("rounds", "end_s")[-1]
    )
    assert whatif.lost.sum() == hurried.column("rounds", "late").sum()


def lively(**rounds):
    return timed(
        clients=40,
        bits=1e6,
        samples=100,
        cohort=10,
        network={"kind": "cell", "uplink": {"sharing": "first-come", "bandwidth_hz": 5e6}},
        devices={
            "compute": {"kind": "rate", "samples_per_s": 100.0},
            "dropout": {"kind": "hazard", "rate_per_s": 0.05},
        },
        rounds={"count": 15, **rounds},
    )


RULES = (
    {"policy": {"kind": "deadline", "deadline_s": 2.0}, "late": "stale"},
    {"policy": {"kind": "k-fastest", "k": 6, "max_wait_s": 4.0}, "minimum_updates": 4},
    {"policy": {"kind": "fedbuff", "buffer": 5, "concurrency": 10, "give_up_s": 4.0}},
)


@pytest.mark.parametrize("rounds", RULES, ids=lambda rounds: rounds["policy"]["kind"])
def test_sums_and_rounds_agree_with_the_tables_they_come_from(rounds):
    history = simulate(lively(**rounds))
    participations, table = history.participations.to_pandas(), history.rounds.to_pandas()
    summed = history.by_fate().to_pandas().set_index("fate")
    for fate, rows in participations.groupby(participations["fate"].astype(str)):
        for name in (*SECONDS, "downlink_bits", "uplink_bits"):
            assert summed.loc[fate, name] == pytest.approx(rows[name].sum())
        assert summed.loc[fate, "total_s"] == pytest.approx((rows["end_s"] - rows["start_s"]).sum())
    assert summed["participations"].sum() == len(participations)
    critical = history.critical_path().to_pandas()
    assert critical["round"].tolist() == table["round"].tolist()
    arrivals = participations[participations["cut_in"].isna()].groupby("end_s")["client"].apply(set)
    for row, end_s in zip(critical.itertuples(), table["end_s"], strict=True):
        if row.cause == "client":
            assert row.client in arrivals.loc[end_s]
        else:
            assert row.cause == "deadline"
            assert row.duration_s == pytest.approx(rounds["policy"].get("deadline_s", 4.0))
    whatif = history.deadline_whatif([0.5, 1.0, 1.5, 3.0])
    served = participations[participations["served_round"].notna()]
    begins_s = table.set_index("round")["start_s"].loc[served["served_round"]].to_numpy()
    for column, deadline_s in enumerate(whatif.deadlines_s):
        assert whatif.saved_s[:, column].sum() == pytest.approx((table["duration_s"] - deadline_s).clip(lower=0).sum())
        assert whatif.late[:, column].sum() == (served["end_s"].to_numpy() - begins_s > deadline_s).sum()
    assert whatif.used_later == (rounds.get("late") == "stale")
