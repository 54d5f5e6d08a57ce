"""FedSampling: a round is a step of centralised training, its questions cost time and privacy, and what it refuses."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from fedsim import Scenario, simulate
from fedsim.errors import ScenarioError, SelectorError
from fedsim.learning import Digits, SampleDraws
from fedsim.rounds import WaitForAll
from fedsim.rounds.policies.count_based import KFastest
from fedsim.scenario.disclosure import side_information_of
from fedsim.selectors import Cohort, RandomizedResponse, Sampling
from fedsim.selectors.fedsampling.fedsampling import FedSampling
from fedsim.simulation import Simulation
from fedsim.streams import Streams
from tests.support.worlds import Everybody, serve

CONSTANT = {"kind": "constant", "value_s": 0.1}
SIZES = [60, 3, 30, 1, 20, 10]
SCENARIO = Scenario(
    name="fedsampling",
    seed=4,
    crowd={"clients": 6},
    learning={
        "data": {"kind": "digits", "train_limit": 124},
        "split": {"kind": "sizes", "samples": SIZES},
        "model": {"kind": "mlp", "hidden": [8]},
        "local": {"learning_rate": 0.3, "batch_size": 1000},
    },
    network={"kind": "latency", "downlink": CONSTANT, "uplink": CONSTANT},
    devices={"compute": "zero"},
    rounds={"count": 1},
    selector={"kind": "fedsampling", "samples": 124, "alpha": 1.0, "threshold": 1000},
    results={"audit": True},
)
PRIVACY = {
    "budget": {"kind": "uniform", "epsilon": 20.0, "releases": 3},
    "mechanism": {"kind": "laplace-l1", "clip": 1.0},
}


def arrays_of(simulation):
    return {name: torch.tensor(values) for name, values in simulation.trained().arrays.items()}


def has_weights(simulation, expected):
    found = arrays_of(simulation)
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values, rtol=2e-5, atol=2e-6)


def start_of(scenario):
    learner = Simulation(scenario, store=False).context.learner
    return {name: torch.tensor(values) for name, values in learner.export(learner.initial()).items()}


def step(weights, x, y, rate, divisor):
    """Return weights after a step of plain gradient descent on the sum of the losses over a divisor."""
    mine = {name: values.clone().requires_grad_() for name, values in weights.items()}
    (w1, b1, w2, b2), names = mine.values(), list(mine)
    hidden = functional.relu(x.reshape(len(x), -1) @ w1.T + b1)
    functional.cross_entropy(hidden @ w2.T + b2, y, reduction="sum").div(divisor).backward()
    return {name: (mine[name] - rate * mine[name].grad).detach() for name in names}


def rows_of(scenario):
    """Return the samples of each client, as they lie in the training set."""
    return Simulation(scenario, store=False).context.learner._rows


def inputs():
    data = Digits(train_limit=124).load()
    return torch.tensor(data.train_x.astype(np.float32) / 8 - 1), torch.tensor(data.train_y)


@pytest.mark.parametrize("executor", ["sequential", "stacked", pytest.param("processes", marks=pytest.mark.slow)])
def test_with_full_participation_a_round_is_a_centralised_step_on_all_samples(executor):
    simulation = Simulation(SCENARIO, store=False, executor=executor)
    history = simulation.run()
    x, y = inputs()
    rows = np.concatenate(rows_of(SCENARIO))
    has_weights(simulation, step(start_of(SCENARIO), x[rows], y[rows], 0.3, 124))
    assert history.column("participations", "weight").tolist() == [1.0] * 6


def test_a_round_of_k_samples_is_a_centralised_step_on_those_drawn():
    """The samples are drawn here from the stream itself; each client's update is the mean over its own, times s / K."""
    scenario = SCENARIO.replace({"selector.samples": 31, "rounds.count": 3, "selector.query": "once"})
    simulation = Simulation(scenario, store=False)
    history = simulation.run()
    x, y = inputs()
    weights, rows = start_of(scenario), rows_of(scenario)
    draws, silent = SampleDraws(Streams(4), np.array(SIZES)), []
    for number in (1, 2, 3):
        places = draws.places(np.arange(6), 31 / 124, number)
        chosen = np.concatenate([mine[drawn] for mine, drawn in zip(rows, places, strict=True)])
        weights = step(weights, x[chosen], y[chosen], 0.3, 31)
        silent += [len(drawn) == 0 for drawn in places]
    has_weights(simulation, weights)
    table = history.participations
    assert any(silent)
    assert [bits == 0 for bits in table["uplink_bits"].to_pylist()] == silent
    assert [weight == 0 for weight in table["weight"].to_pylist()] == silent
    assert set(table["fate"].to_pylist()) == {"used"}


