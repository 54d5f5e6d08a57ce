"""The fit of length scale and noise: densities of SciPy and scikit-learn, and numbers that a sample was drawn with."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from fedsim.selectors import FedSuv
from fedsim.selectors.fedsuv.features import covariance
from fedsim.selectors.fedsuv.utility import likeliest, log_likelihood
from tests.support.views import measured_reports_of, rng, view_of


def pooled(clients, seen, values):
    """Return count, sum and sum of squares of each client."""
    return np.bincount(seen, minlength=clients), *(np.bincount(seen, values**power, clients) for power in (1, 2))


def sample(clients, tries, length_scale, noise, seed, level=0.0):
    """Return points, the clients observed and the values, drawn from a process with this kernel."""
    draw = np.random.default_rng(seed)
    points = draw.random((clients, 2))
    prior = level**2 + 0.25 * covariance("rbf", length_scale, points, points) + 1e-10 * np.eye(clients)
    truth = np.linalg.cholesky(prior) @ draw.standard_normal(clients)
    seen = np.repeat(np.arange(clients), tries)
    return points, seen, truth[seen] + noise * draw.standard_normal(seen.size)


def test_the_pooled_density_is_that_of_every_observation_by_itself():
    points, seen, values = sample(7, 3, 0.4, 0.3, seed=2)
    seen, values = seen[:-2], values[:-2]  # the last client has one observation
    count, total, square = pooled(7, seen, values)
    within = square - total**2 / count
    prior = covariance("rbf", 0.3, points, points)
    ours = log_likelihood(prior, 0.2, count, total / count, within)
    each = multivariate_normal(cov=prior[np.ix_(seen, seen)] + 0.04 * np.eye(seen.size))
    assert ours == pytest.approx(each.logpdf(values))
    library = GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.04), alpha=0.0, optimizer=None)
    assert ours == pytest.approx(library.fit(points[seen], values).log_marginal_likelihood())


def test_a_prior_that_is_no_covariance_is_the_least_likely():
    one = np.ones(2)
    assert log_likelihood(np.array([[0.0, 2.0], [2.0, 0.0]]), 0.1, one, one, 0 * one) == -np.inf


@pytest.mark.statistical
@pytest.mark.parametrize(("length_scale", "noise"), [(0.15, 0.1), (0.15, 0.5), (0.4, 0.2)])
def test_a_sample_tells_what_it_was_drawn_with(length_scale, noise):
    """Medians of nine samples: within a third of the length scale and a tenth of the noise, whatever the level."""
    found = []
    for seed in range(9):
        points, seen, values = sample(100, 4, length_scale, noise, seed, level=1.0)
        found.append(likeliest(points, "rbf", *pooled(100, seen, values)))
    np.testing.assert_allclose(np.median(found, axis=0) / [length_scale, noise], 1.0, atol=0.34)
    assert np.median(found, axis=0)[1] == pytest.approx(noise, rel=0.1)


def test_features_that_tell_nothing_do_not_carry_over():
    """Utilities are drawn for each client alone: the fitted process moves clients never tried less than a set one."""
    draw, clients = np.random.default_rng(3), 60
    features, truth = draw.random((clients, 3)), draw.random(clients)

    def moved(**options):
        selector = FedSuv(6, utility_scale=1.0, keep=clients, rho=0.0, **options)
        selector.select(view_of(clients, features=features), rng())
        for number in range(1, 11):
            client = np.arange(6 * (number - 1), 6 * number) % 48
            heard = truth[client] + 0.3 * draw.standard_normal(6)
            selector.observe(measured_reports_of(client, True, np.maximum(heard, 0.0), number=number))
        selector.select(view_of(clients, round=12, features=features), rng())
        new = selector.rectangle(np.arange(48, clients))
        return np.mean(new.utility_high - new.utility_low)

    assert moved() > 1.3 * moved(fit="none")


def test_a_crowd_without_features_has_no_fit():
    selector = FedSuv(2)
    for number in range(1, 20):
        client = selector.select(view_of(5, round=number), rng(number)).client
        selector.observe(measured_reports_of(client, True, 1.0, number=number))
    assert selector._beliefs._process.noise == 0.1
