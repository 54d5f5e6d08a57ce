"""Randomised response keeps its epsilon exactly, and its estimate is right on average."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors import RandomizedResponse

PAPER = RandomizedResponse.of_epsilon(300, 3.0)
GRID = 2000


def by_enumeration(response, size):
    """Return how often a client of a size gives each answer, over a grid of the two numbers that decide it."""
    middle = (np.arange(GRID) + 0.5) / GRID
    truthful, drawn = (values.ravel() for values in np.meshgrid(middle, middle[:: GRID // 200]))
    answers = response.answers(np.full(truthful.size, size), truthful, drawn)
    values, counts = np.unique(answers, return_counts=True)
    return dict(zip(values.tolist(), (counts / truthful.size).tolist(), strict=True))


def test_the_papers_numbers():
    """Equation 21 by hand: (e^3 - 1) / (e^3 + 298) = 19.0855 / 318.0855; the published code's 1/2 means e^eps = M."""
    assert PAPER.alpha == pytest.approx(19.085537 / 318.085537, rel=1e-7)
    assert RandomizedResponse(300, 0.5).epsilon == pytest.approx(math.log(300))
    assert RandomizedResponse(11, 0.35, clips=False).epsilon == math.inf
    assert RandomizedResponse(11, 1.0).epsilon == math.inf
    assert RandomizedResponse(11, 0.35, clips=False).probability(70, 70) == 0.35
    assert RandomizedResponse(1000, 1.0).estimate(np.array([3, 999, 4])) == 1006
    assert PAPER.estimate(np.array([1, 1, 1])) == 3.0


@given(st.integers(2, 400), st.floats(1e-3, 10))
def test_no_pair_of_sizes_and_no_answer_is_told_apart_by_more_than_epsilon(threshold, epsilon):
    """Lemma 3.2: the true size gives an answer e^epsilon times as often as any other, and none does more often."""
    response = RandomizedResponse.of_epsilon(threshold, epsilon)
    sizes = [1, threshold // 2 or 1, threshold - 1, threshold, 10 * threshold]
    answers = {1, max(threshold // 2, 1), threshold - 1}
    ratios = [
        response.probability(answer, one) / response.probability(answer, other)
        for answer, one, other in itertools.product(answers, sizes, sizes)
    ]
    assert max(ratios) == pytest.approx(math.exp(epsilon) if threshold > 2 else 1.0)
    for size in sizes:
        every = [response.probability(answer, size) for answer in range(1, threshold)]
        assert math.fsum(every) == pytest.approx(1.0)
    assert response.epsilon == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("size", "clips"), [(0, True), (0, False), (1, True), (4, True), (11, True), (70, True), (70, False)]
)
def test_answers_are_as_probable_as_is_said(size, clips):
    response = RandomizedResponse(11, 0.35, clips)
    found = by_enumeration(response, size)
    assert set(found) <= {*range(1, 11), *([] if clips else [max(size, 1)])}
    assert sum(response.probability(answer, size) for answer in {*range(1, 11), *found}) == pytest.approx(1.0)
    for answer, share in found.items():
        assert share == pytest.approx(response.probability(answer, size), abs=1e-9)


@pytest.mark.parametrize("alpha", [0.06, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("sizes", [(1,), (4,), (7,), (2, 7), (1, 1), (3, 7, 5), (1, 2, 1)])
def test_the_estimate_is_the_number_of_samples_on_average(sizes, alpha):
    """Equations 2 and 5 to 7, M = 8: the mean over all answers of one to three clients, by their probabilities.

    With them are 60 clients of M / 2 samples. Their mean answer is M / 2, whatever alpha is, and that is what they
    answer here, so that no estimate reaches the floor, which is not right on average.
    """
    response, others = RandomizedResponse(8, alpha), 60
    of_client = [{answer: (1 - alpha) / 7 + alpha * (answer == size) for answer in range(1, 8)} for size in sizes]
    mean = total = 0.0
    for answers in itertools.product(range(1, 8), repeat=len(sizes)):
        estimate = response.estimate(np.array([*answers, *[4] * others]))
        assert estimate > len(sizes) + others, "above the floor"
        chance = math.prod(one[answer] for one, answer in zip(of_client, answers, strict=True))
        mean, total = mean + chance * estimate, total + chance
    assert total == pytest.approx(1.0)
    assert mean == pytest.approx(sum(sizes) + 4 * others, rel=1e-12)
