"""Edge servers below a cloud that waits for all: times, models and weights worked by hand."""

import numpy as np
from hypothesis import given, strategies as st

from fedsim.privacy import GeometricBudget
from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.policies.late import Stale
from tests.support.stories import rows
from tests.support.worlds import Asking, CountingLearner, Everybody, Sequence, serve

WIRE = {"kind": "link", "rate_bps": 2.0, "delay_s": 0.25}  # 0.75 s for a model of one bit
# Participations take 3 and 4 s at edge server 0, and 5, 3 and 7 s at edge server 1.
TIMES_S = ([1, 1, 1, 1, 1], [1, 2, 3, 1, 4], [1, 1, 1, 1, 2])
SAMPLES = np.array([10, 30, 20, 20, 20])


def edges(edge=(0, 0, 1, 1, 1), **options):
    return Edges(**{"grouping": {"kind": "given", "edge": edge}, "backhaul": "none", **options})


def test_two_edge_rounds_of_unequal_edges_between_two_aggregations():
    """The cloud waits for edge server 1: 0.75 + 2 * 7 + 0.75 = 15.5 s a round."""
    learner = CountingLearner(SAMPLES)
    history, *_ = serve(
        WaitForAll(), *TIMES_S, learner=learner, edges=edges(rounds=2, backhaul=WIRE), count=2, evaluate_every=1
    )
    assert rows(history.edge_rounds, "edge", "round", "start_s", "end_s", "selected", "model_version") == [
        (0, 1, 0.75, 4.75, 2, 1),
        (1, 1, 0.75, 7.75, 3, 1),
        (0, 2, 4.75, 8.75, 2, 2),
        (1, 2, 7.75, 14.75, 3, 2),
        (0, 3, 16.25, 20.25, 2, 3),
        (1, 3, 16.25, 23.25, 3, 3),
        (0, 4, 20.25, 24.25, 2, 4),
        (1, 4, 23.25, 30.25, 3, 4),
    ]
    assert rows(
        history.rounds, "round", "start_s", "end_s", "candidates", "selected", "delivered", "model_version"
    ) == [(1, 0.0, 15.5, 5, 10, 10, 2), (2, 15.5, 31.0, 5, 10, 10, 4)]
    names = ("round", "edge", "start_s", "end_s", "start_version", "weight")
    assert rows(history.edge_participations, *names) == [
        (1, 0, 0.0, 9.5, 0, 0.4),
        (1, 1, 0.0, 15.5, 0, 0.6),
        (2, 0, 15.5, 25.0, 2, 0.4),
        (2, 1, 15.5, 31.0, 2, 0.6),
    ]
    names = ("edge_rounds", "downlink_s", "uplink_s", "downlink_bits", "uplink_bits", "staleness")
    assert set(rows(history.edge_participations, *names)) == {(2, 0.75, 0.75, 1.0, 1.0, 0)}
    assert learner.evaluated == [2, 4], "what is evaluated is the cloud's model"
    assert rows(history.evaluations, "round", "time_s", "model_version") == [(1, 15.5, 2), (2, 31.0, 4)]
    trained = [(version, client) for version, client, _, _ in learner.asked]
    assert sorted(trained) == [(version, client) for version in range(4) for client in range(5)]
    at_edge_0, at_edge_1 = ([0, 1], [0.25, 0.75]), ([2, 3, 4], [1 / 3, 1 / 3, 1 / 3])
    assert learner.aggregated == [at_edge_0, at_edge_1] * 4
    assert learner.merged == [([2, 2], [0.4, 0.6]), ([4, 4], [0.4, 0.6])]
    started = rows(history.participations, "edge", "round", "client", "start_s", "end_s", "start_version")
    assert started[5:10] == [
        (0, 2, 0, 4.75, 7.75, 1),
        (0, 2, 1, 4.75, 8.75, 1),
        (1, 2, 2, 7.75, 12.75, 1),
        (1, 2, 3, 7.75, 10.75, 1),
        (1, 2, 4, 7.75, 14.75, 1),
    ]


