"""One process writes to a run folder, and any number reads it."""

import subprocess
import sys

import pytest

from fedsim import read_run, run
from fedsim.errors import RunError
from fedsim.results import status_of
from fedsim.results.lock import OWNER, FolderLock
from tests.support.short_runs import TIMING

HOLD = """
import sys, time
from pathlib import Path
from fedsim.results.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_folder_in_use_is_refused_and_readable_and_a_killed_process_frees_it(tmp_path):
    seen = []

    def refused(_):
        with pytest.raises(RunError, match="is in use by another process"):
            run(TIMING, tmp_path / "run", replace=True)
        seen.append((status_of(tmp_path / "run"), read_run(tmp_path / "run").rounds.num_rows))

    run(TIMING, tmp_path / "run", on_round=refused)
    assert seen[0] == ("running", 1)
    assert len(seen) == TIMING.rounds.count
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=rf"is in use by another process \(pid {process.pid}\), which"):
            run(TIMING, tmp_path / "run")
        process.kill()
        process.wait()
        run(TIMING, tmp_path / "run")
    assert status_of(tmp_path / "run") == "finished"


@pytest.mark.parametrize(
    ("told", "words"), [("7 elsewhere\n", r" \(pid 7 on elsewhere\), which"), ("", ", which"), (None, ", which")]
)
def test_a_process_on_another_machine_is_named_with_it(told, words, tmp_path):
    lock = FolderLock(tmp_path)
    lock.acquire()
    if told is None:
        (tmp_path / OWNER).unlink()
    else:
        (tmp_path / OWNER).write_text(told)
    with pytest.raises(RunError, match=f"in use by another process{words}"):
        FolderLock(tmp_path).acquire()
    lock.release()
    assert not (tmp_path / OWNER).exists()
