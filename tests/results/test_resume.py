"""A run that was killed, interrupted or has failed goes on, and ends in the same files."""

import os
import shutil
import signal
import struct
import zlib

import pytest

from fedsim import Scenario, read_run, run
from fedsim.errors import RunError
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.results import recording, status_of
from tests.support.kills import die
from tests.support.run_folders import LEARNING as SGD, BrokenError, files_of, rewrite, state_of, stopped

needs_kill = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")

TABLES = {
    "name": "resumed",
    "crowd": {"clients": 12},
    "learning": "none",
    "network": "pause-two-speed",
    "devices": {"compute": "zero"},
    "selector": {"kind": "uniform", "cohort": 4},
}
LEARNING = {**SGD, "local": {**SGD["local"], "keep_optimizer_state": True}}
LAW = {"kind": "log-normal", "median_s": 0.3, "sigma": 0.7}
LATENCY = {"kind": "latency", "downlink": LAW, "uplink": LAW}
ROUNDS = {
    "synchronous": {"count": 6},
    "deadline": {"count": 8, "policy": {"kind": "deadline", "deadline_s": 0.7}, "late": "stale"},
    "asynchronous": {"count": 8, "policy": {"kind": "fedbuff", "buffer": 3, "concurrency": 6}},
    "hierarchical": {
        "count": 4,
        "edges": {
            "grouping": {"kind": "order", "count": 2},
            "rounds": 2,
            "backhaul": "none",
            "merging": "asynchronous",
        },
    },
}


def scenario(kind, **tables):
    return Scenario(**{**TABLES, "network": LATENCY, "rounds": ROUNDS[kind], **tables})


@needs_kill
@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize(
    ("kind", "learning", "points"),
    [
        ("deadline", "none", [24, 8, 100]),
        *(pytest.param(kind, LEARNING, range(1, 150, 5), marks=pytest.mark.slow) for kind in ROUNDS),
    ],
)
def test_killed_upon_its_files_a_run_ends_in_the_same_bytes(kind, learning, points, tmp_path):
    """Early kills after late ones: a replay that is killed has thrown nothing away."""
    of = scenario(kind, learning=learning)
    left = die(tmp_path / "killed", of, tmp_path / "store", points)
    assert [one["ended"] for one in left[:2]] == [-signal.SIGKILL] * 2
    rounds = [one["rounds"] for one in left]
    assert rounds == sorted(rounds), "finished rounds are never replaced with fewer"
    assert left[-1] == {"ended": 0, "rounds": of.rounds.count, "status": "finished"}
    run(of, tmp_path / "whole", store=False)
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")
    assert {path.name for path in (tmp_path / "killed").iterdir()} == {
        path.name for path in (tmp_path / "whole").iterdir()
    }


@needs_kill
@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_killed_at_each_act_a_run_that_replaces_a_finished_one_leaves_one_of_them(tmp_path):
    """Each process begins with the finished run and replaces it; the next one goes on without --force."""
    before, of = scenario("synchronous"), scenario("deadline")
    run(before, tmp_path / "before")
    (tmp_path / "before" / "mine.parquet").write_text("mine")
    run(of, tmp_path / "whole")
    seen = set()
    for point in range(1, 400, 9):
        folder = tmp_path / f"killed{point}"
        shutil.copytree(tmp_path / "before", folder)
        first, last = die(folder, of, None, [point], replace=True)
        assert first["status"] == "finished"
        seen.add(first["rounds"])
        assert (last["ended"], last["rounds"]) in {(0, of.rounds.count), (1, before.rounds.count)}
        if last["ended"]:  # killed before the new run had a state: --force has to be said again
            assert point < 30
            continue
        assert {path.name for path in folder.iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()} | {
            "mine.parquet"
        }
        (folder / "mine.parquet").unlink()
        assert {**files_of(folder), "summary.json": b""} == {**files_of(tmp_path / "whole"), "summary.json": b""}
        if first["ended"] == 0:
            break
    assert seen == {before.rounds.count, of.rounds.count}


@pytest.mark.parametrize(
    ("error", "status", "cause"),
    [
        (KeyboardInterrupt(), "interrupted", "Ctrl-C"),
        (KeyboardInterrupt("SIGTERM"), "interrupted", "SIGTERM"),
        (BrokenError("no"), "failed", "no"),
        (BrokenError("a name \udc80"), "failed", "a name \\udc80"),
    ],
)
def test_what_ended_a_run_is_in_its_state_and_it_goes_on(error, status, cause, tmp_path):
    of, lines = scenario("deadline"), []
    stopped(of, tmp_path / "run", 3, error)
    state = state_of(tmp_path / "run")
    assert (state["status"], state["rounds"]) == (status, 3)
    assert status_of(tmp_path / "run") == status
    assert (state["error"]["type"], state["error"]["message"]) == (type(error).__name__, cause)
    assert any("raise error" in line for line in state["error"]["traceback"])
    run(of, tmp_path / "run", tell=lines.append)
    assert "goes on after round 3" in lines[0]
    run(of, tmp_path / "whole")
    assert files_of(tmp_path / "run") == files_of(tmp_path / "whole")
    assert state_of(tmp_path / "run")["error"] is None


