"""What a store holds, and how it is made smaller, checked and emptied."""

import os
import time

import numpy as np
import pytest

from fedsim.errors import StoreWarning
from fedsim.learning.store.disk import DiskStore
from fedsim.learning.store.upkeep import Checked, Removed, check, clear, trim_older, trim_to, usage

DAY_S = 86400


@pytest.fixture
def store(tmp_path):
    """Return a store with four models, used 0, 1, 2 and 3 days ago, and fifty records."""
    opened, now_s = DiskStore(tmp_path), time.time()
    for age, digest in enumerate("abcd"):
        opened.put_arrays(digest, {"model": np.full(100, age, dtype=np.float32)})
        opened.index.put_entry(digest, opened.objects.path(digest).stat().st_size, now_s - age * DAY_S)
    opened.put_records({str(number): {"loss": number / 7} for number in range(50)})
    yield opened
    opened.close()


def kept(store):
    return "".join(digest for digest in "abcd" if store.objects.path(digest).exists())


def test_usage(store, tmp_path):
    held = usage(store)
    files = [*tmp_path.glob("objects/*/*")]
    assert (held.records, held.arrays, held.damaged_bytes) == (50, 4, 0)
    assert held.array_bytes == sum(path.stat().st_size for path in files)
    assert held.record_bytes >= 50 * 8
    assert held.newest_s - held.oldest_s == pytest.approx(3 * DAY_S)


def test_trim_to_a_size(store):
    size_bytes = store.objects.path("a").stat().st_size
    assert trim_to(store, 3 * size_bytes - 1) == Removed(2, 2 * size_bytes)
    assert kept(store) == "ab"
    assert trim_to(store, 0) == Removed(2, 2 * size_bytes)
    assert usage(store)[:1] == (50,)
    assert usage(store).oldest_s is None


def test_trim_what_was_not_used_for_days(store):
    assert store.arrays("d") is not None  # used now
    assert trim_older(store, 1.5).arrays == 1
    assert kept(store) == "abd"


def test_check_finds_and_removes_what_is_damaged(store):
    assert check(store) == Checked(records=50, arrays=4, damaged_records=0, damaged_arrays=0)
    path = store.objects.path("b")
    os.truncate(path, path.stat().st_size - 1)
    store.index._database.change(
        lambda connection: connection.execute("UPDATE records SET checksum = 1 WHERE digest < x'31'")
    )
    with pytest.warns(StoreWarning, match="1 damaged records dropped"):
        assert check(store) == Checked(records=49, arrays=3, damaged_records=1, damaged_arrays=1)
    assert kept(store) == "acd"
    assert check(store) == Checked(49, 3, 0, 0)


@pytest.mark.filterwarnings("ignore::fedsim.errors.StoreWarning")
def test_clear_leaves_nothing(store, tmp_path):
    other = DiskStore(tmp_path)
    store.index.close()
    other.index.close()
    (tmp_path / "index" / "index.sqlite").write_bytes(b"damaged" * 1000)
    store.put_records({"new": {"loss": 1.0}})
    assert usage(store).damaged_bytes >= 7000
    clear(store)
    held = usage(store)
    assert (held.records, held.arrays, held.array_bytes, held.damaged_bytes) == (0, 0, 0, 0)
    assert kept(store) == ""
    other.put_records({"new": {"loss": 1.0}})
    assert store.records(["new"]) == {"new": {"loss": 1.0}}
