"""Scaling of features, kernels by hand, and the basis against whole kernel matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from fedsim.selectors.fedsuv.features import Basis, Scaler, median_distance

COLUMNS = hnp.arrays(float, st.integers(2, 12), elements=st.integers(-50, 50).map(float))


def test_ranks_and_ranges_by_hand():
    scaler = Scaler(np.array([[10.0], [30.0], [30.0], [1e9]]), "rank")
    # One value below 30 and three up to it: (1 + 3) / 2 of 4.
    np.testing.assert_allclose(scaler.scale(np.array([[10.0], [30.0], [1e9]])), [[0.125], [0.5], [0.875]])
    # Newcomers lie between or at the ends.
    np.testing.assert_allclose(scaler.scale(np.array([[20.0], [-5.0], [1e12]])), [[0.3125], [0.125], [0.875]])
    scaler = Scaler(np.array([[2.0, 7.0], [4.0, 7.0], [10.0, 7.0]]), "range")
    np.testing.assert_allclose(
        scaler.scale(np.array([[4.0, 7.0], [0.0, 9.0], [20.0, 7.0]])), [[0.25, 0.5], [0, 0.5], [1, 0.5]]
    )


@given(COLUMNS)
def test_ranks_depend_on_order_only(column):
    features = column[:, None]
    bent = np.exp(features / 10)
    np.testing.assert_allclose(
        Scaler(features, "rank").scale(features), Scaler(bent, "rank").scale(bent), atol=1e-12, rtol=0
    )


@given(hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.floats(-1e6, 1e6)))
def test_regressors_are_centred_with_a_constant_and_no_longer_than_one(features):
    scaler = Scaler(features, "rank")
    rows = scaler.regressors(scaler.scale(features))
    assert rows.shape == (len(features), features.shape[1] + 1)
    np.testing.assert_allclose(rows[:, -1], 1 / math.sqrt(features.shape[1] + 1))
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12


def test_median_distance_by_hand():
    assert median_distance(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])) == pytest.approx(math.sqrt(18))
    assert median_distance(np.zeros((5, 2))) == 1.0
    assert median_distance(np.zeros((1, 2))) == 1.0


def test_a_small_basis_keeps_variances_and_says_what_it_leaves_out():
    points = np.random.default_rng(2).random((200, 4))
    basis = Basis(points, "rbf", 0.5, 20, 0.0)
    coordinates, remainder = basis.place(points)
    assert coordinates.shape == (200, 20)
    np.testing.assert_allclose(np.sum(coordinates**2, axis=1) + remainder, 1.0, atol=1e-12)
    assert np.count_nonzero(remainder < 1e-9) == 20  # the basis points themselves
    gap = basis.covariance(points, points) - coordinates @ coordinates.T
    assert np.linalg.eigvalsh(gap).min() > -1e-9


def test_points_are_taken_until_the_tolerance_is_met():
    points = np.random.default_rng(3).random((300, 2))
    loose, tight = (Basis(points, "rbf", 0.5, 300, tolerance) for tolerance in (1e-2, 1e-6))
    assert loose.size < tight.size < 100
    assert loose.place(points)[1].max() <= 1e-2
    assert tight.place(points)[1].max() <= 1.1e-6


def test_equal_clients_need_one_point():
    points = np.full((9, 2), 0.5)
    basis = Basis(points, "rbf", 1.0, 9, 1e-9)
    coordinates, remainder = basis.place(points)
    assert basis.size == 1
    np.testing.assert_allclose(coordinates, 1.0)
    np.testing.assert_allclose(remainder, 0.0)


def test_rows_of_the_linear_model_by_hand():
    """Centred, with a constant, over the root of their length; without scaling as they are."""
    scaled = np.array([[0.0, 0.5], [1.0, 0.25]])
    expected = np.array([[-1.0, 0.0, 1.0], [1.0, -0.5, 1.0]]) / np.sqrt(3)
    np.testing.assert_allclose(Scaler(scaled, "range").regressors(scaled), expected)
    features = np.array([[-3.0, 200.0]])
    assert Scaler(features, "none").scale(features).tolist() == features.tolist()
    assert Scaler(features, "none").regressors(features).tolist() == features.tolist()
