"""The store on disk: eviction by last use, damage that counts as missing, a full disk that stops no run."""

import errno
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from fedsim.errors import StoreWarning
from fedsim.learning.store.contracts import MemoryStore
from fedsim.learning.store.disk import FILE, Checked, DiskStore
from tests.support.pages import ROOT

DAY_S = 86400.0
LARGE = {"model": np.arange(2**18 + 64, dtype=np.float32)}


def floats(number=0.0):
    """Return arrays that take about 900 bytes: 200 numbers of 4 bytes and a header."""
    return {"model": np.full(200, number, dtype=np.float32)}


def sql(store, text, *given):
    with sqlite3.connect(store.folder / FILE) as connection:
        return connection.execute(text, given).fetchall()


def kept(store):
    return "".join(sorted(row[0] for row in sql(store, "SELECT digest FROM model")))


@pytest.fixture
def store(tmp_path):
    opened = DiskStore(tmp_path / "store", limit_bytes=2900)
    yield opened
    opened.close()


@pytest.fixture
def clock(monkeypatch):
    now_s = [1e9]

    def passes():
        now_s[0] += 2
        return now_s[0]

    monkeypatch.setattr("fedsim.learning.store.disk.time.time", passes)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_arrays_used_longest_ago_go_first(kind, store, clock):
    held = store if kind == "disk" else MemoryStore(limit_bytes=2900)

    def taken_bytes():
        return held.usage().array_bytes if kind == "disk" else held.array_bytes

    def left():
        return "".join(digest for digest in "abcde" if held.arrays(digest) is not None)

    for digest in "abc":
        held.put_arrays(digest, floats())
    size_bytes = taken_bytes() / 3
    assert 800 <= size_bytes < 950
    assert held.arrays("a") is not None
    held.put_arrays("b", floats())
    held.put_arrays("d", floats())
    assert left() == "abd"
    held.remove_arrays("b")
    held.remove_arrays("nothing")
    held.put_arrays("e", floats())
    assert left() == "ade"
    assert taken_bytes() == 3 * size_bytes


def test_arrays_above_the_limit_are_not_kept_and_push_nothing_out(store):
    store.put_arrays("a", floats())
    store.put_arrays("b", {"model": np.zeros(4000, dtype=np.uint8)})
    assert kept(store) == "a"


def test_large_models_lie_beside_the_tables_and_go_with_their_rows(tmp_path):
    store = DiskStore(tmp_path)
    store.put_arrays("big", LARGE)
    assert store.path("big").stat().st_size == store.usage().array_bytes > 2**20
    np.testing.assert_array_equal(store.arrays("big")["model"], LARGE["model"])
    store.remove_arrays("big")
    assert not store.path("big").exists()
    store.put_arrays("big", LARGE)
    assert store.trim(limit_bytes=0)[0] == 1
    assert [*tmp_path.glob("large/*/*")] == []


@pytest.mark.parametrize("large", [False, True])
def test_damaged_arrays_are_dropped_and_may_be_put_again(tmp_path, large):
    store, arrays = DiskStore(tmp_path), LARGE if large else floats(1)
    store.put_arrays("a", arrays)
    if large:
        os.truncate(store.path("a"), 1000)
    else:
        sql(store, "UPDATE model SET content = zeroblob(880)")
    with pytest.warns(StoreWarning, match="damaged arrays dropped"):
        assert store.arrays("a") is None
    assert kept(store) == ""
    store.put_arrays("a", arrays)
    np.testing.assert_array_equal(store.arrays("a")["model"], arrays["model"])


def test_a_damaged_record_counts_as_missing(store):
    store.put_records({"a": {"loss": 1.0}, "b": {"loss": 2.0}})
    sql(store, "UPDATE record SET numbers = x'00000000000000ff' WHERE digest = 'a'")
    assert store.records(["a", "b"]) == {"b": {"loss": 2.0}}


@pytest.mark.parametrize("content", [b"damaged" * 1000, b""], ids=["other bytes", "empty"])
def test_a_damaged_file_is_moved_aside_and_an_empty_one_begins(store, content):
    store.put_records({"a": {"loss": 1.0}})
    store.close()
    for path in store.folder.glob(f"{FILE}*"):
        path.write_bytes(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert store.records(["a"]) == {}
    assert [*store.folder.glob("damaged-*")] == [] or "the index was damaged" in str(said[0].message)
    store.put_records({"a": {"loss": 2.0}})
    assert DiskStore(store.folder).records(["a"]) == {"a": {"loss": 2.0}}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("a", np.zeros(2, np.complex128), "Unknown dtype "),
        ("a", np.array(["text"]), "Unknown dtype "),
        ("__metadata__", np.zeros(2), "array '__metadata__': safetensors has this name for itself"),
    ],
)
def test_what_safetensors_does_not_know_is_not_kept(store, name, values, said):
    with pytest.warns(StoreWarning, match=rf"could not be kept \({said}.*the run goes on without"):
        store.put_arrays("a", {name: values})
    assert kept(store) == ""


