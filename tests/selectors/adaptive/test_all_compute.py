"""The protocol in which all compute: draws by hand, times by hand, and the updates that have been made."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim import simulate
from fedsim.errors import ScenarioError, SelectorError
from fedsim.rounds import WaitForAll
from fedsim.selectors import Cohort, Probe
from fedsim.selectors.adaptive.all_compute import AllCompute, ApproximateSampling, approximate_probabilities
from fedsim.selectors.importance import optimal_probabilities
from tests.support.short_runs import DIGITS
from tests.support.views import answers_of, reports_of, rng, view_of
from tests.support.worlds import CountingLearner, Everybody, serve


@pytest.mark.parametrize(
    ("norms", "iterations", "chance"),
    [
        # m = 2: 2 * 6 / 10 is above 1. Three are left with 0.8 in sum: C = (2 - 4 + 3) / 0.8 = 1.25.
        ([6.0, 2.0, 1.0, 1.0], 0, [1.0, 0.4, 0.2, 0.2]),
        ([6.0, 2.0, 1.0, 1.0], 1, [1.0, 0.5, 0.25, 0.25]),
        ([6.0, 2.0, 1.0, 1.0], 4, [1.0, 0.5, 0.25, 0.25]),
        ([0.0] * 4, 4, [0.5] * 4),
    ],
)
def test_algorithm_2_by_hand(norms, iterations, chance):
    np.testing.assert_allclose(approximate_probabilities(np.array(norms), 2, iterations), chance)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.floats(0, 1))
def test_with_many_iterations_it_is_optimal_sampling(norm, part):
    norm = np.array(norm)
    m = max(1, round(part * norm.size))
    np.testing.assert_allclose(approximate_probabilities(norm, m, 50), optimal_probabilities(norm, m), atol=1e-9)


def test_the_aggregate_is_unbiased():
    """The mean of the weights of each client is its share of the data."""
    draws, norms = np.random.default_rng(3), np.array([6.0, 2.0, 1.0, 1.0])
    selector = ApproximateSampling(2, floor=0.0)
    selector.select(view_of(4, samples=[1, 2, 3, 4]), draws)
    selector.observe(reports_of(np.arange(4), update_norm=norms))
    weights = np.zeros((1500, 4))
    for row in weights:
        cohort = selector.select(view_of(4, samples=[1, 2, 3, 4]), draws)
        row[cohort.client] = cohort.weights
    error = weights.std(axis=0) / np.sqrt(len(weights))
    # Only draws with a client count, so that the sum is a little above 1; the weights account for it.
    np.testing.assert_allclose(weights.mean(axis=0), [0.1, 0.2, 0.3, 0.4], atol=4 * error.max())


def test_a_server_that_asks_for_a_number_gets_it():
    selector, draws = ApproximateSampling(2), np.random.default_rng(1)
    assert all(selector.select(view_of(6, wanted=3), draws).client.size == 3 for _ in range(20))
    cohort = selector.select(view_of(3, wanted=2, samples=[5, 0, 0]), draws)
    assert sorted(cohort.weights.tolist()) == [0.0, 1.0], "a client without data fills a place and weighs nothing"


NORMS = [6.0, 2.0, 1.0, 1.0]


def heard(norms=NORMS, **columns):
    return view_of(len(norms), answers=answers_of(range(len(norms)), update_norm=norms), **columns)


def test_all_are_asked_and_the_greatest_norms_send():
    asked = AllCompute(2).probe(view_of([1, 4, 5]), rng())
    assert (asked.client.tolist(), asked.asks, asked.up_bits) == ([1, 4, 5], "update_norm", 32.0)
    cohort = AllCompute(2, "greatest").select(heard(), rng())
    assert (cohort.client.tolist(), cohort.trained, cohort.weights) == ([0, 1], True, None)


@pytest.mark.statistical
@pytest.mark.parametrize(("rule", "iterations"), [("optimal", 4), ("approximate", 1)])
def test_the_probabilities_and_weights_are_those_of_the_paper(rule, iterations):
    """As in AOCS by hand: 1, 1/2, 1/4 and 1/4; the weights make the aggregate unbiased."""
    selector, draws = AllCompute(2, rule, iterations), np.random.default_rng(5)
    times, weights = np.zeros(4), np.zeros(4)
    for _ in range(2000):
        cohort = selector.select(heard(), draws)
        assert cohort.trained
        times[cohort.client] += 1
        weights[cohort.client] += cohort.weights
    np.testing.assert_allclose(times / 2000, [1, 0.5, 0.25, 0.25], atol=4 * 0.5 / np.sqrt(2000))
    np.testing.assert_allclose(weights / 2000, 0.25, atol=4 * 0.5 / np.sqrt(2000))


def test_without_answers_the_cohort_works_itself():
    assert AllCompute(2).probe(view_of(4, wanted=2), rng()) is None
    cohort = AllCompute(2).select(view_of(4), rng())
    assert (cohort.client.size, cohort.trained) == (2, False)
    # Without learning all norms are alike.
    unknown = AllCompute(4, "greatest").select(heard([np.nan] * 4), rng())
    assert unknown.client.tolist() == [0, 1, 2, 3]


class TwoOfThree(Everybody):
    """Asks three clients for norms; the first two send."""

    def __init__(self, asks="update_norm", sends=(0, 1)):
        super().__init__()
        self.asks, self.sends = asks, sends

    def probe(self, view, rng):
        return Probe(client=np.arange(3), asks=self.asks, up_bits=0.0)

    def select(self, view, rng):
        super().select(view, rng)
        return Cohort(np.array(self.sends), trained=True)


TIMES = ([1, 1, 1], [2, 2, 2], [0.5, 4, 9])


def test_the_cohort_does_no_work_a_second_time():
    """The last answer comes at 1 + 2 + 9 = 12 s; then a message of 1 s tells two clients to send, for 0.5 and 4 s."""
    learner = CountingLearner(np.full(3, 10))
    history, selector, *_ = serve(WaitForAll(), *TIMES, selector=TwoOfThree(), learner=learner)
    assert history.probes.column("end_s").to_pylist() == [3.5, 7.0, 12.0]
    assert history.column("participations", "start_s").tolist() == [12.0, 12.0]
    assert history.column("participations", "compute_s").tolist() == [0.0, 0.0]
    assert history.column("participations", "end_s").tolist() == [13.5, 17.0]
    assert history.column("participations", "downlink_bits").tolist() == [0.0, 0.0]
    assert selector.views[0].answers.update_norm.size == 3


@pytest.mark.parametrize(
    "selector", [TwoOfThree("resources"), TwoOfThree("loss")], ids=["of another question", "of losses"]
)
def test_a_cohort_without_norms_has_no_updates(selector):
    with pytest.raises(SelectorError, match="trained = True"):
        serve(WaitForAll(), *TIMES, selector=selector, learner=CountingLearner(np.full(3, 10)))


FIELD = DIGITS.replace({"selector": {"kind": "all-compute", "cohort": 6, "rule": "greatest"}, "results.audit": True})


def test_the_updates_are_those_whose_norms_were_sent():
    """If all clients send, the model is that of full participation, and each update is trained once."""
    runs = [simulate(scenario) for scenario in (FIELD, FIELD.replace({"selector": "all"}))]
    accuracy = [history.column("evaluations", "accuracy").tolist() for history in runs]
    assert accuracy[0] == accuracy[1]


def test_private_runs_refuse_the_question():
    budget = {"kind": "geometric", "epsilon": 10.0, "eta": 0.1}
    private = {"budget": budget, "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.01}}
    with pytest.raises(ScenarioError, match="norms of updates are not private"):
        simulate(FIELD.replace({"privacy": private}))


def test_an_asynchronous_server_has_no_norms():
    with pytest.raises(ScenarioError, match="norms of updates, not to be had at an asynchronous server"):
        simulate(FIELD.replace({"rounds.policy": {"kind": "fedasync", "concurrency": 3}}))
