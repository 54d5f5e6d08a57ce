"""Validity and utility against numbers worked by hand, dense linear algebra and scikit-learn."""

import tracemalloc

import numpy as np
from hypothesis import given, strategies as st

from fedsim.selectors.fedsuv.features import Basis
from fedsim.selectors.fedsuv.utility import UtilityProcess


def at(points, basis, noise):
    process = UtilityProcess(len(points), basis.size, noise)
    process.place(np.arange(len(points)), *basis.place(points))
    return process


def alike(one, other, clients):
    for left, right in zip(one.posterior(np.arange(clients)), other.posterior(np.arange(clients)), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)


def observations(clients, rounds, seed):
    rng = np.random.default_rng(seed)
    return [(rng.choice(clients, 3, replace=False), rng.standard_normal(3)) for _ in range(rounds)]


@given(st.integers(0, 25), st.sampled_from([0, 1, 4, 12]), st.integers(0, 2**20))
def test_the_posterior_is_that_of_every_observation_by_itself(rounds, points_in_basis, seed):
    """The oracle conditions on single, repeated observations under phi phi' + r, without pooling or updating."""
    points = np.random.default_rng(seed).random((12, 2))
    basis, noise = Basis(points, "matern52", 0.4, points_in_basis, 0.0), 0.2
    coordinates, remainder = basis.place(points)
    prior = coordinates @ coordinates.T + np.diag(remainder)
    process = at(points, basis, noise)
    seen, values = [], []
    for client, value in observations(12, rounds, seed):
        process.observe(client, value)
        seen.extend(client)
        values.extend(value)
    across = prior[:, seen]
    within = prior[np.ix_(seen, seen)] + noise**2 * np.eye(len(seen))
    mean, deviation = process.posterior(np.arange(12))
    np.testing.assert_allclose(mean, across @ np.linalg.solve(within, np.array(values)), atol=1e-8)
    variance = np.diag(prior) - np.sum(across.T * np.linalg.solve(within, across.T), axis=0)
    np.testing.assert_allclose(deviation**2, variance, atol=1e-8)
    joint = prior - across @ np.linalg.solve(within, across.T)
    ours = np.stack([process.covariances(client, np.arange(12)) for client in range(12)])
    np.testing.assert_allclose(ours, joint, atol=1e-8)


def test_updates_do_not_drift_from_what_is_learned_at_once():
    points = np.random.default_rng(7).random((60, 3))
    basis = Basis(points, "rbf", 0.6, 40, 0.0)
    step_by_step, at_once = at(points, basis, 0.1), at(points, basis, 0.1)
    for client, value in observations(60, 2000, seed=8):
        step_by_step.observe(client, value)
    at_once.observe_pooled(step_by_step.count, step_by_step.total, step_by_step.square)
    alike(step_by_step, at_once, 60)


def test_a_crowd_heard_at_once_needs_no_matrix_of_its_number_squared():
    """30,000 clients squared would be 7 GB; the coordinates are 15 MB."""
    points = np.random.default_rng(13).random((30_000, 2))
    process = at(points, Basis(points, "rbf", 0.5, 64, 0.0), 0.1)
    tracemalloc.start()
    process.observe(np.arange(30_000), np.ones(30_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_clients_met_later_are_told_by_those_observed_before():
    points = np.random.default_rng(9).random((20, 2))
    basis = Basis(points, "rbf", 0.5, 20, 1e-9)
    together, later = at(points, basis, 0.2), UtilityProcess(20, basis.size, 0.2)
    later.place(np.arange(10), *basis.place(points[:10]))
    for client, value in observations(10, 15, seed=10):
        together.observe(client, value)
        later.observe(client, value)
    later.place(np.arange(10, 20), *basis.place(points[10:]))
    alike(together, later, 20)
