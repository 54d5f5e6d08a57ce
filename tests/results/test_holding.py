"""A folder belongs to one run: what a run may touch, and how one run takes the place of another."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from fedsim import read_run, run
from fedsim.errors import RunError
from fedsim.history.schema import FORMAT_VERSION
from fedsim.results import places, status_of
from fedsim.results.manifest import ALWAYS
from tests.support.data_files import write_emnist
from tests.support.run_folders import files_of, rewrite, state_of, stopped
from tests.support.short_runs import TIMING, of_learning

OLD = TIMING.replace({"rounds.count": 5})
NEW = OLD.replace({"rounds.count": 4, "selector.cohort": 2})
OWN = ("notes.txt", "photograph.png", "mine.parquet", "mine.arrows", ".draft.part", "models/mine.safetensors")


def put_own(folder):
    (folder / "models").mkdir(exist_ok=True)
    for name in OWN:
        (folder / name).write_text("mine")


def assert_own(folder):
    assert {name: (folder / name).read_text() for name in OWN} == dict.fromkeys(OWN, "mine")


def entries(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_state_lists_the_files_of_the_run_and_no_others(tmp_path):
    run(OLD, tmp_path / "run")
    whole = {name for name, file in state_of(tmp_path / "run")["written"].items() if file}
    assert whole == entries(tmp_path / "run") - {".lock", "run.json"}


@pytest.mark.parametrize("version", [FORMAT_VERSION, 1, FORMAT_VERSION + 1, None])
def test_a_rerun_and_force_leave_the_users_own_files(version, tmp_path):
    """Without a version the state is damaged."""
    folder = tmp_path / "run"
    stopped(OLD, folder, 2)
    put_own(folder)
    run(OLD, folder)
    assert_own(folder)
    if version:
        rewrite(folder, format=version)
    else:
        (folder / "run.json").write_text("{")
        with pytest.raises(RunError, match="holds no run"):
            run(OLD, folder)
    run(NEW, folder, replace=True)
    assert_own(folder)
    assert read_run(folder).rounds.num_rows == 4
    run(NEW, tmp_path / "new")
    assert entries(folder) - set(OWN) == entries(tmp_path / "new"), "nothing of the run before is left"


def test_a_file_that_no_run_wrote_is_never_replaced(tmp_path):
    run(OLD, tmp_path)
    before = entries(tmp_path)
    (tmp_path / "accuracy.png").write_text("mine")
    with pytest.raises(RunError, match=r"accuracy\.png: was not written by the run in this folder.*move it"):
        run(NEW, tmp_path, replace=True)
    assert (tmp_path / "accuracy.png").read_text() == "mine"
    assert entries(tmp_path) == before | {"accuracy.png"}
    (tmp_path / "accuracy.png").unlink()
    timed = NEW.replace({"learning": {"model": {"kind": "mlp", "hidden": [4]}}})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "round-000002.safetensors").write_text("mine")
    with pytest.raises(RunError, match=r"round-000002\.safetensors: was not written by the run"):
        run(timed, tmp_path, replace=True, save_models=2, store=False)
    assert read_run(tmp_path).rounds.num_rows == 5


@pytest.mark.parametrize(
    "file", [".lock", ".lock.pid", ".run.json.123-0123456789ab.part", "..lock.pid.9-0123456789ab.part"]
)
def test_a_folder_that_a_kill_left_before_its_first_state_is_taken_over(file, tmp_path):
    (tmp_path / file).write_text("1 host")
    run(OLD, tmp_path)
    assert status_of(tmp_path) == "finished"
    assert entries(tmp_path) <= {*ALWAYS, ".lock"}


@pytest.mark.parametrize("file", ["rounds.parquet", ".notes.txt.123-0123456789ab.part", ".lock.md"])
def test_a_folder_with_anything_else_and_no_state_is_left_alone(file, tmp_path):
    (tmp_path / file).write_text("mine")
    with pytest.raises(RunError, match="holds no run"):
        run(OLD, tmp_path)
    assert entries(tmp_path) == {file}


def test_a_finished_run_is_there_until_the_one_that_replaces_it_is_finished(tmp_path):
    run(OLD, tmp_path / "run")
    before, lines = files_of(tmp_path / "run"), []
    stopped(NEW, tmp_path / "run", 2, replace=True)
    assert files_of(tmp_path / "run") == before
    assert status_of(tmp_path / "run") == "finished"
    run(OLD, tmp_path / "run", tell=lines.append)
    assert "was finished before" in lines[0]
    run(NEW, tmp_path / "run", tell=lines.append)
    assert "goes on after round 2 (interrupted)" in lines[1], "without --force, as any run that was cut off"
    run(NEW, tmp_path / "new")
    assert files_of(tmp_path / "run") == files_of(tmp_path / "new")
    assert entries(tmp_path / "run") == entries(tmp_path / "new")


def test_an_exchange_is_completed_wherever_it_was_cut_off(tmp_path, monkeypatch):
    """Each act upon a file in turn is the last one; what is read is the one run or the other, whole."""
    run(OLD, tmp_path / "before")
    put_own(tmp_path / "before")
    monkeypatch.setattr("fedsim.results.holding.commit", lambda _: exit_now())
    with pytest.raises(SystemExit):
        run(NEW, tmp_path / "before", replace=True)
    monkeypatch.undo()
    assert state_of(tmp_path / "before" / places.NEXT)["status"] == "finished"
    rounds, last = [], 0
    while not rounds or last:
        folder = tmp_path / f"cut{len(rounds)}"
        shutil.copytree(tmp_path / "before", folder)
        last = cut_off(folder, len(rounds) + 1)
        rounds.append(read_run(folder).rounds.num_rows)
        assert status_of(folder) == "finished"
        run(NEW, folder)
        assert read_run(folder).rounds.num_rows == 4
        assert_own(folder)
        assert entries(folder) - set(OWN) == {name for name in entries(folder) if name in {*ALWAYS, ".lock"}}
        assert json.loads((folder / "summary.json").read_text())["rounds"] == 4
    assert rounds == sorted(rounds, reverse=True), "the old run, and from one instant on the new one"
    assert {4, 5} == set(rounds)
    assert len(rounds) > 10


def exit_now():
    raise SystemExit


def cut_off(folder, act):
    """Complete an exchange up to an act upon a file; return whether it was cut off."""
    acts = 0

    def counted(do):
        def acting(*arguments, **options):
            nonlocal acts
            acts += 1
            if acts == act:
                raise SystemExit
            return do(*arguments, **options)

        return acting

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        patch.setattr(places.shutil, "rmtree", counted(shutil.rmtree))
        try:
            run(NEW, folder)
        except SystemExit:
            return True
    return False


@pytest.mark.parametrize("policy", ["wait-for-all", {"kind": "deadline", "deadline_s": 1e-3}])
def test_what_is_gone_of_a_finished_run_is_made_again_or_asked_for(policy, tmp_path):
    """No client meets the deadline, and the summary says so."""
    of = OLD.replace({"rounds.policy": policy})
    run(of, tmp_path)
    before = files_of(tmp_path)
    (tmp_path / "summary.json").unlink()
    run(of, tmp_path)
    assert files_of(tmp_path) == before
    read_run(tmp_path)
    (tmp_path / "scenario.toml").unlink()
    with pytest.raises(RunError, match=r"lacks scenario\.toml, which its run wrote; --force"):
        run(of, tmp_path)


def test_a_summary_is_made_again_though_the_data_are_gone(tmp_path):
    write_emnist(tmp_path / "data")
    of = of_learning({"data": "emnist", "model": {"kind": "mlp", "hidden": []}})
    do = partial(run, of, tmp_path / "run", data_dir=tmp_path / "data", store=False)
    do()
    (tmp_path / "run" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "data")
    do()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert any("without notes on data and times of clients, since" in note for note in summary["notes"])


def test_a_run_that_another_release_has_finished_says_so(tmp_path):
    run(OLD, tmp_path)
    rewrite(tmp_path, versions={**state_of(tmp_path)["versions"], "fedsim-des": "0.0.1"})
    lines = []
    run(OLD, tmp_path, tell=lines.append)
    assert "was finished before by fedsim 0.0.1 (this is " in lines[0]


@pytest.mark.parametrize("name", ["seed:3", "file:/x", "s3:/b", "http://h/x", "a%20b?c#d"])
def test_folders_named_like_addresses_are_folders(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stopped(OLD, name, 2)
    history = run(OLD, name)
    assert (tmp_path / Path(name) / "rounds.parquet").is_file()
    assert read_run(name).participations.equals(history.participations)