class Known(FedSampling):
    """Keeps what it is shown, and what it answers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.cohorts = []

    def select(self, view, rng):
        self.cohorts.append((view.answers, super().select(view, rng)))
        return self.cohorts[-1][1]


def test_question_ratio_work_and_update_take_their_time():
    """Answers at 1 + 1 and 2 + 3 s; the ratio, no work of clients that draw nothing, and the update follow at 5 s.

    K = 20 of 20 samples: all are drawn. Client 0 works for 4 s.
    """
    selector = Known(samples=20, alpha=1.0, threshold=100)
    history, selector, learner, _ = serve(WaitForAll(), [1, 2], [4, 0.5], [1, 3], selector=selector, audit=False)
    columns = (history.column("probes", name).tolist() for name in ("client", "start_s", "end_s", "downlink_bits"))
    assert list(columns) == [[0, 1], [0.0, 0.0], [2.0, 5.0], [1.0, 1.0]]
    assert history.probes["compute_s"].to_pylist() == [0.0, 0.0]
    answers, cohort = selector.cohorts[0]
    assert answers.samples.tolist() == [10, 10]
    assert cohort.sampling == Sampling(probability=1.0, divisor=20.0, bits=64.0, has_model=True)
    assert history.column("participations", "end_s").tolist() == [5 + 1 + 4 + 1, 5 + 2 + 0.5 + 3]
    assert learner.aggregated == [([0, 1], [1.0, 1.0])]


def test_a_client_that_draws_nothing_sends_a_message_without_bits():
    """K = 1 of 40 samples of four clients: with this seed clients 1 and 3 draw in the first two rounds, once each."""
    selector = Known(samples=1, alpha=1.0, threshold=100, query="once")
    world = WaitForAll(), [1] * 4, [2] * 4, [1] * 4
    history, selector, learner, _ = serve(*world, selector=selector, audit=False, count=6)
    drawn = np.array([SampleDraws(Streams(0), np.full(4, 10)).counts(np.arange(4), 1 / 40, n) for n in range(1, 7)])
    table = history.participations
    assert (np.array(table["uplink_bits"].to_pylist()).reshape(6, 4) > 0).tolist() == (drawn > 0).tolist()
    sent = [[client for client in range(4) if row[client]] for row in drawn]
    assert [updates for updates, _ in learner.aggregated] == [row for row in sent if row]
    assert history.column("rounds", "model_version").tolist() == np.cumsum([bool(row) for row in sent]).tolist()
    assert history.probes.num_rows == 4, "each client is asked once"


def test_without_an_answer_the_round_goes_on_with_whole_models():
    selector = Known(samples=3, alpha=1.0, wait_s=0.5)
    _, selector, *_ = serve(WaitForAll(), [1, 1], [2, 2], [1, 1], selector=selector, audit=False)
    cohort = selector.cohorts[0][1]
    assert cohort.client.tolist() == [0, 1]
    assert cohort.sampling == Sampling(probability=1.0, divisor=3.0, bits=64.0, has_model=False)


def test_a_fixed_ratio_averages_by_the_numbers_drawn_or_equally():
    """Twelve rounds: weights are those of the counts drawn from the stream, and equal among clients that drew."""
    by_number = SCENARIO.replace({"selector": {"kind": "fixed-ratio", "ratio": 0.2}, "rounds.count": 4})
    weights = np.array(simulate(by_number).column("participations", "weight")).reshape(4, 6)
    counts = np.array([SampleDraws(Streams(4), np.array(SIZES)).counts(np.arange(6), 0.2, n) for n in range(1, 5)])
    np.testing.assert_allclose(weights, counts / counts.sum(axis=1, keepdims=True))
    equally = simulate(by_number.replace({"rounds.weights": "uniform"})).column("participations", "weight")
    drew = counts > 0
    np.testing.assert_allclose(np.array(equally).reshape(4, 6), drew / drew.sum(axis=1, keepdims=True))


def test_a_second_run_takes_all_trainings_from_the_store_and_other_draws_do_not(tmp_path):
    scenario = SCENARIO.replace({"selector.samples": 31, "rounds.count": 3})
    first = Simulation(scenario, store=tmp_path)
    history = first.run()
    again = Simulation(scenario, store=tmp_path)
    assert again.run().evaluations.equals(history.evaluations)
    assert (first.context.learner.work.trained > 0, again.context.learner.work.trained) == (True, 0)
    other = Simulation(scenario.replace({"selector.samples": 30}), store=tmp_path)
    other.run()
    assert other.context.learner.work.trained > 0


def test_answers_are_paid_for_once_or_each_time():
    """An answer costs 1; three rounds take 3 of 20 or, where nothing links the answers, 1. Terms of updates shrink."""
    private = SCENARIO.replace(
        {"selector": {"kind": "fedsampling", "samples": 60, "epsilon": 1.0}, "privacy": PRIVACY, "rounds.count": 3}
    )
    for anonymous, asked, left in ((False, [1.0, 1.0, 1.0], 17.0), (True, [1.0, 0.0, 0.0], 19.0)):
        history = simulate(private.replace({"selector.anonymous": anonymous}))
        paid = np.array(history.probes["epsilon"].to_pylist()).reshape(3, 6)
        np.testing.assert_allclose(paid, np.repeat(np.array(asked)[:, None], 6, axis=1))
        np.testing.assert_allclose(history.column("participations", "epsilon"), left / 3)
        assert history.column("rounds", "largest_leakage")[-1] == pytest.approx(20.0)
        assert [remark.partition(":")[2][:16] for remark in history.remarks] == [" noise is larger"]
    assert (np.array(history.column("participations", "uplink_bits")) > 0).all(), "noise of those who draw nothing, too"


def test_a_large_epsilon_is_paid_as_it_is_given():
    """At 50 the probability of a true answer is 1 to a float's precision; the account knows the epsilon."""
    private = SCENARIO.replace(
        {
            "selector": {"kind": "fedsampling", "samples": 60, "epsilon": 50.0},
            "privacy": {**PRIVACY, "budget": {"kind": "uniform", "epsilon": 60.0, "releases": 1}},
        }
    )
    history = simulate(private)
    assert history.column("probes", "epsilon").tolist() == [50.0] * 6
    np.testing.assert_allclose(history.column("participations", "epsilon"), 10.0)


