"""Sizes that are asked for, and log-normal and Zipf ones against their closed forms."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.learning.data.partitions.by_label import LabelLimitedPartition
from fedsim.learning.data.partitions.contracts import PARTITIONS
from fedsim.learning.data.partitions.sizes import LogNormalPartition, ZipfPartition
from fedsim.streams import Streams

LABELS = np.arange(100) % 10


def assigned(samples, clients=3, seed=1):
    return PARTITIONS.make({"kind": "sizes", "samples": samples}).assign(LABELS, 10, clients, Streams(seed))


@pytest.mark.parametrize(("samples", "sizes"), [(20, [20, 20, 20]), ([5, 60, 35], [5, 60, 35]), ([1, 2, 3], [1, 2, 3])])
def test_clients_have_the_sizes_and_no_sample_twice(samples, sizes):
    parts = assigned(samples)
    assert [part.size for part in parts] == sizes
    together = np.concatenate(parts)
    assert np.unique(together).size == sum(sizes)
    assert set(together) <= set(range(100))


def test_sizes_follow_a_law_and_the_samples_are_shuffled():
    parts = assigned({"kind": "uniform", "least": 1.0, "greatest": 9.0}, clients=10)
    assert {part.size for part in parts} <= set(range(1, 10))
    assert len({part.size for part in parts}) > 2
    assert not np.array_equal(np.concatenate(parts), np.sort(np.concatenate(parts)))
    again = assigned({"kind": "uniform", "least": 1.0, "greatest": 9.0}, clients=10)
    assert all(np.array_equal(*both) for both in zip(parts, again, strict=True))


def test_more_samples_than_there_are_are_refused():
    with pytest.raises(
        ScenarioError, match=r"learning\.split\.samples: 102 samples for 3 clients are not allowed; .* 100"
    ):
        assigned(34)
    with pytest.raises(ScenarioError, match="a list of 2 values"):
        assigned([1, 2])


STANDARD_ERRORS = 4.0


def sizes(split, samples, clients, seed=0):
    return np.array([part.size for part in split.assign(np.zeros(samples, np.int64), 1, clients, Streams(seed))])


def test_zipf_sizes_are_the_law_itself():
    """Of 1,100 samples by 1, 1/2, 1/3 (sum 11/6): 600, 300 and 200."""
    assert sorted(sizes(ZipfPartition(), 1100, 3)) == [200, 300, 600]
    assert sorted(sizes(ZipfPartition(exponent=2.0), 490, 3)) == [40, 90, 360]  # 36, 9, 4 of 49
    assert sorted(sizes(ZipfPartition(exponent=0.0), 100, 7)) == [14, 14, 14, 14, 14, 15, 15]
    # The third would have 100 / 83 of a sample by 1, 1/8, 1/27; the floor comes from the others.
    assert sorted(sizes(ZipfPartition(exponent=3.0, min_samples=10), 100, 3)) == [10, 10, 80]
    ranks = [int(sizes(ZipfPartition(), 1100, 3, seed).argmax()) for seed in range(40)]
    assert set(ranks) == {0, 1, 2}


@pytest.mark.parametrize("split", [ZipfPartition, LabelLimitedPartition])
def test_exponents_have_one_bound(split):
    assert split(exponent=20.0).exponent == 20.0
    with pytest.raises(ValidationError, match="less than or equal to 20"):
        split(exponent=20.5)


@pytest.mark.statistical
def test_log_normal_sizes_have_the_spread_that_is_asked_for():
    """The standard deviation of the logarithm of a size is sigma; of n values its error is sigma / sqrt(2 n)."""
    clients, sigma = 400, 1.0
    found = np.log(sizes(LogNormalPartition(sigma=sigma), 10**6, clients))
    assert abs(found.std(ddof=1) - sigma) < STANDARD_ERRORS * sigma / math.sqrt(2 * clients)
    # All sizes are about 2,500, so that rounding them does not show.
    assert sizes(LogNormalPartition(sigma=0.0), 1000, 8).tolist() == [125] * 8


def test_sizes_with_a_mean_are_those_of_the_code_of_fedsampling():
    clients, sigma, mean = 50, 2.5, 2.0
    ratios = np.exp(sigma * Streams(3).generator("split").standard_normal(clients))
    expected = [math.ceil(mean * ratio / np.mean(np.ceil(ratios))) for ratio in ratios]
    split = LogNormalPartition(sigma=sigma, mean_samples=mean)
    assert sizes(split, 10**5, clients, 3).tolist() == expected
    # The data end: the client at the end has the rest, those after it have none.
    cut = sizes(split, 30, clients, 3)
    last = int(np.flatnonzero(np.cumsum(expected) >= 30)[0])
    assert cut.tolist() == [*expected[:last], 30 - sum(expected[:last]), *[0] * (clients - last - 1)]


@pytest.mark.parametrize("split", [ZipfPartition(exponent=0.0), LogNormalPartition(sigma=0.0)])
def test_samples_of_a_remainder_go_to_any_client(split):
    """Of 11 samples for 4 clients one has 2, the others 3. In 80 draws one of 4 is missing once in 10^9."""
    short = {int(sizes(split, 11, 4, seed).argmin()) for seed in range(80)}
    assert short == {0, 1, 2, 3}
