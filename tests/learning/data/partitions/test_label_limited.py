"""REFL's label-limited division."""

import numpy as np
import pytest
from scipy.special import zeta

from fedsim.learning.data.partitions.by_label import LabelLimitedPartition
from fedsim.streams import Streams

LABELS = np.arange(5000) % 10


def table(split, clients, seed=0):
    """Return the samples of each client with each label, shape (K, 10)."""
    parts = split.assign(LABELS, 10, clients, Streams(seed))
    return np.array([np.bincount(LABELS[part], minlength=10) for part in parts])


@pytest.mark.parametrize("law", ["balanced", "uniform", "zipf"])
def test_each_client_has_the_share_of_labels_and_each_held_label_is_used_up(law):
    found = table(LabelLimitedPartition(share=0.4, law=law), 30)
    assert ((found > 0).sum(axis=1) <= 4).all()
    assert found.sum(axis=0).tolist() == [500] * 10
    if law == "balanced":
        assert ((found > 0).sum(axis=1) == 4).all()
        for label in range(10):
            held = found[:, label][found[:, label] > 0]
            assert held.max() - held.min() <= 1


def test_a_share_below_one_label_is_one_label_and_labels_without_a_client_are_left_over():
    found = table(LabelLimitedPartition(share=0.01), 4)
    assert ((found > 0).sum(axis=1) == 1).all()
    assert set(found.sum(axis=0)) == {0, 500}


@pytest.mark.statistical
def test_weights_follow_their_laws():
    """Two clients hold all labels: a share u / (u + v) has the mean 1/2, and Zipf weights are equal now and then."""
    shares = np.array([table(LabelLimitedPartition(share=1.0, law="uniform"), 2, seed)[0] / 500 for seed in range(40)])
    assert abs(shares.mean() - 0.5) < 4 * shares.std() / np.sqrt(shares.size) + 1 / 500
    # u / (u + v) is at most 1/3 where v is at least 2 u: a quarter of the square.
    below = (shares < 1 / 3 - 1 / 500).mean()
    assert abs(below - 0.25) < 4 * np.sqrt(0.25 * 0.75 / shares.size) + 0.01
    both = np.array([table(LabelLimitedPartition(share=1.0, law="zipf"), 2, seed)[0] for seed in range(40)]) == 250
    # Equal weights, sum of p_i^2 with p_i = i^-a / zeta(a): zeta(2 a) / zeta(a)^2.
    expected = float(zeta(2 * 1.95) / zeta(1.95) ** 2)
    assert abs(both.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / both.size)


@pytest.mark.statistical
def test_sizes_of_balanced_labels_do_not_depend_on_the_number_of_the_client():
    """FedSUV's division; a correlation of K independent pairs has a standard error of 1 / sqrt(K)."""
    clients, labels = 3500, np.arange(50_000) % 10
    for seed in range(3):
        parts = LabelLimitedPartition(share=0.4).assign(labels, 10, clients, Streams(seed))
        found = np.corrcoef(np.arange(clients), [part.size for part in parts])[0, 1]
        assert abs(found) < 4 / np.sqrt(clients)
