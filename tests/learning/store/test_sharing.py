"""Processes that share a store, and processes that are killed while they write to it."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from fedsim.learning.store.disk import FILE, DiskStore
from tests.support.pages import ROOT

LIMIT_BYTES = 60_000
TABLES = ("model", "record")
# Each entry follows from its digest, so that every process knows what is right.
COMMON = """
import sys, warnings
from pathlib import Path
import numpy as np
from fedsim.learning.store.disk import DiskStore

warnings.simplefilter("error")
folder, seed, turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)


def record(number):
    return {"number": float(number), "square": float(number) ** 2}


def arrays(number):
    return {"model": np.full(300 + number % 50, number, dtype=np.float32), "step": np.array(number)}


def right(store, number):
    found = store.records([f"record{number}"])
    assert found in ({}, {f"record{number}": record(number)}), (number, found)
    kept = store.arrays(f"arrays{number}")
    for name, values in (kept or {}).items():
        np.testing.assert_array_equal(values, arrays(number)[name], strict=True)
    return kept is not None
"""
HAMMER = (
    COMMON
    + """
store, found = DiskStore(folder, 60_000), 0
for _ in range(turns):
    batch = rng.integers(0, 200, 5).tolist()
    store.put_records({f"record{number}": record(number) for number in batch})
    assert len(store.records([f"record{number}" for number in batch])) == len(set(batch))
    for number in batch:
        found += right(store, number)
        store.put_arrays(f"arrays{number}", arrays(number))
    if rng.random() < 0.2:
        store.remove_arrays(f"arrays{batch[0]}")
    if rng.random() < 0.05:
        store.close()
assert found
"""
)
WRITER = (
    COMMON
    + """
store = DiskStore(folder, 60_000)
print("ready", flush=True)
number = 1000 * seed
while True:
    number += 1
    store.put_records({f"record{number}": record(number), f"record{number + 500_000}": record(number + 500_000)})
    store.put_arrays(f"arrays{number}", arrays(number))
    if number % 7 == 0:
        store.remove_arrays(f"arrays{number - 3}")
    print(number, flush=True)
"""
)


def start(script, folder, seed, turns=0):
    return subprocess.Popen(  # noqa: S603 - own script
        [sys.executable, "-c", script, str(folder), str(seed), str(turns)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def verify(store, limit_bytes):
    """Check that every entry is right, and the limit is kept; return how many models and records there are."""
    found = store.check()
    assert (found.damaged_records, found.damaged_arrays) == (0, 0)
    assert store.usage().array_bytes <= limit_bytes
    with sqlite3.connect(store.folder / FILE) as connection:
        models, records = ([row[0] for row in connection.execute(f"SELECT digest FROM {of}")] for of in TABLES)
    for digest in models:
        number = int(digest.removeprefix("arrays"))
        arrays = store.arrays(digest)
        np.testing.assert_array_equal(arrays["model"], np.full(300 + number % 50, number, np.float32), strict=True)
        assert arrays["step"] == number
    known = store.records(records)
    for digest in records:
        number = float(digest.removeprefix("record"))
        assert known[digest] == {"number": number, "square": number**2}
    return len(models), {int(digest.removeprefix("record")) for digest in records}


@pytest.mark.parametrize(
    ("processes", "turns"), [(2, 30), pytest.param(5, 200, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_processes_share_one_store(tmp_path, processes, turns):
    running = [start(HAMMER, tmp_path / "store", seed, turns) for seed in range(processes)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    files, records = verify(DiskStore(tmp_path / "store"), LIMIT_BYTES)
    assert files > 10
    assert 50 < len(records) <= 200


@pytest.mark.slow
def test_a_kill_at_any_instant_loses_at_most_what_was_being_written(tmp_path):
    folder, kills = tmp_path / "store", 10
    rng = np.random.default_rng(kills)
    store = DiskStore(folder, LIMIT_BYTES)
    for kill in range(kills):
        with start(WRITER, folder, kill) as process:
            assert process.stdout.readline() == "ready\n"
            if kill % 3 != 1:
                store.close()  # alternately, the killed process was the only one that had the files open
            time.sleep(rng.uniform(0, 0.25))
            process.send_signal(signal.SIGKILL)
            said = [int(line) for line in process.stdout]
            assert process.stderr.read() == ""
        # What the process said is done was kept: 60,000 bytes hold the last 20 models.
        for number in said[-20:]:
            assert store.records([f"record{number}"]) == {f"record{number}": {"number": number, "square": number**2}}
            assert number % 7 == 4 or store.arrays(f"arrays{number}") is not None
        _, numbers = verify(store, LIMIT_BYTES)
        # One of each pair may not be there without the other.
        assert {number + 500_000 for number in numbers if number < 500_000} == {n for n in numbers if n >= 500_000}
    assert not [*folder.glob("damaged-*")]
