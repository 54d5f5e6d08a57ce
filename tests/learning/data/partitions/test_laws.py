"""Laws of every division: no sample twice, exact sums, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.capabilities import USERS
from fedsim.errors import ScenarioError
from fedsim.learning import Digits, DirichletPartition, EqualPartition, QuantitySkewPartition
from fedsim.learning.data.partitions.by_label import LabelLimitedPartition, ShardsPartition
from fedsim.learning.data.partitions.contracts import assigned
from fedsim.learning.data.partitions.natural import NaturalPartition
from fedsim.learning.data.partitions.sizes import LogNormalPartition, ZipfPartition
from fedsim.streams import Streams

FULL = EqualPartition | DirichletPartition | QuantitySkewPartition
"""Divisions that leave no client without samples where there are 12 for each."""
ANY = st.one_of(
    st.just(EqualPartition()),
    st.builds(
        DirichletPartition,
        alpha=st.sampled_from([1e-4, 0.3, 5.0]),
        per=st.sampled_from(["class", "client"]),
        rounding=st.sampled_from(["unbiased", "cumulative"]),
        min_samples=st.integers(1, 3),
    ),
    st.builds(QuantitySkewPartition, concentration=st.sampled_from([0.1, 2.0, 50.0])),
    st.builds(ShardsPartition, shards=st.integers(1, 4)),
    st.builds(LogNormalPartition, sigma=st.sampled_from([0.0, 1.0, 4.0, 50.0]), min_samples=st.integers(0, 3)),
    st.builds(
        LogNormalPartition, sigma=st.sampled_from([0.0, 2.5, 50.0]), mean_samples=st.sampled_from([0.5, 2.0, 40.0])
    ),
    st.builds(ZipfPartition, exponent=st.sampled_from([0.0, 1.0, 1.95, 20.0]), min_samples=st.integers(0, 3)),
    st.builds(
        LabelLimitedPartition,
        share=st.sampled_from([0.1, 0.4, 1.0]),
        law=st.sampled_from(["balanced", "uniform", "zipf"]),
    ),
    st.builds(NaturalPartition, choose=st.sampled_from(["random", "largest", "first"]), min_samples=st.integers(1, 9)),
)


@given(split=ANY, clients=st.integers(1, 20), per_client=st.integers(4, 40), seed=st.integers(0, 2**32))
def test_no_sample_has_two_clients_and_sums_are_exact(split, clients, per_client, seed):
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 4, clients * per_client)
    users = (draws.integers(0, clients + 3, labels.size),) if USERS in split.requires else ()
    parts = split.assign(labels, 4, clients, Streams(seed), *users)
    dealt = np.concatenate(parts)
    assert len(parts) == clients
    assert all(part.dtype == np.int64 for part in parts)
    assert np.unique(dealt).size == dealt.size
    assert np.isin(dealt, np.arange(labels.size)).all()
    if isinstance(split, FULL) and per_client >= 12:
        assert all(part.size >= getattr(split, "min_samples", 1) for part in parts)
    whole = isinstance(split, ShardsPartition | ZipfPartition) or getattr(split, "mean_samples", 1) is None
    if whole or getattr(split, "per", "") == "class":
        assert np.sort(dealt).tolist() == list(range(labels.size))
    if isinstance(split, EqualPartition) or getattr(split, "per", "") == "client":
        assert dealt.size == labels.size // clients * clients
    again, other = (split.assign(labels, 4, clients, Streams(seed + more), *users) for more in (0, 1))
    assert all(np.array_equal(one, two) for one, two in zip(parts, again, strict=True))
    assert len(other) == clients


def test_a_division_by_users_needs_them():
    with pytest.raises(
        ScenarioError, match=r"learning.split: it divides by users, and the data set that was read tell"
    ):
        assigned(NaturalPartition(), Digits().load(), 4, Streams(0))
    with pytest.raises(ScenarioError, match="'natural' divides by users"):
        NaturalPartition().assign(np.zeros(6, np.int64), 1, 2, Streams(0))
