"""The store on disk: eviction by last use, damage that counts as missing, a full disk that stops no run."""

import errno
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from fedsim.errors import StoreError, StoreWarning
from fedsim.learning.store.disk import DiskStore
from tests.support.pages import ROOT


def floats(number=0.0):
    """Return arrays whose file takes about 1,000 bytes: 200 numbers of 4 bytes and a header."""
    return {"model": np.full(200, number, dtype=np.float32)}


def kept(store, digests):
    return "".join(digest for digest in digests if store.objects.path(digest).exists())


@pytest.fixture
def store(tmp_path):
    opened = DiskStore(tmp_path / "store", limit_bytes=3300)
    yield opened
    opened.close()


@pytest.fixture
def clock(monkeypatch):
    """Let time pass by one second at each question."""
    now_s = [1e9]

    def passes():
        now_s[0] += 1
        return now_s[0]

    monkeypatch.setattr("fedsim.learning.store.disk.time.time", passes)


def test_arrays_used_longest_ago_go_first(store, clock):
    for digest in "abc":
        store.put_arrays(digest, floats())
    size_bytes = store.index.totals().array_bytes / 3
    assert 800 < size_bytes < 1100
    assert store.arrays("a") is not None
    store.put_arrays("b", floats())  # found there: used too
    store.put_arrays("d", floats())
    assert kept(store, "abcd") == "abd"
    store.remove_arrays("b")
    store.remove_arrays("nothing")
    store.put_arrays("e", floats())
    assert kept(store, "abcde") == "ade"
    assert store.index.totals().array_bytes == 3 * size_bytes


def test_uses_are_seen_by_other_processes_when_the_store_is_closed(store, clock):
    for digest in "abc":
        store.put_arrays(digest, floats())
    store.arrays("a")
    assert [digest for digest, _, _ in store.index.entries()] == ["a", "b", "c"]
    store.close()
    assert [digest for digest, _, _ in store.index.entries()] == ["b", "c", "a"]


def test_arrays_above_the_limit_are_not_kept_and_push_nothing_out(store):
    store.put_arrays("a", floats())
    store.put_arrays("b", {"model": np.zeros(4000, dtype=np.uint8)})
    assert kept(store, "ab") == "a"


def test_arrays_removed_by_another_process_are_missing(store, tmp_path):
    store.put_arrays("a", floats())
    DiskStore(tmp_path / "store").remove_arrays("a")
    assert store.arrays("a") is None


def test_damaged_arrays_are_dropped_and_may_be_put_again(store):
    store.put_arrays("a", floats(1))
    path = store.objects.path("a")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.warns(StoreWarning, match="damaged arrays dropped"):
        assert store.arrays("a") is None
    assert not path.exists()
    assert store.index.entries() == []
    store.put_arrays("a", floats(1))
    np.testing.assert_array_equal(store.arrays("a")["model"], floats(1)["model"])


def test_files_without_an_entry_are_found_again(store, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(store.index, "put_entry", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.put_arrays("a", floats())
    assert store.arrays("a") is not None
    assert store.index.entries() == []
    store.put_arrays("b", floats())  # the first put of a day compares files and entries
    assert {digest for digest, _, _ in store.index.entries()} == {"a", "b"}
    store.objects.remove("a")
    store.sweep()
    assert [digest for digest, _, _ in store.index.entries()] == ["b"]


def test_a_sweep_keeps_what_another_process_puts_back_meanwhile(store, monkeypatch):
    store.put_arrays("a", floats())
    store.objects.remove("a")
    other, sweep = DiskStore(store.folder, store.limit_bytes), store.index.sweep

    def late(*seen):
        other.put_arrays("a", floats(1))
        sweep(*seen)

    monkeypatch.setattr(store.index, "sweep", late)
    store.sweep()
    assert [digest for digest, _, _ in store.index.entries()] == ["a"]
    assert store.index.totals().array_bytes == store.objects.path("a").stat().st_size
    np.testing.assert_array_equal(store.arrays("a")["model"], floats(1)["model"])


@pytest.mark.parametrize("place", ["index.put_entry", "trim", "objects.remove"])
def test_each_put_that_is_killed_leaves_at_most_one_file_beyond_the_limit(store, monkeypatch, place):
    for digest in "abc":
        store.put_arrays(digest, floats())
    size_bytes = store.index.totals().array_bytes // 3
    owner, _, name = place.rpartition(".")
    for beyond, digest in enumerate("de", start=1):
        with monkeypatch.context() as killed:
            killed.setattr(
                getattr(store, owner) if owner else store, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            with pytest.raises(KeyboardInterrupt):
                store.put_arrays(digest, floats())
        store.sweep()
        assert store.index.totals().array_bytes == (3 + beyond) * size_bytes
    store.put_arrays("f", floats())
    assert len(kept(store, "abcdef")) == 3
    assert store.index.totals().array_bytes == 3 * size_bytes


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("a", np.zeros(2, np.complex128), "'a' of complex128"),
        ("a", np.array(["text"]), "'a' of <U4"),
        ("__metadata__", np.zeros(2), "'__metadata__' of float64"),
    ],
)
def test_what_safetensors_does_not_know_is_not_kept(store, name, values, said):
    with pytest.warns(StoreWarning, match=rf"array {said} cannot be kept as safetensors.* the run goes on without"):
        store.put_arrays("a", {name: values})
    assert store.arrays("a") is None
    assert kept(store, "a") == ""


def test_a_full_disk_is_said_once_and_stops_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.objects, "write", full)
    with pytest.warns(StoreWarning, match="No space left on device"):
        store.put_arrays("a", floats())
    store.put_arrays("b", floats())  # no second warning: it would be an error here
    monkeypatch.undo()
    store.put_arrays("b", floats())
    assert kept(store, "ab") == "b"