@pytest.mark.parametrize(
    ("options", "kept", "said"),
    [
        ({"epsilon": 2.5}, "private", "each costs 2.5 epsilon"),
        ({"epsilon": 2.5, "query": "once"}, "private", "all of a client together cost 2.5 epsilon"),
        ({"alpha": 0.5, "threshold": 100}, "private", "each costs 4.60517 epsilon"),
        ({"alpha": 1.0}, "exact", None),
    ],
)
def test_the_epsilon_of_answers_without_a_table_of_privacy_is_said(options, kept, said):
    scenario = SCENARIO.replace({"selector": {"kind": "fedsampling", "samples": 60, **options}})
    assert side_information_of(scenario) == kept
    remarks = simulate(scenario).remarks
    assert len(remarks) == (said is not None)
    assert said is None or said in remarks[0]


def test_exact_answers_beside_privacy_are_said():
    private = SCENARIO.replace({"privacy": PRIVACY})
    assert "numbers of samples" in simulate(private).remarks[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"rounds.policy": {"kind": "fedbuff", "concurrency": 3, "buffer": 2}},
            "rounds.policy: 'fedbuff' is not allowed",
        ),
        ({"rounds.policy": {"kind": "safa", "share": 0.5, "max_wait_s": 1.0}}, "rounds.policy: 'safa' is not allowed"),
        ({"rounds.late": "partial", "rounds.policy": {"kind": "deadline", "deadline_s": 9.0}}, "work on all of them"),
        ({"learning.algorithm": "scaffold"}, "an algorithm whose server keeps no state"),
        ({"learning.algorithm": "heterofl"}, "without widths"),
        ({"rounds.weights": "uniform"}, "the selector prescribes weights"),
        (
            {"privacy": PRIVACY, "selector": {"kind": "fedsampling", "samples": 9}, "rounds.count": 7},
            r"may cost a client 21 epsilon \(3 an answer\); the budget of privacy is 20; allowed: .* anonymous = true",
        ),
        (
            {"privacy": PRIVACY, "rounds.edges": {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}},
            "on their own account",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(changes, said):
    with pytest.raises(ScenarioError, match=said):
        simulate(SCENARIO.replace(changes))


class Drawing(Everybody):
    """Lets clients draw samples in a way of its own."""

    draws_samples = True

    def __init__(self, **values):
        super().__init__()
        self.values = values

    def select(self, view, rng):
        return Cohort(view.client, **self.values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sampling": Sampling(probability=0.0)}, "probability = 0"),
        ({"sampling": Sampling(probability=0.5, divisor=-1.0)}, "divisor = -1"),
        ({"sampling": 0.5}, "sampling = 0.5"),
        ({"sampling": Sampling(probability=0.5), "work": np.ones(2)}, "sampling beside work"),
        ({"sampling": Sampling(probability=0.5, has_model=True)}, "has_model = True for clients without an answer"),
        ({"sampling": Sampling(probability=0.5)}, r"allowed: only with Drawing\.draws_samples = True"),
    ],
)
def test_wrong_sampling_is_refused_and_any_where_the_selector_does_not_say_that_clients_draw(values, said):
    selector = Drawing(**values)
    selector.draws_samples = "only with" not in said
    with pytest.raises(SelectorError, match=said):
        serve(WaitForAll(), [1, 1], [1, 1], [1, 1], selector=selector, audit=False)


