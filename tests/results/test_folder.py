"""A run folder is whole at every moment: after the end, after an error, after a kill."""

import hashlib
import json
import shutil

import pyarrow.parquet as pq
import pytest

from fedsim import Scenario, read_run, run
from fedsim.errors import RunError
from fedsim.history.schema import FORMAT_VERSION, TABLES as SCHEMAS
from fedsim.results.folder import RunFolder
from tests.support.run_folders import LEARNING, rewrite
from tests.support.short_runs import TIMING

SCENARIO = TIMING.replace(
    {
        "learning": LEARNING,
        "privacy": {"budget": {"kind": "geometric", "epsilon": 50.0}, "mechanism": {"kind": "laplace-l1", "clip": 1.0}},
        "rounds.count": 4,
    }
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a finished run without figures, which no test changes."""
    folder = tmp_path_factory.mktemp("made") / "run"
    run(SCENARIO, folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """Return a copy of it."""
    return shutil.copytree(made, tmp_path / "run")


@pytest.mark.usefixtures("figures")
def test_a_finished_run_holds_everything(tmp_path):
    history = run(SCENARIO, tmp_path / "run")
    tables = ("clients", "participations", "releases", "rounds", "evaluations")
    figures = ("accuracy", "accuracy_by_round", "leakage", "round_durations")
    names = {".lock", "scenario.toml", "run.json", "summary.json", "model.safetensors"}
    names |= {*(f"{name}.parquet" for name in tables), *(f"{name}.png" for name in figures)}
    found = {path.name for path in (tmp_path / "run").iterdir()}
    assert found == names, "and no unfinished file is left beside them"
    assert Scenario.load(tmp_path / "run" / "scenario.toml") == SCENARIO
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (state["status"], state["digest"], state["rounds"]) == ("finished", SCENARIO.digest(), 4)
    assert state["format"] == FORMAT_VERSION
    assert {"fedsim-des", "torch", "numpy"} <= state["versions"].keys()
    for table in ("participations", "rounds", "evaluations"):
        assert pq.read_table(tmp_path / "run" / f"{table}.parquet").schema.equals(SCHEMAS[table].arrow)
    again = read_run(tmp_path / "run")
    assert all(table.equals(again.tables()[name]) for name, table in history.tables().items())
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["final_accuracy"] == history.column("evaluations", "accuracy")[-1]
    assert summary["simulated_s"] == pytest.approx(history.column("rounds", "duration_s").sum())


def test_the_same_scenario_may_be_run_again_and_another_may_not(folder):
    run(SCENARIO, folder)
    other = SCENARIO.replace({"selector.cohort": 2})
    with pytest.raises(RunError, match="holds a run of another scenario"):
        run(other, folder)
    assert read_run(folder).column("rounds", "selected").tolist() == [3] * 4, "nothing was touched"
    run(other, folder, replace=True)
    assert read_run(folder).column("rounds", "selected").tolist() == [2] * 4


def test_a_table_that_is_gone_is_refused(folder):
    (folder / "participations.parquet").unlink()
    with pytest.raises(RunError, match=r"participations\.parquet"):
        read_run(folder)


@pytest.mark.parametrize(
    ("change", "problem"), [("late", "it lacks the column late"), (None, "there is no column own")]
)
def test_a_table_with_other_columns_is_refused(change, problem, folder):
    file = folder / "rounds.parquet"
    table = pq.read_table(file)
    table = table.append_column("own", table.column("round")) if change is None else table.drop_columns(change)
    pq.write_table(table, file)
    rewrite(folder, written={})
    with pytest.raises(RunError, match=rf"rounds\.parquet: .* {problem}"):
        read_run(folder)


@pytest.mark.parametrize("unfinished", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("version", "words"),
    [
        (FORMAT_VERSION - 1, "by an older version of fedsim, run it anew with --force: its format is 7, and"),
        (None, "by an older version of fedsim, run it anew with --force: its format is 1, and"),
        (FORMAT_VERSION + 1, "by a newer version of fedsim: its format is 9, and"),
    ],
)
def test_a_folder_of_another_format_is_refused_and_may_be_replaced(version, words, unfinished, folder):
    """The sentence comes before the checksum, which the first formats did not have."""
    changes = {"status": "running"} if unfinished else {}
    rewrite(folder, *(["format"] if version is None else []), **changes, format=version)
    expected = rf"run/run\.json: the folder was written {words} this version reads {FORMAT_VERSION}$"
    for use in (read_run, lambda folder: run(SCENARIO, folder)):
        with pytest.raises(RunError, match=expected):
            use(folder)
    run(TIMING, folder, replace=True)
    assert read_run(folder).rounds.num_rows == TIMING.rounds.count


def test_a_run_records_what_was_in_the_files_it_read(tmp_path):
    places = tmp_path / "places.csv"
    places.write_text("x_m,y_m\n" + "10,20\n" * SCENARIO.crowd.clients)
    scenario = SCENARIO.replace({"crowd.placement": {"kind": "file", "path": str(places)}})
    with RunFolder(tmp_path / "run", scenario) as folder:
        folder.begin()
        before = json.loads((tmp_path / "run" / "run.json").read_text())
        assert before["files"] == {"crowd.placement.path": hashlib.sha256(places.read_bytes()).hexdigest()}
        places.write_text("x_m,y_m\n" + "10,30\n" * SCENARIO.crowd.clients)
        folder.finish()
    after = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (after["digest"], after["files"]) == (before["digest"], before["files"])
    with pytest.raises(RunError, match="holds a run of another scenario"), RunFolder(tmp_path / "run", scenario):
        pass
