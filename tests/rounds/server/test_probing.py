"""Questions to clients before a selection take time, bits and energy, and their answers may be late."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.devices.availability.independent import AlwaysAvailable
from fedsim.errors import ScenarioError
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.policies.late import Stale
from fedsim.rounds.policies.safa import Safa
from fedsim.rounds.server.oracle import OracleKnowledge
from tests.support import lies
from tests.support.short_runs import timed
from tests.support.stories import rows
from tests.support.worlds import Asking, CountingLearner, available_in, batteries, serve


class Answering(Asking):
    """Asks clients, and then selects all that have answered, or everybody if nobody has."""

    def __init__(self, client=None, **question):
        super().__init__(client, **{"up_bits": 0.0, **question})

    def select(self, view, rng):
        super().select(view, rng)
        return view.answers.client if view.answers.client.size else view.client


class AnsweringAll(Answering):
    """Asks all candidates for their losses on four samples."""

    def __init__(self):
        super().__init__(up_bits=64.0, samples=4)


def ids(*client):
    return np.array(client, dtype=np.int64)


def test_a_question_takes_down_work_and_up_before_the_cohort_is_sent():
    """Client 1 answers at 1 + 2 + 4 = 7 s; then client 0 and 1 take part, the slower for 7 s again."""
    selector = Answering(client=ids(0, 1))
    history, selector, *_ = serve(
        WaitForAll(), [1, 1, 1], [2, 2, 2], [0.5, 4, 9], selector=selector, learner=CountingLearner(np.full(3, 10))
    )
    assert history.probes is not None
    assert rows(history.probes, "round", "client", "start_s", "end_s", "outcome", "downlink_bits") == [
        (1, 0, 0.0, 3.5, "delivered", 1.0),
        (1, 1, 0.0, 7.0, "delivered", 1.0),
    ]
    assert history.column("participations", "start_s").tolist() == [7.0, 7.0]
    assert history.column("participations", "end_s").tolist() == [10.5, 14.0]
    assert history.column("rounds", "duration_s").tolist() == [14.0]
    answers = selector.views[0].answers
    assert answers.client.tolist() == [0, 1]
    assert answers.loss.tolist() == [0.0, 1.0], "what the learner says of clients 0 and 1"
    assert selector.reports[0].duration_s.tolist() == [3.5, 7.0], "from the start of the participation"


def test_whoever_has_not_answered_in_time_is_cut_off_and_an_answer_at_that_instant_counts():
    selector = Answering(client=ids(0, 1, 2), wait_s=3.5)
    history, selector, *_ = serve(Deadline(deadline_s=100), [1, 1, 1], [2, 2, 2], [0.5, 4, 0.5], selector=selector)
    rows = history.probes.to_pylist()
    assert [(row["outcome"], row["end_s"], row["uplink_s"]) for row in rows] == [
        ("delivered", 3.5, 0.5),
        ("late", 3.5, 0.5),
        ("delivered", 3.5, 0.5),
    ]
    assert selector.views[0].answers.client.tolist() == [0, 2]
    assert history.column("participations", "client").tolist() == [0, 2]


def test_nobody_answers_in_time_and_the_round_goes_on_with_everybody():
    selector = Answering(client=ids(0, 1), wait_s=0.25)
    history, selector, *_ = serve(WaitForAll(), [1, 1], [2, 2], [1, 1], selector=selector)
    assert selector.views[0].answers.client.size == 0
    assert history.column("rounds", "end_s").tolist() == [4.25]


def test_a_question_that_would_never_be_answered_needs_a_limit():
    """The message down to client 0 takes for ever; with a limit, client 1 answers alone."""
    world = (Deadline(deadline_s=5.0), [np.inf, 1.0], [1.0, 1.0], [1.0, 1.0])
    history, *_ = serve(*world, selector=Answering(client=ids(0, 1), asks="resources", wait_s=2.0))
    assert history.column("probes", "outcome").tolist() == ["late", "delivered"]
    waits = "the downlink of client 0 would take inf s; the selector's question waits for every answer"
    with pytest.raises(ScenarioError, match=waits):
        serve(*world, selector=Answering(client=ids(0, 1), asks="resources"))


def test_whoever_leaves_does_not_answer_and_the_server_does_not_wait_for_it():
    selector = Answering(client=ids(0, 1))
    history, selector, *_ = serve(
        Deadline(deadline_s=50), [1, 1], [2, 2], [1, 9], selector=selector, leaves_s=[np.inf, 5]
    )
    assert selector.views[0].answers.client.tolist() == [0]
    assert history.probes.to_pylist()[1]["outcome"] == "dropped"
    assert history.column("participations", "start_s").tolist() == [5.0]


def test_whoever_has_answered_and_gone_is_not_among_the_answers():
    """Client 0 answers at 3.5 s and is there to 5 s; the answer of client 1 is there at 7 s."""
    there = available_in([(0, 5), (90, 99)], [(0, 99)])
    history, selector, *_ = serve(
        WaitForAll(), [1, 1], [2, 2], [0.5, 4], selector=Answering(client=ids(0, 1)), presence=there
    )
    assert history.column("probes", "outcome").tolist() == ["delivered", "delivered"]
    assert selector.views[0].client.tolist() == selector.views[0].answers.client.tolist() == [1]
    assert selector.views[0].answers.loss.tolist() == [1.0]


def test_a_question_about_resources_takes_no_work_and_is_answered_with_means():
    selector = Answering(client=ids(0, 1), asks="resources", down_bits=3.0, up_bits=5.0)
    history, selector, *_ = serve(WaitForAll(), [1, 2], [4, 8], [0.5, 0.25], selector=selector)
    answers = selector.views[0].answers
    assert (answers.compute_s.tolist(), answers.uplink_s.tolist()) == ([4.0, 8.0], [0.5, 0.25])
    assert np.isnan(answers.loss).all()
    assert history.column("probes", "compute_s").tolist() == [0.0, 0.0]
    assert history.column("probes", "downlink_bits").tolist() == [3.0, 3.0]
    assert history.column("probes", "uplink_bits").tolist() == [5.0, 5.0]
    assert history.column("participations", "start_s").tolist() == [2.25, 2.25]


def test_over_a_shared_cell_a_question_is_paid_for_on_the_air_and_the_audit_agrees():
    direction = {"sharing": "equal", "bandwidth_hz": 1e6}
    scenario = timed(
        clients=12,
        bits=1e5,
        samples=30,
        network={"kind": "cell", "downlink": direction, "uplink": direction},
        devices={"compute": {"kind": "rate", "samples_per_s": 50.0, "jitter_sigma": 0.0}},
        rounds={"count": 2, "policy": {"kind": "deadline", "deadline_s": 30.0}},
        selector=AnsweringAll(),
    )
    history = simulate(scenario)
    work_s = history.column("probes", "compute_s")
    np.testing.assert_allclose(work_s, history.column("participations", "compute_s") * (4 / 3) / 30, rtol=1e-9)
    assert history.column("probes", "uplink_bits").tolist() == [64.0] * 24
    np.testing.assert_array_less(history.column("probes", "end_s"), history.column("participations", "start_s") + 1e-12)


def test_whoever_is_asked_again_as_soon_as_it_has_come_back_late_pays_for_all_in_order():
    """The only client is late at 5.75 s and at work to 8 s, when it is asked for 4 s.

    3 J down, 2 s of work at 1 W, and 4 J up for an update, none for an answer of no bits.
    """
    history, *_ = serve(
        Deadline(deadline_s=1.75),
        *([1], [2], [1]),
        selector=Answering(client=ids(0)),
        late=Stale(),
        batteries=batteries([100.0], receive=3.0, work_w=1.0, send=4.0),
        count=2,
    )
    asked = rows(history.probes, "start_s", "end_s", "energy_j")
    assert asked == [(0, 4, 5), (8, 12, 5)]
    took_part = rows(history.participations, "start_s", "end_s", "fate", "energy_j")
    assert took_part == [(4, 8, "stale-used", 9), (12, 13.75, "wasted-late", 3.75)]
    accounts = {name: column[0] for name, column in history.accounts.to_pydict().items()}
    assert accounts == {
        "client": 0,
        "idle_s": 0.0,
        "downlink_s": 4.0,
        "compute_s": 6.0,
        "queue_s": 0.0,
        "uplink_s": 3.0,
        "cut_off_s": 0.75,
    }


def test_who_stays_is_there_at_the_beginning_and_until_the_end():
    """From 10 s to 20 s after 100 s: 0 leaves at 115 s, 1 is away until 112 s, 2 has come at 108 s, 3 never leaves."""

    class Presence:
        leaves_s = np.array([115.0, 105.0, 105.0, np.inf])
        returns_s = np.array([118.0, 112.0, 108.0, np.inf])

        def available(self, client, time_s, round_):
            return (time_s < self.leaves_s[client]) | (time_s >= self.returns_s[client])

        def leaves_after_s(self, client, start_s, round_, task_s):
            return np.where(start_s < self.leaves_s[client], self.leaves_s[client] - start_s, np.inf)

    view = SimpleNamespace(client=np.arange(4), round=1, time_s=100.0)
    foresight = OracleKnowledge(SimpleNamespace(availability=Presence()), None, view, availability_draw=1)
    assert foresight.stays(np.full(4, 10.0), np.full(4, 20.0)).tolist() == [False, False, True, True]
    assert foresight.stays(np.array([10.0, 12.0, 7.0, 0.0]), np.array([15.0, 20.0, 20.0, 20.0])).tolist() == [
        True,
        True,
        False,
        True,
    ]


def test_the_audit_takes_a_cut_before_the_question_at_the_same_instant():
    """With lag 0. Client 0 delivers at once and ends round 1 as it begins; client 1 is cut at 10 s and asked at 10 s.

    A question of 1 bit down, 10/3 samples and 1 bit up costs 0.1 + 0.1 * 10/3 + 0.1 J of the batteries.
    """
    history, *_ = serve(
        Safa(share=0.5, max_wait_s=0.5, lag=0),
        [0, 5],
        [0, 5],
        [0, 0],
        selector=Answering(up_bits=1.0),
        count=2,
        batteries=batteries([50.0] * 2, receive=0.1, sample=0.1, send=0.1),
    )
    assert [row[:5] for row in rows(history.participations, "round", "client", "start_s", "end_s", "outcome")] == [
        (1, 0, 10.0, 10.0, "delivered"),
        (1, 1, 10.0, 10.0, "late"),
        (2, 0, 20.0, 20.0, "delivered"),
        (2, 1, 20.0, 20.5, "late"),
    ]
    assert rows(history.probes, "client", "start_s", "end_s", "energy_j") == [
        (client, start_s, end_s, pytest.approx(0.2 + 1 / 3))
        for client, start_s, end_s in [(0, 0.0, 0.0), (1, 0.0, 10.0), (0, 10.0, 10.0), (1, 10.0, 20.0)]
    ]


class Silent(lies.HonestTransfer):
    """A transfer that never ends."""

    def __init__(self, env):
        self.done = env.event()


class SilentMedium(lies.HonestMedium):
    transfer = Silent


class SilentLinks(lies.SharedLinks):
    medium = SilentMedium


def test_a_question_over_shared_links_that_carry_nothing_is_named():
    """The policy has a deadline, and the question to three of four clients has none."""
    tables = {
        **lies.network_of(SilentLinks),
        "learning": {"kind": "none", "samples_per_client": 5, "model_bits": 8.0},
        "rounds": {"policy": {"kind": "deadline", "deadline_s": 5.0}},
        "selector": {"kind": "fedcs", "deadline_s": 5.0, "share": 0.75},
    }
    with pytest.raises(
        ScenarioError,
        match="the question of FedCs in round 1, at 0 s, waits for ever: 3 of the clients asked can never",
    ):
        simulate(Scenario(**lies.together(lies.BASE, tables)), store=False)


def test_a_question_and_its_cohort_have_the_draw_of_their_round():
    drawn = []

    class Noting(AlwaysAvailable):
        def leaves_after_s(self, client, time_s, draw, task_s):
            drawn.append(draw)
            return super().leaves_after_s(client, time_s, draw, task_s)

    serve(WaitForAll(), [1, 1], [1, 1], [1, 1], presence=Noting(), selector=Answering(client=ids(0)), count=3)
    assert drawn == [1, 1, 2, 2, 3, 3]
