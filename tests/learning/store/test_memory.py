"""A store in memory: records for ever, arrays up to a limit."""

import numpy as np
import pytest

from fedsim.learning.store.memory import MemoryStore


def floats(count, start=0):
    return {"model": np.arange(start, start + count, dtype=np.float32)}


def test_records_are_found_and_counted():
    store = MemoryStore()
    store.put_records({"a": {"loss": 0.5, "worst": float("nan")}, "b": {}})
    found = store.records(["b", "c", "a"])
    assert set(found) == {"a", "b"}
    assert found["a"]["loss"] == 0.5
    assert np.isnan(found["a"]["worst"])
    assert found["b"] == {}
    assert (store.hits, store.misses) == (2, 1)


def test_arrays_used_longest_ago_go_first():
    store = MemoryStore(limit_bytes=3 * 40 + 39)
    for digest in "abc":
        store.put_arrays(digest, floats(10))
    assert store.arrays("a") is not None
    store.put_arrays("d", floats(10))
    assert [digest for digest in "abcd" if store.arrays(digest) is not None] == ["a", "c", "d"]
    assert store.array_bytes == 120
    store.put_arrays("c", floats(10))
    assert store.array_bytes == 120
    store.remove_arrays("c")
    store.remove_arrays("nothing")
    assert store.arrays("c") is None
    assert store.array_bytes == 80


def test_no_room_for_arrays_leaves_room_for_records():
    store = MemoryStore(limit_bytes=0)
    store.put_arrays("a", floats(1))
    store.put_records({"a": {"loss": 1.0}})
    assert store.arrays("a") is None
    assert store.records(["a"]) == {"a": {"loss": 1.0}}


def test_kept_arrays_cannot_change():
    store = MemoryStore()
    given = floats(4)
    store.put_arrays("a", given)
    given["model"][0] = 9
    kept = store.arrays("a")["model"]
    assert kept.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 9


def test_limit_is_checked():
    with pytest.raises(ValueError, match="limit_bytes: -1 is not allowed"):
        MemoryStore(limit_bytes=-1)
