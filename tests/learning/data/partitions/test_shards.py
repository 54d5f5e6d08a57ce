"""McMahan's shards, by hand."""

import numpy as np

from fedsim.learning.data.partitions.by_label import ShardsPartition
from fedsim.streams import Streams


def test_two_shards_of_300_have_at_most_two_labels_where_shards_divide_labels():
    """MNIST's case at a tenth: 6,000 samples, 20 clients, 40 shards of 150, four shards for each label."""
    labels = np.random.default_rng(0).permutation(np.arange(6000) % 10)
    parts = ShardsPartition().assign(labels, 10, 20, Streams(0))
    assert {part.size for part in parts} == {300}
    assert max(np.unique(labels[part]).size for part in parts) == 2
    assert np.sort(np.concatenate(parts)).tolist() == list(range(6000))


def test_shards_are_empty_where_there_are_more_than_samples():
    """Each shard has one sample or none, and clients without one are left empty."""
    parts = ShardsPartition(shards=2).assign(np.zeros(7, np.int64), 1, 30, Streams(0))
    assert np.sort(np.concatenate(parts)).tolist() == list(range(7))
    assert (min(map(len, parts)), max(map(len, parts)) <= 2) == (0, True)
    # What does not divide evenly is used too.
    parts = ShardsPartition(shards=3).assign(np.zeros(20, np.int64), 1, 2, Streams(0))
    assert sorted(part.size for part in parts) in ([9, 11], [10, 10])