def test_a_finished_run_is_read_and_not_built_again(tmp_path, monkeypatch):
    history = run(scenario("deadline"), tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir() if path.name != ".lock"}
    monkeypatch.setattr(recording, "Simulation", None)
    lines = []
    again = run(scenario("deadline"), tmp_path / "run", tell=lines.append)
    assert again.participations.equals(history.participations)
    assert "was finished before" in lines[0]
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_replay_that_gives_other_rows_is_refused_and_changes_nothing(tmp_path):
    """The folder's state is changed to that of a scenario with another deadline, as another release might act."""
    of = scenario("deadline")
    other = of.replace({"rounds.policy.deadline_s": 0.71})
    stopped(of, tmp_path / "run", 5)
    kept = read_run(tmp_path / "run")
    versions = {**state_of(tmp_path / "run")["versions"], "numpy": "1.0"}
    rewrite(tmp_path / "run", digest=other.digest(), versions=versions)
    with pytest.raises(RunError, match=r"contradicts .*: row \d+, of round \d, column .* numpy 1.0 then.*--force"):
        run(other, tmp_path / "run")
    assert read_run(tmp_path / "run").participations.equals(kept.participations)
    assert status_of(tmp_path / "run") == "failed"
    run(other, tmp_path / "run", replace=True)
    assert status_of(tmp_path / "run") == "finished"


def test_a_replay_that_ends_earlier_is_refused(tmp_path):
    of = scenario("synchronous")
    stopped(of, tmp_path / "run", 5)
    shorter = of.replace({"rounds.count": 3})
    rewrite(tmp_path / "run", digest=shorter.digest())
    with pytest.raises(RunError, match="the replay has ended after"):
        run(shorter, tmp_path / "run")
    assert read_run(tmp_path / "run").rounds.num_rows == 5


def test_a_stream_that_is_cut_is_noticed(tmp_path):
    stopped(scenario("deadline"), tmp_path / "run", 5)
    stream = tmp_path / "run" / "rounds.arrows"
    stream.write_bytes(stream.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"rounds\.arrows"):
        read_run(tmp_path / "run")
    with pytest.raises(RunError, match=r"rounds\.arrows: is damaged"):
        run(scenario("deadline"), tmp_path / "run")


def test_a_run_goes_on_with_the_executor_that_it_began_with(tmp_path, monkeypatch):
    of = scenario("synchronous", learning=LEARNING, rounds={"count": 2})
    stopped(of, tmp_path / "run", 1, executor="sequential")
    monkeypatch.setenv("FEDSIM_EXECUTOR", "processes")
    run(of, tmp_path / "run")
    assert state_of(tmp_path / "run")["executor"]["kind"] == "sequential"


class Other(SequentialExecutor):
    """An executor of the user's own, whose bits are its own."""

    fingerprint = "other"


def test_an_executor_of_the_users_own_is_not_imported_for_a_file(tmp_path):
    of = scenario("synchronous", learning=LEARNING, rounds={"count": 2})
    stopped(of, tmp_path / "run", 1, executor=Other)
    with pytest.raises(RunError, match=r"begun with the executor '.*:Other'.*--executor"):
        run(of, tmp_path / "run")
    rows = tmp_path / "run" / "evaluations.arrows"
    before = rows.read_bytes()
    accuracy = read_run(tmp_path / "run").column("evaluations", "accuracy")[0]
    changed = before.replace(struct.pack("<d", accuracy), struct.pack("<d", 0.123))
    rows.write_bytes(changed)
    tables = state_of(tmp_path / "run")["tables"]
    tables["evaluations"]["crc32"] = zlib.crc32(changed)
    rewrite(tmp_path / "run", tables=tables)
    with pytest.raises(RunError, match=r"accuracy: 0.123 in .* Another executor: other then, sequential now"):
        run(of, tmp_path / "run", executor="sequential")
    assert state_of(tmp_path / "run")["executor"]["fingerprint"] == "other", "as long as its rows are there"
    rows.write_bytes(before)
    tables["evaluations"]["crc32"] = zlib.crc32(before)
    rewrite(tmp_path / "run", tables=tables)
    run(of, tmp_path / "run", executor="sequential")
    assert state_of(tmp_path / "run")["executor"]["fingerprint"] == "sequential"