def test_an_edge_without_a_new_model_sends_nothing_and_has_no_share_of_the_mean():
    """No client of edge server 1 delivers within 2.5 s; with a deadline of 3 s one of three does."""
    for deadline_s, weights in ((2.5, []), (3.0, [0.4, 0.6])):
        learner = CountingLearner(SAMPLES)
        history, *_ = serve(
            Deadline(deadline_s=deadline_s), *TIMES_S, learner=learner, edges=edges(backhaul=WIRE), count=1
        )
        assert learner.merged == [([1, 1], weights)] * bool(weights)
        assert history.column("edge_participations", "uplink_bits").tolist() == [float(bool(weights))] * 2
        assert history.column("rounds", "end_s").tolist() == [deadline_s + (1.5 if weights else 0.75)]
        assert history.column("rounds", "model_version").tolist() == [int(bool(weights))]
    learner = CountingLearner(SAMPLES)
    times_s = ([0] * 5, [1, 1, 9, 9, 9], [0] * 5)
    history, *_ = serve(Deadline(deadline_s=2), *times_s, learner=learner, edges=edges(backhaul=WIRE), count=1)
    assert rows(history.edge_participations, "edge", "uplink_bits", "staleness", "weight") == [
        (0, 1.0, 0, 1.0),
        (1, 0.0, None, 0.0),
    ]
    assert learner.merged == [], "the only new model is the cloud's next one as it is"


def test_without_samples_the_weight_of_an_edge_is_its_number_of_clients():
    learner = CountingLearner(np.zeros(5, dtype=np.int64))
    serve(WaitForAll(), *TIMES_S, learner=learner, edges=edges(), count=1)
    assert learner.merged == [([1, 1], [0.4, 0.6])]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), min_size=1, max_size=8))
def test_one_edge_round_of_all_clients_is_federated_averaging(clients):
    """The products of the two levels' weights are each client's share of all samples (HierFAVG, section II)."""
    edge = np.unique([at for at, _ in clients], return_inverse=True)[1]
    learner = CountingLearner(np.array([samples for _, samples in clients]))
    times_s = [np.ones(len(clients))] * 3
    serve(WaitForAll(), *times_s, learner=learner, edges=edges(tuple(edge.tolist())), count=1)
    shares = learner.merged[0][1] if learner.merged else [1.0]
    found = np.zeros(len(clients))
    for (members, weights), share in zip(learner.aggregated, shares, strict=True):
        found[members] = np.array(weights) * share
    np.testing.assert_allclose(found, learner.samples / learner.samples.sum())


def test_selectors_see_their_edge_as_a_crowd_of_its_own():
    selectors = [Everybody(), Sequence([np.array([0, 2]), np.array([1])])]
    learner = CountingLearner(SAMPLES)
    budget = GeometricBudget(epsilon=10.0, eta=0.04)
    history, _, _, ledger = serve(
        WaitForAll(), *TIMES_S, learner=learner, edges=edges(), selectors=selectors, budget=budget, count=2
    )
    first, second = selectors[1].views
    assert (first.clients, first.total_samples, first.client.tolist()) == (3, 60, [0, 1, 2])
    assert first.samples.tolist() == [20, 20, 20]
    assert second.round == 2
    assert second.participations.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(second.last_duration_s, [5.0, np.nan, 7.0])
    assert [report.client.tolist() for report in selectors[1].reports] == [[0, 2], [1]]
    assert [report.duration_s.tolist() for report in selectors[1].reports] == [[5.0, 7.0], [3.0]]
    assert [view.clients for view in selectors[0].views] == [2, 2]
    assert sorted(rows(history.participations, "round", "client")) == [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 4),
        (2, 0),
        (2, 1),
        (2, 3),
    ]
    leakage = ledger.spent
    assert sorted(rows(history.edge_rounds, "edge", "round", "largest_leakage")[-2:]) == [
        (0, 2, leakage[:2].max()),
        (1, 2, leakage[2:].max()),
    ]
    assert leakage[:2].max() > leakage[2:].max(), "a client of edge server 1 never came twice"


