"""Asynchronous servers: everything that happens, worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import simulate
from fedsim.clock import instants
from fedsim.errors import ScenarioError, SelectorError
from fedsim.rounds import Edges
from fedsim.rounds.aggregation.staleness import Constant, Hinge
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from fedsim.rounds.server import asynchronous
from tests.support.hand_made import four
from tests.support.stories import ends, rows
from tests.support.worlds import CountingLearner, Everybody, FirstWanted, available_in, batteries, serve

# Three clients that take 3, 5 and 8 s; the selector takes the lowest ids that are free.
THREE = ([1, 1, 2], [1, 2, 3], [1, 2, 3])


def test_fedasync_mixes_whole_models():
    class Strict(CountingLearner):
        def aggregate(self, model, updates, weights, *, of="difference"):
            assert of == "model"
            return super().aggregate(model, updates, weights)

    policy = FedAsync(concurrency=2, mixing=0.9, staleness=Hinge(a=10.0, b=0.0))
    _, _, learner, _ = serve(policy, *THREE, count=5, selector=FirstWanted(), learner=Strict(np.full(3, 10)))
    assert [weights[0] for _, weights in learner.aggregated] == pytest.approx([0.9, 0.9 / 11, 0.9 / 11, 0.9, 0.9 / 21])


def test_server_rate_and_law():
    policy = FedBuff(buffer=2, concurrency=2, server_rate=3.0, staleness=Constant())
    _, _, learner, _ = serve(policy, *THREE, count=3, selector=FirstWanted())
    assert [weights for _, weights in learner.aggregated] == [[1.5, 1.5]] * 3


@pytest.mark.parametrize("phases", [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.3, 0.1)])
@pytest.mark.parametrize("starts_s", [0.0, 0.7])
def test_an_update_that_arrives_as_it_is_given_up_is_used_whatever_the_digits_say(phases, starts_s):
    there = available_in([(starts_s, 100)])
    policy = FedBuff(buffer=1, concurrency=1, give_up_s=0.6)
    history, *_ = serve(policy, *([phase] for phase in phases), presence=there, count=3)
    assert list(history.column("participations", "fate")) == ["used"] * 3


@pytest.mark.parametrize("times", [([0.3, 0.1], [0.2, 0.2], [0.1, 0.3]), ([0.1, 0.3], [0.2, 0.2], [0.3, 0.1])], ids=str)
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_order_of_ties_does_not_depend_on_the_last_digits_of_the_clock(times, order):
    """0.6 s in two ways that differ in the last digit: they are merged in the order in which they were sent."""

    class Ordered(Everybody):
        def select(self, view, rng):
            super().select(view, rng)
            return np.array(order) if len(self.views) == 1 else view.client[: view.wanted]

    _, _, learner, _ = serve(FedAsync(concurrency=2), *times, count=2, selector=Ordered())
    assert [client for [client], _ in learner.aggregated] == order


def test_instants_are_numbered_in_their_order_and_near_ones_are_one():
    times_s = np.array([0.7, 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.7 + 1e-12, 0.0])
    assert instants(times_s).tolist() == [2, 1, 1, 3, 0]
    assert instants(np.zeros(0)).tolist() == []


def test_nobody_there_takes_time_and_no_loops():
    """The only client is there from 7 to 10 s and from 40 s on, and takes 3 s."""
    there = available_in([(7, 10), (40, 100)])
    history, selector, *_ = serve(FedBuff(buffer=1, concurrency=4), [1], [1], [1], presence=there, count=3)
    assert ends(history) == [10, 43, 46]
    assert [view.time_s for view in selector.views] == [7, 40, 43]
    in_mid_round, selector, *_ = serve(FedBuff(buffer=2, concurrency=4), [1], [1], [1], presence=there)
    assert ends(in_mid_round) == [43]
    assert [view.time_s for view in selector.views] == [7, 40]


@given(st.lists(st.floats(0.001, 50), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 3))
def test_the_server_looks_for_clients_only_when_something_happens(comings_s, buffer, concurrency):
    """Comings at any instants: the selector is asked once for each of them and for each arrival at most."""
    there = available_in(*([(come_s, 1000)] for come_s in comings_s))
    clients = len(comings_s)
    history, selector, *_ = serve(
        FedBuff(buffer=buffer, concurrency=concurrency), [1.1] * clients, [0.1] * clients, [0.1] * clients,
        presence=there, count=3,
    )  # fmt: skip
    assert history.rounds.num_rows == 3
    assert len(selector.views) <= clients + history.participations.num_rows + 1


def test_a_buffer_that_nobody_will_fill_is_never_merged():
    """The only client delivers once, and then its battery is as good as empty for ever."""
    cells = batteries([3.5], work_w=3.0, least=1.0)
    policy = FedBuff(buffer=2, concurrency=1, give_up_s=9.0)
    history, _, learner, _ = serve(policy, [1], [1], [1], batteries=cells, count=5)
    assert learner.aggregated == []
    assert rows(history.participations, "fate") == [("wasted-unmerged",)]
    assert ends(history) == [3]


def test_a_run_goes_on_while_somebody_is_at_work_though_nobody_is_there():
    """Both come once and stay as long as their work takes; the second round begins when nobody is left."""
    there = available_in([(0, 3)], [(0, 5)])
    history, *_ = serve(FedBuff(buffer=1, concurrency=2), *[row[:2] for row in THREE], presence=there, count=2)
    assert ends(history) == [3, 5]


def test_a_selector_that_wants_nobody_is_refused_only_if_nobody_is_at_work():
    class Once(Everybody):
        def select(self, view, rng):
            super().select(view, rng)
            return view.client[:1] if len(self.views) == 1 else view.client[:0]

    with pytest.raises(
        SelectorError, match=r"Once\.select returned no client in round 2 and none is in flight, though there"
    ):
        serve(FedAsync(concurrency=2), *THREE, count=2, selector=Once())


def test_links_that_carry_nothing_need_somebody_to_give_up():
    with pytest.raises(ScenarioError, match="would take inf s"):
        serve(FedBuff(buffer=1, concurrency=2), [1, 1], [1, 1], [1, np.inf])
    history, *_ = serve(FedBuff(buffer=2, concurrency=2, give_up_s=4.0), [1, 1], [1, 1], [1, np.inf], count=2)
    assert [row for row in rows(history.participations, "client", "end_s", "outcome") if row[0]] == [
        (1, end_s, "late") for end_s in (4, 8, 12)
    ]
    assert ends(history) == [6, 12]
    there = available_in([(0, 2)], period_s=math.inf)
    history, *_ = serve(FedBuff(buffer=1, concurrency=1, give_up_s=4.0), [1], [1], [1], presence=there)
    assert ends(history) == [4], "its only client has left for good"


def test_empty_batteries_are_found_out_when_their_clients_are_given_up():
    """Each participation takes 3 J and 3 s; client 1 has 2 J, and gets 0.2 J a second when it is idle, from 2 s on."""
    cells = batteries([50.0, 2.0], work_w=3.0, gain_w=0.25, least=1.0)
    policy = FedBuff(buffer=2, concurrency=2, give_up_s=5.0)
    history, selector, *_ = serve(policy, [1, 1], [1, 1], [1, 1], batteries=cells, count=2)
    client_1 = [row for row in rows(history.participations, "client", "start_s", "end_s", "outcome") if row[0] == 1]
    assert client_1[0] == (1, 0.0, 1 + 2 / 3, "dropped")
    assert client_1[1][1] == pytest.approx(1 + 2 / 3 + 4), "charged to 1 J again, which is after 5 s"
    assert selector.reports[0].client.tolist() == [0, 0, 1]


def test_delivered_is_counted_when_it_is_settled():
    history, *_ = serve(FedBuff(buffer=2, concurrency=2), *THREE, count=3, selector=FirstWanted())
    assert history.column("rounds", "delivered").tolist() == [2, 2, 2]
    assert history.column("rounds", "selected").tolist() == [3, 2, 2]
    assert history.column("rounds", "stale_used").tolist() == [0, 1, 1]


def test_patience_begins_anew_with_every_delivery(monkeypatch):
    """Client 0 delivers every 3 s; client 1 never does, and is given up after 4 s again and again."""
    monkeypatch.setattr(asynchronous, "PATIENCE", 2)
    policy = FedBuff(buffer=1, concurrency=2, give_up_s=4.0)
    history, *_ = serve(policy, [1, 9], [1, 9], [1, 9], count=12)
    assert rows(history.participations, "client", "outcome").count((1, "late")) > 4


@pytest.mark.parametrize(("until_s", "sent", "end_s"), [(7.0, 4, 6.0), (9.0, 6, 9.0), (4.0, 2, 2.0), (1.0, 4, 5.0)])
def test_a_run_ends_at_its_last_second_if_no_update_comes(until_s, sent, end_s):
    """Both are lost 2 s after each start, and given up 4 s after it: they start at 0, 4 and 8 s.

    At 1 s both still run; the next look is 4 s later.
    """
    policy = FedBuff(buffer=1, concurrency=2, give_up_s=4.0)
    history, *_ = serve(policy, [1, 1], [1, 1], [1, 1], leaves_s=[2.0, 2.0], until_s=until_s, count=5)
    assert (ends(history), history.column("rounds", "selected").tolist()) == ([max(until_s, end_s)], [sent])
    ended_s = history.column("participations", "end_s")
    assert (ended_s.size, ended_s.max()) == (sent, end_s)


def test_a_round_that_has_begun_ends_after_the_last_second_if_an_update_comes():
    """Client 1 is lost; client 0 delivers at 3 s."""
    policy = FedBuff(buffer=1, concurrency=2, give_up_s=4.0)
    history, *_ = serve(policy, [1, 1], [1, 1], [1, 1], leaves_s=[np.inf, 1.0], until_s=2.0, count=5)
    assert ends(history) == [3]


def test_edge_servers_whose_clients_are_lost_end_at_the_last_second():
    policy = FedBuff(buffer=1, concurrency=1, give_up_s=4.0)
    settings = Edges(grouping={"kind": "order", "count": 2}, backhaul="none")
    history, *_ = serve(
        policy, [1, 1], [1, 1], [1, 1], leaves_s=[2.0, 2.0], until_s=7.0, count=5, edges=settings, audit=False
    )
    assert ends(history) == [7]
    assert history.column("participations", "end_s").tolist() == [2, 6, 2, 6]


def test_the_note_of_a_run_without_updates_says_why():
    """All are lost at once, and given up after 4 s: three each at 0, 4 and 8 s."""
    tables = four(
        **{
            "rounds.policy": {"kind": "fedbuff", "concurrency": 3, "give_up_s": 4.0},
            "rounds.until_s": 9.0,
            "devices.dropout": {"kind": "hazard", "rate_per_s": 1e6},
        }
    )
    history = simulate(tables, store=False)
    assert (
        "the run ended after round 1 of 3, at 9 s: rounds.until_s has come, and all 3 clients in flight are lost"
        in (history.notes)
    )
    assert history.participations.num_rows == 9
