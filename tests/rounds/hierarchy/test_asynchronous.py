"""Clouds that aggregate each edge's model as it arrives: order, staleness and weights worked by hand."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.rounds import Edges, WaitForAll
from fedsim.rounds.hierarchy.cloud_rules import Asynchronous, EdgeStatus, FedAT
from tests.support.stories import rows
from tests.support.worlds import CountingLearner, serve

WIRE = {"kind": "link", "rate_bps": 2.0, "delay_s": 0.25}  # 0.75 s for a model of one bit


def run(edge, work_s, *, policy=None, learner=None, count=1, downlink_s=None, uplink_s=None, **options):
    """Run edges whose clients' participations take given seconds, by default all of them work."""
    times_s = [np.zeros(len(work_s)) if given is None else given for given in (downlink_s, uplink_s)]
    settings = {"grouping": {"kind": "given", "edge": edge}, "merging": "asynchronous", "backhaul": "none", **options}
    learner = learner or CountingLearner(np.full(len(work_s), 10))
    history, *_ = serve(
        policy or WaitForAll(), times_s[0], work_s, times_s[1], learner=learner, edges=Edges(**settings), count=count
    )
    return history


def test_each_model_is_aggregated_as_it_arrives_with_a_weight_that_falls_with_staleness():
    """Edge server 0 needs 0.75 + 4 + 0.75 = 5.5 s and edge server 1 8.5 s from one merge of its model to the next.

    The second round of edge server 1 ends at 16.25 s, and its participation counts in the cloud's round of that time.
    """
    learner = CountingLearner(np.full(3, 10))
    history = run((0, 0, 1), [3, 4, 7], learner=learner, backhaul=WIRE, count=6)
    assert rows(history.rounds, "round", "start_s", "end_s", "model_version", "selected") == [
        (1, 0.0, 5.5, 1, 2),
        (2, 5.5, 8.5, 2, 1),
        (3, 8.5, 11.0, 3, 2),
        (4, 11.0, 16.5, 4, 3),
        (5, 16.5, 17.0, 5, 0),
        (6, 17.0, 22.0, 6, 2),
    ]
    weights = [0.6, 0.6 * 2**-0.5, 0.6 * 2**-0.5, 0.6, 0.6 * 3**-0.5, 0.6 * 2**-0.5]
    names = ("round", "edge", "start_s", "end_s", "start_version", "staleness", "weight")
    assert rows(history.edge_participations, *names)[:6] == [
        (1, 0, 0.0, 5.5, 0, 0, pytest.approx(weights[0])),
        (2, 1, 0.0, 8.5, 0, 1, pytest.approx(weights[1])),
        (3, 0, 5.5, 11.0, 1, 1, pytest.approx(weights[2])),
        (4, 0, 11.0, 16.5, 3, 0, pytest.approx(weights[3])),
        (5, 1, 8.5, 17.0, 2, 2, pytest.approx(weights[4])),
        (6, 0, 16.5, 22.0, 4, 1, pytest.approx(weights[5])),
    ]
    assert [models for models, _ in learner.merged] == [[0, 1], [1, 1], [2, 2], [3, 4], [4, 3], [5, 5]]
    assert [parts[1] for _, parts in learner.merged] == pytest.approx(weights)
    assert [sum(parts) for _, parts in learner.merged] == pytest.approx([1.0] * 6)


def test_cycles_in_progress_at_the_end_of_the_run_are_recorded_in_part():
    """At 5.5 s edge server 1 has run a round since 0.75 s; edge server 2 has sent a whole model for 0.5 s at 2 bit/s.

    Edge server 3 has sent 0.25 s of its second model up, half a bit.
    """
    history = run((0, 1, 2, 3), [4.0, 7.0, 4.25, 4.5], backhaul=WIRE, count=1)
    names = ("round", "edge", "edge_rounds", "end_s", "downlink_bits", "uplink_s", "uplink_bits", "staleness", "weight")
    assert rows(history.edge_participations, *names) == [
        (1, 0, 1, 5.5, 1.0, 0.75, 1.0, 0, 0.6),
        (None, 1, 1, 5.5, 1.0, 0.0, 0.0, None, 0.0),
        (None, 2, 1, 5.5, 1.0, 0.5, 1.0, None, 0.0),
        (None, 3, 1, 5.5, 1.0, 0.25, 0.5, None, 0.0),
    ]
    cut = rows(history.participations, "edge", "end_s", "fate")
    assert cut == [(0, 4.75, "used"), (2, 5.0, "used"), (3, 5.25, "used"), (1, 5.5, "wasted-late")]
    assert history.column("rounds", "selected").tolist() == [3], "rounds count the edges' rounds that are over"