def test_two_edge_servers_each_draw_k_samples_of_their_own_clients():
    edges = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
    history = simulate(SCENARIO.replace({"rounds.edges": edges, "selector.samples": 10, "rounds.count": 3}))
    assert set(history.participations["edge"].to_pylist()) == {0, 1}
    assert history.column("edge_rounds", "selected").tolist() == [3] * 6
    assert history.column("edge_participations", "weight").tolist() == pytest.approx([93 / 124, 31 / 124] * 3)


@pytest.mark.parametrize("cohort", [None, 2])
def test_a_policy_that_asks_for_a_number_of_clients_has_k_samples_drawn_among_those(cohort):
    """Three is 2 times 1.3, rounded up; with exact answers K = 5 of their samples are drawn."""
    selector = Known(samples=5, alpha=1.0, threshold=100, cohort=cohort)
    policy = KFastest(k=2, max_wait_s=50.0)
    history, selector, *_ = serve(policy, [1] * 6, [1] * 6, [1] * 6, selector=selector, audit=False)
    assert history.column("rounds", "selected").tolist() == [3]
    (answers, cohort_sent), *_ = selector.cohorts
    assert answers.client.tolist() == cohort_sent.client.tolist()
    assert cohort_sent.sampling.probability == pytest.approx(5 / 30)


def test_the_response_follows_from_epsilon_or_is_given():
    assert FedSampling(10).response == RandomizedResponse.of_epsilon(300, 3.0)
    assert [FedSampling(10, epsilon=one).sizes_cost for one in (0.1, 3.0, 40.0, 50.0)] == [0.1, 3.0, 40.0, 50.0]
    assert FedSampling(10, epsilon=50.0, clip=False).sizes_cost == 0.0
    assert FedSampling(10, threshold=100, alpha=0.5, clip=False).response == RandomizedResponse(100, 0.5, clips=False)
    assert FedSampling(10, threshold=100, alpha=0.5).sizes_cost == pytest.approx(math.log(100))
    assert FedSampling(10, alpha=0.5, clip=False).sizes_cost == 0.0


def test_under_secure_aggregation_all_send_as_much_and_the_model_is_the_same():
    scenario = SCENARIO.replace({"selector.samples": 31, "rounds.count": 2})
    masked = scenario.replace({"rounds.secure_aggregation": "bonawitz"})
    found = [Simulation(one, store=False) for one in (scenario, masked)]
    plain, secure = (one.run() for one in found)
    assert (np.array(plain.participations["uplink_bits"].to_pylist()) == 0).any()
    assert len(set(secure.participations["uplink_bits"].to_pylist())) == 1
    for name, values in arrays_of(found[0]).items():
        torch.testing.assert_close(arrays_of(found[1])[name], values, rtol=1e-6, atol=1e-7)
