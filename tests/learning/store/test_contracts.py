"""What holds for every store: records for ever, arrays bit by bit as long as there is room."""

import functools
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as npst

from fedsim.errors import StoreError
from fedsim.learning.store.contracts import MemoryStore
from fedsim.learning.store.disk import DiskStore

DIGESTS = st.text("0123456789abcdef", min_size=1, max_size=32)
NUMBERS = st.floats(width=64) | st.integers(-(2**53), 2**53)
RECORDS = st.dictionaries(st.text(max_size=5), NUMBERS, max_size=4)
TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES += ["float16", "float32", "float64", "complex64", ">f4", ">i8"]
ARRAYS = st.dictionaries(
    st.text(max_size=5),
    npst.arrays(
        st.sampled_from(TYPES).map(np.dtype), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    ),
    max_size=3,
)
LAWS = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else DiskStore(tmp_path)


def bits(record):
    return {name: struct.pack("<d", number) for name, number in record.items()}


@LAWS
@given(batch=st.dictionaries(DIGESTS, RECORDS, max_size=5), others=st.lists(DIGESTS, max_size=5))
def test_records_come_back_bit_by_bit(store, batch, others):
    store.put_records(batch)
    found = store.records([*batch, *batch, *others])
    assert set(batch) <= set(found)
    assert {digest: bits(found[digest]) for digest in batch} == {d: bits(record) for d, record in batch.items()}
    assert [list(found[digest]) for digest in batch] == [list(record) for record in batch.values()]


@LAWS
@given(given_arrays=ARRAYS)
def test_arrays_come_back_bit_by_bit(store, given_arrays):
    store.remove_arrays("a")
    assert store.arrays("a") is None
    store.put_arrays("a", given_arrays)
    found = store.arrays("a")
    assert set(found) == set(given_arrays)
    for name, values in given_arrays.items():
        native = values.astype(values.dtype.newbyteorder("="))
        assert found[name].astype(found[name].dtype.newbyteorder("=")).tobytes() == native.tobytes()
        assert (found[name].shape, found[name].dtype.name) == (values.shape, values.dtype.name)
        assert not found[name].flags.writeable


@pytest.mark.parametrize("view", [np.s_[:, ::2], np.s_[::-1], np.s_[1]], ids=["columns", "backwards", "one row"])
def test_arrays_that_lie_otherwise_in_memory(store, view):
    table = np.asfortranarray(np.arange(12.0).reshape(3, 4))[view]
    store.put_arrays("a", {"table": table})
    np.testing.assert_array_equal(store.arrays("a")["table"], table)


def test_nothing_is_known_of_other_digests(store):
    store.put_records({"a": {"loss": 1.0}})
    store.put_arrays("b", {"model": np.zeros(3)})
    assert store.records(["b", "A"]) == {}
    assert store.arrays("a") is None
    assert store.records([]) == {}
    store.put_records({})


def test_many_records_at_once(store):
    batch = {f"{number:032x}": {"number": float(number)} for number in range(1700)}
    store.put_records(batch)
    assert store.records(list(batch)) == batch


@pytest.mark.parametrize("kind", [MemoryStore, DiskStore])
def test_no_room_for_arrays_leaves_room_for_records(kind, tmp_path):
    made = functools.partial(kind, *([tmp_path] if kind is DiskStore else []))
    store = made(limit_bytes=0)
    store.put_arrays("a", {"model": np.zeros(1)})
    store.put_records({"a": {"loss": 1.0}})
    assert store.arrays("a") is None
    assert store.records(["a"]) == {"a": {"loss": 1.0}}
    with pytest.raises((ValueError, StoreError), match="limit_bytes: -1 is not allowed"):
        made(limit_bytes=-1)


def test_memory_counts_what_it_finds_and_keeps_arrays_as_they_were_given():
    store, given_arrays = MemoryStore(), {"model": np.arange(4, dtype=np.float32)}
    store.put_records({"a": {"loss": 0.5, "worst": float("nan")}, "b": {}})
    assert store.records(["b", "c"]) == {"b": {}}
    assert (store.hits, store.misses) == (1, 1)
    store.put_arrays("a", given_arrays)
    given_arrays["model"][0] = 9
    assert store.arrays("a")["model"].tolist() == [0, 1, 2, 3]