def test_a_full_disk_is_said_once_and_stops_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fedsim.learning.store.disk.save", full)
    with pytest.warns(StoreWarning, match="No space left on device"):
        store.put_arrays("a", floats())
    store.put_arrays("b", floats())  # no second warning: it would be an error here
    monkeypatch.undo()
    store.put_arrays("b", floats())
    assert kept(store) == "b"


def test_a_locked_file_is_waited_for_once(store, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("fedsim.learning.store.disk.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("fedsim.learning.store.disk._WAIT_S", 0.01)
    store.close()
    store.records([])
    other = sqlite3.connect(store.folder / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(StoreWarning, match="locked"):
        store.put_records({"a": {"loss": 1.0}})
    other.execute("ROLLBACK")
    store.put_records({"a": {"loss": 1.0}})
    assert sql(store, "SELECT * FROM record") == []
    now_s[0] += 61
    store.put_records({"a": {"loss": 1.0}})
    assert store.records(["a"]) == {"a": {"loss": 1.0}}


def test_trim_what_was_not_used_for_days(tmp_path):
    store = DiskStore(tmp_path)
    for age, digest in enumerate("abcd"):
        store.put_arrays(digest, floats())
        sql(store, "UPDATE model SET used_s = ? WHERE digest = ?", time.time() - age * DAY_S, digest)
    assert store.usage().newest_s - store.usage().oldest_s == pytest.approx(3 * DAY_S, abs=10)
    assert store.arrays("d") is not None  # used now
    assert store.trim(days=1.5)[0] == 1
    assert kept(store) == "abd"
    assert store.trim(limit_bytes=1800, days=9)[0] == 1
    assert kept(store) == "ad"


def test_check_finds_and_removes_what_is_damaged(tmp_path):
    store = DiskStore(tmp_path)
    for digest in "abc":
        store.put_arrays(digest, floats())
    store.put_records({str(number): {"loss": number / 7} for number in range(50)})
    assert store.check() == Checked(records=50, arrays=3, damaged_records=0, damaged_arrays=0)
    sql(store, "UPDATE model SET crc = 1 WHERE digest = 'b'")
    sql(store, "UPDATE record SET crc = 1 WHERE digest = '7'")
    (tmp_path / "large" / "xx").mkdir(parents=True)
    left = tmp_path / "large" / "xx" / "xxxx.half"
    left.write_bytes(b"a kill left it")
    os.utime(left, (0, 0))
    assert store.check() == Checked(records=49, arrays=2, damaged_records=1, damaged_arrays=1)
    assert store.check() == Checked(49, 2, 0, 0)
    assert not left.exists()


def test_clear_leaves_nothing(store):
    (store.folder / "damaged-1" / "aa").mkdir(parents=True)
    store.put_records({"a": {"loss": 1.0}})
    store.put_arrays("a", floats())
    store.clear()
    assert store.usage()[:2] == (0, store.usage().record_bytes)
    assert sorted(path.name for path in store.folder.iterdir() if "results" not in path.name) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_fork_opens_the_file_anew(store):
    store.put_records({"a": {"loss": 1.0}})
    child = multiprocessing.get_context("fork").Process(target=store.put_records, args=({"b": {"loss": 2.0}},))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert store.records(["a", "b"]) == {"a": {"loss": 1.0}, "b": {"loss": 2.0}}


FILLS = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from fedsim.errors import StoreWarning
from fedsim.learning.store.disk import DiskStore

store = DiskStore(Path(sys.argv[1]))
store.put_records({"before": {"loss": 1.0}})
store.put_arrays("before", {"model": np.ones(100)})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for number in range(40):
        store.put_records({f"{number}-{part}": {"number": float(number)} for part in range(100)})
        store.put_arrays(f"big{number}", {"model": np.full(40_000, float(number))})
assert said and {warning.category for warning in said} == {StoreWarning}, said
for number in range(40):
    for digest, record in store.records([f"{number}-{part}" for part in range(100)]).items():
        assert record == {"number": float(number)}
    found = store.arrays(f"big{number}")
    assert found is None or (found["model"] == number).all()
assert store.records(["before"]) == {"before": {"loss": 1.0}}
assert store.arrays("before")["model"].sum() == 100
"""


def test_a_limit_on_the_size_of_files_stops_nothing(tmp_path):
    subprocess.run(  # noqa: S603 - own script
        [sys.executable, "-W", "error", "-c", FILLS, str(tmp_path / "store"), "900000"],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    store = DiskStore(tmp_path / "store")
    assert store.records(["before"]) == {"before": {"loss": 1.0}}
    store.put_records({"after": {"loss": 2.0}})
    assert store.records(["after"]) == {"after": {"loss": 2.0}}