def test_a_locked_index_is_waited_for_once(store, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("fedsim.learning.store.disk.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("fedsim.learning.store.database._WAIT_S", 0.01)
    other = DiskStore(store.folder)
    store.index.close()
    with other.index._database._lock:
        other.index._database._opened().execute("BEGIN IMMEDIATE")
        with pytest.warns(StoreWarning, match="locked"):
            store.put_records({"a": {"loss": 1.0}})
        other.index._database._opened().execute("ROLLBACK")
    store.put_records({"a": {"loss": 1.0}})
    assert other.records(["a"]) == {}
    now_s[0] += 61
    store.put_records({"a": {"loss": 1.0}})
    assert other.records(["a"]) == {"a": {"loss": 1.0}}


@pytest.mark.parametrize("folder", ["file", "file/store"])
def test_a_folder_that_cannot_be_made_is_an_error(tmp_path, folder):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"store: .*file.* cannot be used .* it must be a folder"):
        DiskStore(tmp_path / folder)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="a superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be used"):
        DiskStore(tmp_path)


FILLS = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from fedsim.errors import StoreWarning
from fedsim.learning.store.disk import DiskStore

store = DiskStore(Path(sys.argv[1]))
store.put_records({"before": {"loss": 1.0}})
store.put_arrays("before", {"model": np.ones(100)})
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for number in range(40):
        store.put_records({f"{number}-{part}": {"number": float(number)} for part in range(100)})
        store.put_arrays(f"big{number}", {"model": np.full(40_000, float(number))})
assert said and {warning.category for warning in said} == {StoreWarning}, said
print(*{str(warning.message) for warning in said}, sep="\\n")
for number in range(40):
    for digest, record in store.records([f"{number}-{part}" for part in range(100)]).items():
        assert record == {"number": float(number)}
    found = store.arrays(f"big{number}")
    assert found is None or (found["model"] == number).all()
assert store.records(["before"]) == {"before": {"loss": 1.0}}
assert store.arrays("before")["model"].sum() == 100
"""


def fill(folder, *limit):
    return subprocess.run(  # noqa: S603 - own script
        [sys.executable, "-W", "error", "-c", FILLS, str(folder), *limit],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout


def test_a_limit_on_the_size_of_files_stops_nothing(tmp_path):
    assert "the run goes on without" in fill(tmp_path / "store", "300000")
    store = DiskStore(tmp_path / "store")
    assert store.records(["before"]) == {"before": {"loss": 1.0}}
    store.put_records({"after": {"loss": 2.0}})
    assert store.records(["after"]) == {"after": {"loss": 2.0}}


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)  # noqa: S603, S607, PLW1510
    if done.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)  # noqa: S603, S607


def test_a_disk_that_is_really_full_stops_nothing(small_disk):
    assert "No space left" in fill(small_disk / "store")
    store = DiskStore(small_disk / "store")
    assert store.records(["before"]) == {"before": {"loss": 1.0}}
    store.trim(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put_records({"after": {"loss": 2.0}})
        store.put_arrays("after", floats(3))
    assert store.records(["after"]) == {"after": {"loss": 2.0}}
    assert store.arrays("after") is not None
    store.close()
