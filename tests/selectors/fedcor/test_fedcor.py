"""FedCor: when it asks, when it draws, and what annealing does."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fedsim.selectors.fedcor.fedcor import FedCor, LossProcess
from tests.support.views import answers_of, rng, view_of


@pytest.mark.parametrize(("dimension", "rounds"), [(2, 12), (5, 4)])
def test_no_points_have_a_higher_likelihood(dimension, rounds):
    """The log likelihood of weighted samples, by SciPy, at points near and far from those that were fitted."""
    rng = np.random.default_rng(dimension)
    change, gamma = rng.normal(size=(rounds, 4)) @ rng.normal(size=(4, 5)), 0.8
    made = LossProcess(dimension, 0.3, 100, gamma, centred=True)
    for number, row in enumerate(change):
        made.learn(number, np.arange(5), row)
    made.fit(5)
    weight = gamma ** np.arange(rounds)[::-1]
    mean = weight @ change / weight.sum()

    def likelihood(points):
        law = multivariate_normal(mean, points @ points.T + 0.09 * np.eye(5))
        return float(weight @ law.logpdf(change))

    best = likelihood(made.points)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(30):
            assert likelihood(made.points + scale * rng.normal(size=made.points.shape)) < best


class ToTheLetter:
    """FedCor with dense covariances; options are the selector's."""

    def __init__(self, samples, options):
        self.samples, self.changes, self.covariance = samples, {}, None
        vars(self).update(options)
        self.times, self.last, self.asked_in = np.zeros(len(samples)), {}, -1

    def samples_round(self, number):
        return number <= self.warmup or (number - self.warmup) % self.interval == 0

    def hear(self, number, loss):
        """Take the losses that clients have told before a round."""
        if self.asked_in == number - 1 and number > 1 and self.samples_round(number - 1):
            change = {k: loss[k] - self.last[k] for k in loss if k in self.last}
            self.changes |= {number - 1: change} if change else {}
            self.changes = {told: one for told, one in self.changes.items() if told + self.history >= number - 1}
            if number > self.warmup:
                self.fit()
        self.last, self.asked_in = loss, number

    def fit(self):
        self.times[:] = 0
        if not self.changes:
            return
        weight = np.array([self.gamma ** (max(self.changes) - told) for told in self.changes])
        found = np.array([[one.get(k, np.nan) for k in range(len(self.samples))] for one in self.changes.values()])
        known = ~np.isnan(found)
        total = np.maximum(weight @ known, 1e-300)
        mean = weight @ np.where(known, found, 0) / total * (self.mean == "samples")
        rest = np.where(known, found - mean, 0)  # a change that is not known counts as the mean
        values, axes = np.linalg.eigh((rest * weight[:, None]).T @ rest / weight.sum())
        spread = np.maximum(values - self.noise**2, 0) * (np.arange(values.size) >= values.size - self.dimension)
        self.covariance = (axes * spread) @ axes.T
        met = known.any(axis=0)
        alone = self.noise**2 + np.where(met, 0.0, np.diag(self.covariance)[met].mean())
        self.covariance += np.diag(alone)

    def greedy(self, there, size):
        """Return the choice; the covariance given all changes before is made anew at each step."""
        share, taken = self.samples / self.samples.sum(), []
        for _ in range(size):
            left = self.covariance
            if taken:
                known = left[np.ix_(taken, taken)]
                left = left - left[:, taken] @ np.linalg.solve(known, left[taken, :])
            worth = self.beta**self.times * (share @ left) / np.sqrt(np.maximum(np.diag(left), 1e-300))
            taken.append(max((k for k in there if k not in taken), key=worth.__getitem__))
        self.times[taken] += 1
        return sorted(taken)


@pytest.mark.cases(40, 120)
def test_fedcor_to_the_letter(cases):
    compared = 0
    for case in cases:
        luck = np.random.default_rng(case)
        clients = int(luck.integers(2, 9))
        options = {"warmup": int(luck.integers(1, 4)), "interval": int(luck.integers(2, 5))}
        options |= {"beta": float(luck.choice([0.9, 0.5])), "gamma": float(luck.choice([1.0, 0.95, 0.5]))}
        options |= {"dimension": int(luck.choice([1, 2, 15])), "history": int(luck.choice([3, 100]))}
        options |= {"noise": float(luck.choice([0.01, 0.3])), "mean": str(luck.choice(["samples", "zero"]))}
        selector, samples = FedCor(int(luck.integers(1, clients + 1)), **options), luck.integers(1, 9, clients)
        letter = ToTheLetter(samples, options)
        for number in range(1, 15):
            probe = selector.probe(view_of(clients, round=number, samples=samples), rng(number))
            asked = letter.samples_round(number) or letter.samples_round(max(number - 1, 1))
            assert (probe is not None) == asked
            answers = None
            if asked:
                assert (probe.asks, probe.client.tolist()) == ("loss", list(range(clients)))
                heard = [k for k in range(clients) if number == 1 or luck.random() < 0.9]
                loss = luck.normal(2.0, 0.5, len(heard))
                answers = answers_of(heard, loss=np.where(np.arange(loss.size) == 7, np.inf, loss))
                letter.hear(number, dict(zip(heard[:7], loss[:7], strict=True)))
            there = np.arange(clients) if number == 1 else np.flatnonzero(luck.random(clients) < luck.choice([1, 0.7]))
            known = {"samples": samples[there], "answers": answers}
            client = selector.select(view_of(there, clients=clients, round=number, **known), rng(number)).client
            assert client.size == min(selector.cohort, there.size)
            if letter.covariance is not None and not letter.samples_round(number):
                assert client.tolist() == letter.greedy(there.tolist(), client.size), (case, number)
                compared += 1
    assert compared > 4 * len(cases)


def test_a_question_is_put_once_in_a_round():
    selector = FedCor(1)
    assert selector.probe(view_of(3), rng()) is not None
    assert selector.probe(view_of(3), rng()) is None, "an asynchronous server asks again in the same round"


def test_without_answers_or_losses_cohorts_are_uniform():
    selector, counts = FedCor(1, warmup=1, interval=2), np.zeros(4)
    for number in range(1, 401):
        answers = answers_of(np.arange(4)) if number % 2 else None
        counts[selector.select(view_of(4, round=number, answers=answers), rng(number)).client] += 1
    assert counts.sum() == 400
    assert counts.min() > 60, "100 each, with a standard deviation of 8.7"


@pytest.mark.parametrize(("weights", "expected"), [("equal", [0.5, 0.5]), ("samples", None)])
def test_weights(weights, expected):
    cohort = FedCor(2, weights=weights).select(view_of(4), rng())
    assert (None if cohort.weights is None else cohort.weights.tolist()) == expected
