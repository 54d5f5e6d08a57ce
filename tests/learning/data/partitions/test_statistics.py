"""Numbers about a division, by hand."""

import numpy as np
import pytest

from fedsim.learning import Digits, EqualPartition
from fedsim.learning.data.partitions.statistics import Division, division_of
from fedsim.streams import Streams


def test_by_hand():
    """Sizes 6, 0 and 2: mean difference of pairs (6 + 4 + 2) / 3 = 4, over twice the mean 8/3, times (K - 1) / K."""
    division = Division(np.array([[3, 3], [0, 0], [2, 0]]), 10)
    assert division.sizes.tolist() == [6, 0, 2]
    assert division.gini == pytest.approx(4 / (2 * 8 / 3) * 2 / 3)
    assert division.labels_held.tolist() == [2, 1]
    # All have shares 5/8 and 3/8; the clients 1/2 and 1/2, and 1 and 0.
    assert division.distances.tolist() == [1 / 8, 3 / 8]
    facts = division.facts()
    assert facts["clients"] == "3, 1 of them without samples"
    assert facts["samples in use"] == "8 of 10"
    assert facts["samples of a client"] == "0 to 6, median 2, mean 2.667"


def test_equal_and_empty_divisions():
    equal = division_of(Digits(train_limit=100), EqualPartition(), 8, Streams(0))
    assert (equal.sizes.tolist(), equal.samples, equal.gini) == ([12] * 8, 100, 0.0)
    empty = Division(np.zeros((2, 3), dtype=np.int64), 5)
    assert (empty.gini, empty.distances.size) == (0.0, 0)
    assert "labels of a client" not in empty.facts()
    one = Division(np.array([[0], [7]]), 7)
    assert one.gini == 0.5
