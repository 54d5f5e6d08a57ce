"""The SQLite file: shared, checked row by row, and replaced when it is damaged."""

import os
import shutil
import sqlite3
import struct
import threading

import numpy as np
import pytest

from fedsim.errors import StoreError, StoreWarning
from fedsim.learning.store.database import FORMAT
from fedsim.learning.store.index import Index, record_of, row_of

BATCH = {f"{number:032x}": {"number": float(number)} for number in range(200)}


@pytest.fixture
def index(tmp_path):
    opened = Index(tmp_path)
    yield opened
    opened.close()


def on_disk(folder):
    return folder / "index" / "index.sqlite"


def test_damaged_rows_are_dropped_and_may_be_put_again(index, tmp_path):
    index.put_records(BATCH)
    first, second = list(BATCH)[:2]
    with sqlite3.connect(on_disk(tmp_path)) as other:
        other.execute("UPDATE records SET numbers = ? WHERE digest = ?", (struct.pack("<d", 3.5), first.encode()))
        other.execute("UPDATE records SET checksum = NULL WHERE 0")
    other.close()
    with pytest.warns(StoreWarning, match="1 damaged records dropped"):
        assert index.records([first, second]) == {second: BATCH[second]}
    assert index.count_records() == 199
    index.put_records({first: BATCH[first]})
    assert index.records(list(BATCH)) == BATCH


def test_a_batch_is_kept_whole_or_not_at_all(index, monkeypatch):
    rows = iter([(b"a", b"[]", b"", 0), ()])
    monkeypatch.setattr("fedsim.learning.store.index.row_of", lambda *_: next(rows))
    with pytest.raises(sqlite3.ProgrammingError):
        index.put_records({"a": {}, "b": {}})
    assert index.count_records() == 0


