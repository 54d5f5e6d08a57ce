"""FedCor: when it asks, when it draws, and what annealing does."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fedsim.selectors.fedcor.fedcor import FedCor, LossProcess
from tests.support.views import answers_of, rng, view_of


def process(dimension=15, noise=0.1, history=100, gamma=1.0, centred=True):
    return LossProcess(dimension, noise, history, gamma, centred=centred)


def fitted(samples, **options):
    made = process(**options)
    for number, change in enumerate(np.asarray(samples, dtype=float), start=1):
        known = np.flatnonzero(~np.isnan(change))
        made.learn(number, known, change[known])
    made.fit(np.shape(samples)[1])
    return made


def covariance(made):
    return made.points @ made.points.T + np.diag(made.own)


def test_a_fit_by_hand():
    """Changes of (1, 1) and (-1, -1): variances 2 and 0 along (1, 1) and (1, -1), less the noise of 0.01: 1.99 and 0.

    So the covariance is 1.99 / 2 everywhere, and 0.01 more on the diagonal.
    """
    np.testing.assert_allclose(covariance(fitted([[1, 1], [-1, -1]])), [[1.005, 0.995], [0.995, 1.005]], rtol=1e-12)
    # Without a mean the samples (1, 1) and (3, 3) have the mean square 5, else variances of 1 around 2.
    np.testing.assert_allclose(np.square(fitted([[1, 1], [3, 3]], centred=False).points).sum(1), [4.995] * 2)
    np.testing.assert_allclose(np.square(fitted([[1, 1], [3, 3]]).points).sum(1), [0.995] * 2, rtol=1e-12)


def test_older_samples_count_less():
    """With gamma 1/2 the weights of (0, 0) and (3, 3) are 1/3 and 2/3: mean 2, variance 4/3 + 2/3 = 2 of each."""
    found = covariance(fitted([[0, 0], [3, 3]], gamma=0.5))
    np.testing.assert_allclose(found, [[2.005, 1.995], [1.995, 2.005]], rtol=1e-12)


def test_old_samples_are_forgotten():
    made = process(history=2)
    for number in (1, 2, 4):
        made.learn(number, np.arange(2), np.array([float(number), 0.0]))
    assert sorted(made._samples) == [2, 4]
    made.learn(9, np.zeros(0, dtype=np.int64), np.zeros(0))
    assert not made._samples
    made.fit(2)
    assert not made.knows


@pytest.mark.parametrize(("dimension", "rounds"), [(2, 12), (5, 4)])
def test_no_points_have_a_higher_likelihood(dimension, rounds):
    """The log likelihood of weighted samples, by SciPy, at points near and far from those that were fitted."""
    rng = np.random.default_rng(dimension)
    change, gamma = rng.normal(size=(rounds, 4)) @ rng.normal(size=(4, 5)), 0.8
    made = fitted(change, dimension=dimension, noise=0.3, gamma=gamma)
    weight = gamma ** np.arange(rounds)[::-1]
    mean = weight @ change / weight.sum()

    def likelihood(points):
        law = multivariate_normal(mean, points @ points.T + 0.09 * np.eye(5))
        return float(weight @ law.logpdf(change))

    best = likelihood(made.points)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(30):
            assert likelihood(made.points + scale * rng.normal(size=made.points.shape)) < best


def test_clients_without_samples_have_the_mean_variance_and_no_correlation():
    made = fitted([[1, 2, np.nan], [-1, -2, np.nan]])
    found, known = covariance(made), covariance(fitted([[1, 2], [-1, -2]]))
    np.testing.assert_allclose(found[:2, :2], known, rtol=1e-12)
    assert found[2].tolist() == pytest.approx([0.0, 0.0, (known[0, 0] + known[1, 1]) / 2])


def test_a_change_that_is_not_known_counts_as_the_mean():
    some = fitted([[1, 1], [-1, np.nan], [3, 1]])
    filled = fitted([[1, 1], [-1, 1], [3, 1]])
    np.testing.assert_allclose(covariance(some), covariance(filled), atol=1e-12)


def by_inverses(made, size, share, allowed, discount):
    """Return the greedy choice; the covariance given all changes before is made anew at each step."""
    prior, taken = covariance(made), []
    for _ in range(size):
        left = prior
        if taken:
            known = prior[np.ix_(taken, taken)]
            left = prior - prior[:, taken] @ np.linalg.solve(known, prior[taken, :])
        worth = {
            k: discount[k] * sum(share[i] * left[i, k] for i in range(len(share))) / np.sqrt(left[k, k])
            for k in range(len(share))
            if allowed[k] and k not in taken
        }
        taken.append(max(worth, key=worth.get))
    return taken


@pytest.mark.parametrize("seed", range(6))
def test_the_greedy_choice_is_that_of_posterior_covariances(seed):
    rng = np.random.default_rng(seed)
    made = fitted(rng.normal(size=(9, 4)) @ rng.normal(size=(4, 12)), dimension=3)
    share, allowed = rng.dirichlet(np.ones(12)), rng.random(12) < 0.8
    discount = 0.9 ** rng.integers(0, 4, 12)
    size = int(min(6, allowed.sum()))
    assert made.greedy(size, share, allowed, discount).tolist() == by_inverses(made, size, share, allowed, discount)


def test_a_choice_by_hand():
    """Clients 0 and 1 move together, 2 alone, twice as far. Equal shares of 1/3.

    The reductions are (S_00 + S_01) / sqrt(S_00) = 2 (1 - small) and S_22 / sqrt(S_22) = 2 (1 + small): client 2, and
    with a discount of 0.9 client 0. The next is of the other group, as 0 and 1 know of each other.
    """
    made = fitted([[1, 1, 2], [-1, -1, 2], [1, 1, -2], [-1, -1, -2]])
    share, everyone = np.full(3, 1 / 3), np.ones(3, dtype=bool)
    assert made.greedy(2, share, everyone, np.ones(3)).tolist() == [2, 0]
    assert made.greedy(2, share, everyone, np.array([1, 1, 0.9])).tolist() == [0, 2]
    assert made.greedy(2, share, np.array([True, True, False]), np.ones(3)).tolist() == [0, 1]


def test_a_client_that_joins_later_can_be_chosen():
    made = fitted([[1, 1], [-1, -1]])
    share = np.array([0.1, 0.1, 0.8])
    assert made.greedy(3, share, np.ones(3, dtype=bool), np.ones(3)).tolist()[0] in (0, 1)
    assert sorted(made.greedy(3, share, np.ones(3, dtype=bool), np.ones(3)).tolist()) == [0, 1, 2]


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
