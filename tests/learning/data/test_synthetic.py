"""FedProx's Synthetic(a, b) by its laws."""

import numpy as np
import pytest

from fedsim.learning.data.synthetic import Synthetic


def test_a_user_alone_labels_by_a_linear_rule_and_features_have_the_variances_of_the_law():
    # With one user: x = v + e, where e_j has the variance j^-1.2. 20 users pool 9,000 samples and more.
    data = Synthetic(users=20, features=6, classes=3).load()
    within = np.concatenate(
        [data.train_x[data.train_users == k] - data.train_x[data.train_users == k].mean(axis=0) for k in range(20)]
    )
    np.testing.assert_allclose(within.var(axis=0) * np.arange(1, 7) ** 1.2, 1.0, atol=0.08)


def test_b_spreads_what_users_see():
    """With b = 0 the mean of a user's features has the law N(0, 1) in each entry; with b = 100 one shift for all."""
    few, many = (Synthetic(users=30, a=0.0, b=b).load() for b in (0.0, 100.0))
    spread = [np.std([data.train_x[data.train_users == k].mean() for k in range(30)]) for data in (few, many)]
    assert spread[0] < 0.3
    assert spread[1] > 50


def test_no_label_depends_on_a():
    """The same number is added to the score of each class; float32 features, so ties are no matter."""
    one, other = (Synthetic(users=10, a=a).load() for a in (0.0, 100.0))
    assert one.digest != Synthetic(users=10, a=0.0, seed=1).load().digest
    np.testing.assert_array_equal(one.train_x, other.train_x)
    np.testing.assert_array_equal(one.train_y, other.train_y)


def test_logarithms_of_sizes_have_the_mean_4_and_the_deviation_2():
    """Of 400 users: a quantile of normal numbers one deviation from their mean has an error of 0.075 deviations."""
    counts = np.bincount(Synthetic(users=400, features=1, classes=2, seed=3).load().train_users)
    assert counts.min() >= 45  # at least 50 samples, of which int(0.9 n) are for training
    low, middle, high = np.quantile(np.log(np.maximum(counts / 0.9 - 50, 1)), [0.5 - 0.3413, 0.5, 0.5 + 0.3413])
    assert middle == pytest.approx(4, abs=0.5)
    assert (high - low) / 2 == pytest.approx(2, abs=0.45)  # four errors of 0.15 / sqrt(2)


def test_labels_have_biases():
    """Of one feature and two classes, a label without biases depends on the sign of the sample alone."""
    data = Synthetic(users=200, features=1, classes=2, seed=5, b=0.0).load()
    broken = 0
    for user in range(200):
        x, y = data.train_x[data.train_users == user][:, 0], data.train_y[data.train_users == user]
        broken += any(np.unique(y[side]).size > 1 for side in (x > 0, x < 0))
    assert broken > 100