class AskingForTheHighest(Asking):
    """Asks all candidates for their losses, and then selects the one with the highest."""

    def probe(self, view, rng):
        self.views.append(view)
        return super().probe(view, rng)

    def select(self, view, rng):
        super().select(view, rng)
        return view.answers.client[[np.argmax(view.answers.loss)]]


def test_questions_and_answers_use_the_ids_of_the_edge():
    """A loss is the client's id in the whole crowd; a question takes as long as a participation.

    Edge server 1 asks until 7 s and then sends client 4, its number 2, until 14 s.
    """
    selectors = [AskingForTheHighest(), AskingForTheHighest()]
    history, *_ = serve(WaitForAll(), *TIMES_S, edges=edges(), selectors=selectors, count=1)
    assert [view.answers.client.tolist() for view in (selectors[0].views[1], selectors[1].views[1])] == [
        [0, 1],
        [0, 1, 2],
    ]
    assert selectors[1].views[1].answers.loss.tolist() == [2.0, 3.0, 4.0]
    assert [report.client.tolist() for report in selectors[1].reports] == [[2]]
    assert rows(history.participations, "edge", "client", "start_s", "end_s") == [(0, 1, 4.0, 8.0), (1, 4, 7.0, 14.0)]
    assert sorted(rows(history.probes, "edge", "client")) == [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)]


def test_the_clouds_mean_is_a_later_version_for_clients_that_train_an_edges_newest():
    """Both edges make version 1 at 2 s, and nothing in their second rounds, to 5 s: the mean of the two is version 2.

    Clients 1 and 3 take 5 s from 2 s on and are merged at 8 s, late, one aggregation after the model they had.
    """
    cohorts = [[np.array([0]), np.array([1]), np.array([0]), np.array([0])] for _ in range(2)]
    history, *_ = serve(
        Deadline(deadline_s=3),
        *([0.0] * 4, [2.0, 5.0, 2.0, 5.0], [0.0] * 4),
        edges=edges((0, 0, 1, 1), rounds=2),
        selectors=[Sequence(cohort) for cohort in cohorts],
        late=Stale(),
        count=2,
    )
    late = [row for row in history.participations.to_pylist() if row["client"] in {1, 3}]
    assert [(row["start_version"], row["end_s"], row["fate"], row["staleness"]) for row in late] == [
        (1, 7.0, "stale-used", 1)
    ] * 2
    assert history.column("rounds", "model_version").tolist() == [2, 4]


def test_a_late_update_waits_at_its_edge_for_the_next_round_of_the_cloud():
    """Client 1 takes 4 s: it is back at 4.75 s, while its edge's model is in transfer, and aggregated at 8.25 s.

    It is late again then, and cut off when the run ends, after the way up to the cloud.
    """
    learner = CountingLearner(np.full(3, 10))
    times_s = ([1] * 3, [1, 2, 1], [1] * 3)
    history, *_ = serve(
        Deadline(deadline_s=3), *times_s, learner=learner, edges=edges((0, 0, 1), backhaul=WIRE), late=Stale(), count=2
    )
    names = ("start_s", "client", "end_s", "outcome", "fate", "staleness")
    assert sorted(rows(history.participations, *names)) == [
        (0.75, 0, 3.75, "delivered", "used", 0),
        (0.75, 1, 4.75, "late", "stale-used", 1),
        (0.75, 2, 3.75, "delivered", "used", 0),
        (5.25, 0, 8.25, "delivered", "used", 0),
        (5.25, 1, 9.0, "late", "wasted-late", None),
        (5.25, 2, 8.25, "delivered", "used", 0),
    ]
    assert history.column("rounds", "stale_used").tolist() == [0, 1]
    assert history.column("rounds", "late").tolist() == [1, 1]