def test_models_of_one_instant_are_aggregated_in_the_order_of_edges_and_all_fetch_the_newest():
    history = run((1, 0, 2), [4.0, 4.0, 8.0], count=6)
    names = ("round", "edge", "start_s", "end_s", "start_version", "staleness")
    assert rows(history.edge_participations, *names)[:6] == [
        (1, 0, 0.0, 4.0, 0, 0),
        (2, 1, 0.0, 4.0, 0, 1),
        (3, 0, 4.0, 8.0, 2, 0),
        (4, 1, 4.0, 8.0, 2, 1),
        (5, 2, 0.0, 8.0, 0, 4),
        (6, 0, 8.0, 12.0, 5, 0),
    ]
    assert rows(history.rounds, "start_s", "end_s") == [(0, 4), (4, 4), (4, 8), (8, 8), (8, 8), (8, 12)]


def test_an_instant_reached_by_another_sum_is_the_same_instant():
    """0.1 + 0.2 + 0.3 s is one unit in the last place more than 0.6 s in binary, and the same instant."""
    assert 0.1 + 0.2 + 0.3 > 0.6
    times_s = {"downlink_s": [0.1, 0.0], "uplink_s": [0.3, 0.0]}
    history = run((0, 1), [0.2, 0.6], **times_s, count=2)
    assert rows(history.edge_participations, "round", "edge")[:2] == [(1, 0), (2, 1)]
    history = run((1, 0), [0.2, 0.6], **times_s, count=2)
    assert rows(history.edge_participations, "round", "edge")[:2] == [(1, 0), (2, 1)]


def test_no_version_occurs_twice_so_no_client_trains_twice_with_the_same_random_numbers():
    """Two edge rounds a cycle, of 2 s at edge server 0 and of 10 s at edge server 1.

    Edge server 0 brings versions 2, 4, ..., 10; then edge server 1's model of version 2 makes 11, and so on.
    """
    learner = CountingLearner(np.full(2, 10))
    run((0, 1), [1.0, 5.0], learner=learner, rounds=2, count=9)
    started = [(version, client) for version, client, _, _ in learner.asked]
    assert len(started) == len(set(started))
    assert [version for version, client in started if client == 0] == [*range(10), *range(11, 17)]


def test_the_share_of_a_tier_counts_the_models_of_its_mirror_image():
    """FedAT, section 4.2: three tiers of 1, 2.5 and 4 s, shares ``T_(M + 1 - m) / T`` worked by hand.

    Client 2 is the fastest and client 0 the slowest. At 4 and 5 s two tiers come at once, the faster first. Models with
    no share are left out; as long as only the fastest has come, all is the slowest's, which is the initial model.
    """
    learner, tiers = CountingLearner(np.full(3, 10)), {"kind": "latency", "count": 3}
    settings = Edges(grouping=tiers, merging="fedat", backhaul="none")
    history, *_ = serve(WaitForAll(), [0] * 3, [4.0, 2.5, 1.0], [0] * 3, learner=learner, edges=settings, count=9)
    came = [(0, 1.0), (0, 2.0), (1, 2.5), (0, 3.0), (0, 4.0), (2, 4.0), (0, 5.0), (1, 5.0), (0, 6.0)]
    assert rows(history.edge_participations, "edge", "end_s")[:9] == came
    by_hand = [
        # T_1, T_2, T_3 and the versions of the models that have a share
        ((1, 0, 0), [0]),
        ((2, 0, 0), [0]),
        ((2, 1, 0), [1, 0]),
        ((3, 1, 0), [1, 0]),
        ((4, 1, 0), [1, 0]),
        ((4, 1, 1), [5, 1, 1]),
        ((5, 1, 1), [7, 1, 1]),
        ((5, 2, 1), [7, 4, 1]),
        ((6, 2, 1), [9, 4, 1]),
    ]
    assert [models for models, _ in learner.merged] == [models for _, models in by_hand]
    for (counts, _), (_, parts) in zip(by_hand, learner.merged, strict=True):
        assert parts == pytest.approx([count / sum(counts) for count in reversed(counts) if count])
    assert {row["client"]: row["edge"] for row in history.participations.to_pylist()} == {2: 0, 1: 1, 0: 2}


def test_shares_by_hand():
    samples, fresh = np.array([10.0, 30.0, 60.0]), np.array([False, True, False])
    status = EdgeStatus(samples, np.array([7, 2, 1]), fresh, np.array([0, 8, 0]))
    own, shares = FedAT().shares(status)
    assert (own, shares.tolist()) == (0.0, [0.1, 0.2, 0.7])
    own, shares = Asynchronous(mixing=0.5).shares(status)
    assert own == pytest.approx(1 - 0.5 / 3)
    assert shares.tolist() == pytest.approx([0.0, 0.5 / 3, 0.0])
    own, shares = Asynchronous(mixing=0.9, staleness={"kind": "hinge", "a": 1.0, "b": 4.0}).shares(status)
    assert shares[1] == pytest.approx(0.9 / 5)


def test_a_law_that_compares_updates_is_refused():
    with pytest.raises(ValidationError, match="'deviation' compares stale updates with fresh ones"):
        Asynchronous(staleness="deviation")
