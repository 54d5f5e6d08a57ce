"""Rows on disk: what goes in comes out, in any pieces, mapped or read; a full disk loses nothing that was there."""

import errno
import gc
import io
import itertools
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from fedsim.errors import RunError
from fedsim.history import Recorder, growing
from fedsim.history.schema import EVALUATIONS
from fedsim.history.spool import Spool, read_batches
from fedsim.results.tables import write_parquet

SCHEMA = pa.schema([("round", pa.int32()), ("label", pa.dictionary(pa.int8(), pa.string()))])


def table(rows, start=0):
    number = np.arange(start, start + rows)
    labels = pa.DictionaryArray.from_arrays(pa.array(number % 2, pa.int8(), mask=number % 3 == 0), ["even", "odd"])
    return pa.Table.from_arrays([pa.array(number, pa.int32()), labels], schema=SCHEMA)


@given(st.lists(st.integers(1, 9), max_size=6))
def test_rows_come_back_in_order_mapped_and_read(sizes):
    spool, given_rows = Spool.temporary(SCHEMA), 0
    for size in sizes:
        spool.append(table(size, given_rows), given_rows)
        given_rows += size
        # As after an interrupt between the writing of rows and the next step: those that are there come again.
        spool.append(table(given_rows), 0)
    expected = table(given_rows)
    assert spool.table().equals(expected)
    assert pa.Table.from_batches(spool.batches(), SCHEMA).equals(expected)


def test_a_map_copies_nothing_and_outlives_the_spool():
    spool = Spool.temporary(SCHEMA)
    spool.append(table(10_000), 0)
    before = pa.total_allocated_bytes()
    mapped = spool.table()
    assert pa.total_allocated_bytes() == before
    del spool
    gc.collect()
    assert mapped.equals(table(10_000))


class Full(io.BytesIO):
    """A file on a disk that is full after some bytes."""

    room = 10**9

    def write(self, content):
        super().write(bytes(content)[: self.room])
        if len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(content)


def test_a_full_disk_loses_nothing_and_the_rows_can_be_appended_later():
    file = Full()
    spool = Spool(SCHEMA, file, "run/rounds.arrows")
    spool.append(table(5), 0)
    file.room = 100
    with pytest.raises(RunError, match=r"run/rounds\.arrows: cannot be written: No space left"):
        spool.append(table(3, 5), 5)
    assert spool.extent.rows == 5
    assert pa.Table.from_batches(spool.batches()).equals(table(5))
    file.room = 10**9
    spool.append(table(3, 5), 5)
    assert pa.Table.from_batches(spool.batches()).equals(table(8))


def test_a_file_that_is_cut_is_noticed():
    file = io.BytesIO()
    spool = Spool(SCHEMA, file, "cut")
    spool.append(table(5), 0)
    cut = io.BytesIO(file.getvalue()[:-200])
    with pytest.raises((OSError, ValueError, pa.ArrowException)):
        list(read_batches(cut, spool.extent))


@given(st.lists(st.integers(1, 40), max_size=6), st.sampled_from([8, 13, 40, 60]))
@example([2, 6, 8], 8)
def test_a_parquet_file_depends_on_its_rows_alone(tmp_path_factory, sizes, group):
    """Whatever the batches are, and where null is known to be absent or not."""
    folder = tmp_path_factory.mktemp("parquet")
    rows = [
        {"round": i, "time_s": i / 3, "model_version": i, "accuracy": 0.1, "loss": float("nan")}
        for i in range(sum(sizes))
    ]
    whole = EVALUATIONS.from_rows(rows)
    ends = np.cumsum([0, *sizes])
    pieces = [whole.slice(low, high - low) for low, high in itertools.pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedsim.results.tables.ROWS_IN_A_GROUP", group)
        write_parquet(folder / "one", EVALUATIONS, iter(whole.to_batches()))
        write_parquet(folder / "many", EVALUATIONS, (batch for piece in pieces for batch in piece.to_batches()))
    assert (folder / "one").read_bytes() == (folder / "many").read_bytes()
    assert pq.ParquetFile(folder / "one").metadata.num_row_groups == max(1, -(-sum(sizes) // group))


def evaluation(number):
    return {"round": number, "time_s": 2.0 * number, "model_version": number, "accuracy": 0.5, "loss": 1.0}


def test_an_evaluation_that_is_known_later_keeps_its_place(monkeypatch):
    monkeypatch.setattr(growing, "ROWS_IN_A_BATCH", 3)
    kept, asked = Recorder("later"), []

    def later():
        asked.append(1)
        return evaluation(1)

    kept.add_row_later("evaluations", later)
    kept.add_row("evaluations", **evaluation(2))
    assert kept.counts()["evaluations"] == 2
    assert not asked, "nothing waits before the rows are needed"
    for number in range(3, 8):
        kept.add_row("evaluations", **evaluation(number))
    assert kept.history().column("evaluations", "round").tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(asked) == 1, "it was put on disk with the others"


def test_a_later_evaluation_of_another_shape_is_refused():
    kept = Recorder("later")
    kept.add_row_later("evaluations", lambda: {"round": 1})
    with pytest.raises(RunError, match="needs a value for time_s"):
        kept.history()


PEAK = """
import resource, sys
from fedsim import Scenario
from fedsim.results import run
scenario = Scenario(
    name="memory", crowd={"clients": 2000}, learning="none", network="pause-two-speed", devices={"compute": "zero"},
    rounds={"count": int(sys.argv[1])}, selector={"kind": "uniform", "cohort": 1000},
)
run(scenario, "run" + sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts peak memory in KiB")
def test_memory_does_not_grow_with_rounds(tmp_path):
    """A million participations, whose rows take 110 bytes each, and so 110 MB: at most 30 MB more than 10^5 of them."""

    def peak_mb(rounds):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", PEAK, str(rounds)], cwd=tmp_path, capture_output=True, check=True, env=os.environ
        )
        return int(done.stdout) * 1024 / 1e6

    assert peak_mb(1000) - peak_mb(100) < 30
