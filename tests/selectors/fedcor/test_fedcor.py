"""FedCor: when it asks, when it draws, and what annealing does."""

import numpy as np
import pytest

from fedsim.selectors.fedcor.fedcor import FedCor
from tests.support.views import answers_of, rng, view_of

# In turn, losses fall by these shares of a step: clients 0 and 1 together, 2 and 3 each alone.
STEPS = np.array([[1.0, 1.0, 0.2, 0.1], [0.1, 0.1, 1.0, 0.3], [0.5, 0.5, 0.1, 1.0], [0.9, 0.9, 0.6, 0.2]])


def play(selector, rounds, size=4):
    """Play rounds in which all clients answer; return the rounds with a question, and the cohorts."""
    asked, cohorts, loss = [], [], np.full(size, 40.0)
    for number in range(1, rounds + 1):
        view = view_of(size, round=number)
        probe = selector.probe(view, rng(number))
        answers = None
        if probe is not None:
            asked.append(number)
            assert (probe.asks, probe.client.tolist()) == ("loss", list(range(size)))
            answers = answers_of(probe.client, loss=loss)
        cohorts.append(selector.select(view_of(size, round=number, answers=answers), rng(number)).client.tolist())
        loss = loss - np.resize(STEPS[number % 4], size)
    return asked, cohorts


def test_the_rounds_of_questions():
    """Samples of rounds 1 to 3, 7 and 11: each takes the losses before and after it."""
    asked, _ = play(FedCor(2, warmup=3, interval=4), 13)
    assert asked == [1, 2, 3, 4, 7, 8, 11, 12]


def test_a_question_is_put_once_in_a_round():
    selector = FedCor(1)
    assert selector.probe(view_of(3), rng()) is not None
    assert selector.probe(view_of(3), rng()) is None, "an asynchronous server asks again in the same round"


def test_samples_are_the_changes_of_the_rounds():
    selector = FedCor(2, warmup=3, interval=4)
    play(selector, 8)
    told = {number: change.tolist() for number, (_, change) in selector._process._samples.items()}
    assert {number: pytest.approx(change) for number, change in told.items()} == {
        number: (-STEPS[number % 4]).tolist() for number in (1, 2, 3, 7)
    }


def test_greedy_rounds_follow_the_process_and_anneal():
    """With beta = 0 all four clients have had their turn after two rounds of two; a fit resets the factors."""
    selector = FedCor(2, warmup=4, interval=5, beta=0.0)
    _, cohorts = play(selector, 8)
    assert sorted(cohorts[4] + cohorts[5]) == [0, 1, 2, 3]
    assert not {0, 1} <= set(cohorts[4]), "one client tells of both that move together"
    steady = FedCor(2, warmup=4, interval=5, beta=1.0)
    _, cohorts = play(steady, 8)
    assert cohorts[4] == cohorts[5] == cohorts[6] == cohorts[7]


def test_without_answers_or_losses_cohorts_are_uniform():
    selector, counts = FedCor(1, warmup=1, interval=2), np.zeros(4)
    for number in range(1, 401):
        answers = answers_of(np.arange(4)) if number % 2 else None
        counts[selector.select(view_of(4, round=number, answers=answers), rng(number)).client] += 1
    assert counts.sum() == 400
    assert counts.min() > 60, "100 each, with a standard deviation of 8.7"


def test_an_answer_that_is_missing_leaves_no_sample_of_its_client():
    selector = FedCor(1, warmup=2)
    for number, client, loss in ((1, [0, 1, 2], [3.0, 3.0, np.inf]), (2, [1, 2], [2.0, 1.0])):
        selector.select(view_of(3, round=number, answers=answers_of(client, loss=loss)), rng(number))
    (client, change) = selector._process._samples[1]
    assert (client.tolist(), change.tolist()) == ([1], [-1.0])


@pytest.mark.parametrize(("weights", "expected"), [("equal", [0.5, 0.5]), ("samples", None)])
def test_weights(weights, expected):
    cohort = FedCor(2, weights=weights).select(view_of(4), rng())
    assert (None if cohort.weights is None else cohort.weights.tolist()) == expected