GARBAGE = {
    "empty": lambda content: content[:0],
    "garbage": lambda content: np.random.default_rng(1).bytes(len(content)),
    "short": lambda content: content[: len(content) // 2],
    "header": lambda content: b"x" * 100 + content[100:],
    "tables": lambda content: content[:4096] + b"x" * (len(content) - 4096),
    "end": lambda content: content[:-3000],
}


@pytest.mark.parametrize("change", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.filterwarnings("ignore::fedsim.errors.StoreWarning")
def test_a_damaged_file_is_replaced(tmp_path, change):
    index = Index(tmp_path)
    index.put_records(BATCH)
    index.put_entry("a", 10, 0.0)
    index.close()
    path = on_disk(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    index = Index(tmp_path)
    found = index.records(list(BATCH))
    assert all(BATCH[digest] == record for digest, record in found.items())
    index.put_records(BATCH)
    index.check()
    index.put_records(BATCH)
    index.put_entry("a", 10, 0.0)
    assert index.records(list(BATCH)) == BATCH
    assert index.totals().array_bytes == 10
    index.close()


def test_a_damaged_file_is_moved_aside_once_and_said(tmp_path):
    one, other = Index(tmp_path), Index(tmp_path)
    one.put_records(BATCH)
    one.close()
    other.close()
    on_disk(tmp_path).write_bytes(b"no database at all" * 100)
    with pytest.warns(StoreWarning, match="the index was damaged .* lies in damaged-.* now"):
        assert one.records(list(BATCH)) == {}
    one.put_records(BATCH)
    assert other.records(list(BATCH)) == BATCH
    (aside,) = tmp_path.glob("damaged-*")
    assert (aside / "index.sqlite").read_bytes().startswith(b"no database at all")
    one.close()
    other.close()


@pytest.mark.parametrize("times", [6, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::fedsim.errors.StoreWarning")
def test_flipped_bits_never_give_a_wrong_record(tmp_path, times):
    index = Index(tmp_path)
    index.put_records(BATCH)
    for digest in "abcdefgh":
        index.put_entry(digest, 10, 0.0)
    index.close()
    path = on_disk(tmp_path)
    content, rng = path.read_bytes(), np.random.default_rng(times)
    for _ in range(times):
        for stale in path.parent.glob("index.sqlite-*"):
            stale.unlink()
        flipped = bytearray(content)
        for _ in range(8):
            flipped[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        index = Index(tmp_path)
        found = index.records(list(BATCH))
        assert all(BATCH[digest] == record for digest, record in found.items())
        index.put_records(BATCH)
        index.put_entry("i", 10, 1.0)
        index.remove_entries(index.oldest(20))
        index.entries()
        index.check()
        index.put_records(BATCH)
        assert index.records(list(BATCH)) == BATCH
        index.close()


@pytest.mark.parametrize("change", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.filterwarnings("ignore::fedsim.errors.StoreWarning")
def test_a_damaged_log_of_changes_gives_no_wrong_record(index, tmp_path, change):
    """The log is what a killed process leaves beside the file; a copy of both is taken while they are in use."""
    for digest, record in BATCH.items():
        index.put_records({digest: record})
    shutil.copytree(tmp_path / "index", tmp_path / "copy" / "index")
    log = tmp_path / "copy" / "index" / "index.sqlite-wal"
    assert log.stat().st_size > 4096
    log.write_bytes(change(log.read_bytes()))
    (tmp_path / "copy" / "index" / "index.sqlite-shm").unlink()
    copy = Index(tmp_path / "copy")
    assert all(BATCH[digest] == record for digest, record in copy.records(list(BATCH)).items())
    copy.put_records(BATCH)
    assert copy.records(list(BATCH)) == BATCH
    copy.close()


def test_a_newer_format_is_refused(tmp_path):
    Index(tmp_path).close()
    with sqlite3.connect(on_disk(tmp_path)) as other:
        other.execute(f"PRAGMA user_version = {FORMAT + 1}")
    other.close()
    with pytest.raises(StoreError, match=f"has format {FORMAT + 1}; this fedsim reads formats up to {FORMAT}"):
        Index(tmp_path)


def test_a_file_that_was_removed_or_replaced_is_opened_again(index, tmp_path):
    index.put_records(BATCH)
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    assert index.records(list(BATCH)) == {}
    index.put_records({"a": {"loss": 1.0}})
    fresh = Index(tmp_path)
    assert fresh.records(["a"]) == {"a": {"loss": 1.0}}
    fresh.close()


def test_threads_share_one(index):
    failures = []

    def work(seed):
        try:
            for number in range(20):
                digest = f"{seed}-{number}"
                index.put_records({digest: {"seed": float(seed)}})
                assert index.records([digest]) == {digest: {"seed": float(seed)}}
                index.put_entry(digest, 1, 0.0)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (index.count_records(), index.totals().array_bytes) == (120, 120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_opens_it_anew(index):
    index.put_records(BATCH)
    child = os.fork()
    if child == 0:
        right = index.records(list(BATCH)) == BATCH
        index.put_records({"child": {"loss": 1.0}})
        os._exit(0 if right else 1)
    index.put_records({"parent": {"loss": 2.0}})
    assert os.waitpid(child, 0)[1] == 0
    assert index.records(["child", "parent"]) == {"child": {"loss": 1.0}, "parent": {"loss": 2.0}}


ROW = row_of("00ff", {"loss": 0.25, "accuracy": 1.0})


def test_a_row_holds_the_record_in_fields_of_its_own():
    assert record_of(ROW) == ("00ff", {"loss": 0.25, "accuracy": 1.0})
    assert ROW[2] == b"\0\0\0\0\0\0\xd0\x3f\0\0\0\0\0\0\xf0\x3f"  # 2^-2 and 2^0 in IEEE 754
    digest, names, numbers, checksum = ROW
    assert record_of((digest + names[:1], names[1:], numbers, checksum)) is None


@pytest.mark.parametrize("field", [0, 1, 2])
def test_a_flipped_bit_is_noticed(field):
    for bit in range(8 * len(ROW[field])):
        flipped = bytearray(ROW[field])
        flipped[bit // 8] ^= 1 << bit % 8
        assert record_of([*ROW[:field], bytes(flipped), *ROW[field + 1 :]]) is None


@pytest.mark.parametrize("other", [None, 3, 1.5, "text", b""])
@pytest.mark.parametrize("field", [0, 1, 2, 3])
def test_other_values_are_noticed(field, other):
    assert record_of([*ROW[:field], other, *ROW[field + 1 :]]) is None
