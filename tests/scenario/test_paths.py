"""Paths of a scenario: from the file's folder, or from the working folder in Python; no folder is in a digest."""

import importlib
import sys

import pytest

from fedsim import Scenario, read_run, run, simulate
from fedsim.errors import ScenarioError
from tests.support.one_command import call

TEXT = """
name = "s"
crowd = { clients = 4, placement = { kind = "file", path = "places.csv" } }
learning = { kind = "none", model_bits = 1e6, samples_per_client = { column = "n", path = "more/clients.csv" } }
network = { kind = "cell", fading = { kind = "none" } }
rounds = { count = 2 }
selector = { kind = "uniform", cohort = 2 }
"""


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Make a scenario with its files in ``exp``, and other files of the same names in the working folder."""
    for place, step in ((tmp_path / "exp", 1), (tmp_path, 1000)):
        (place / "more").mkdir(parents=True)
        (place / "places.csv").write_text("x_m,y_m\n" + "".join(f"{step * row},0\n" for row in range(1, 5)))
        (place / "more" / "clients.csv").write_text("n\n" + f"{step}\n" * 4)
    (tmp_path / "exp" / "s.toml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_means_the_same_from_every_folder(beside, monkeypatch):
    there = Scenario.load("exp/s.toml")
    monkeypatch.chdir(beside / "exp")
    assert Scenario.load("s.toml") == there
    assert simulate(there).clients.column("x_m").to_pylist() == [1, 2, 3, 4]
    assert there.crowd.placement.path == (beside / "exp" / "places.csv").as_posix()


def test_values_and_tables_of_python_are_meant_from_the_working_folder(beside):
    assert Scenario.from_toml(TEXT).crowd.placement.path == (beside / "places.csv").as_posix()
    changed = Scenario.load("exp/s.toml", {"crowd.placement.path": "places.csv"})
    assert changed.crowd.placement.path == (beside / "places.csv").as_posix()


def test_a_run_folder_gives_the_same_bytes_elsewhere(beside, monkeypatch):
    run(Scenario.load("exp/s.toml"), out="first", store=False)
    (beside / "elsewhere").mkdir()
    monkeypatch.chdir(beside / "elsewhere")
    run(Scenario.load("../first/scenario.toml"), out="second", store=False)
    for name in ("participations.parquet", "rounds.parquet", "clients.parquet"):
        assert (beside / "first" / name).read_bytes() == (beside / "elsewhere" / "second" / name).read_bytes()
    assert read_run("second").clients.column("x_m").to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize("command", ["run first/scenario.toml --out second -q --no-store", "whatif first --store kept"])
def test_a_run_folder_tells_of_a_file_that_has_changed(beside, command):
    run(Scenario.load("exp/s.toml"), out="first", store=False)
    (beside / "exp" / "places.csv").write_text("x_m,y_m\n" + "9,0\n" * 4)
    ended = call([*command.split(), "--set", "rounds.count=1"])
    assert ended.code == 0
    assert "crowd.placement.path: the content of this file has changed since the run in first" in ended.errors
    assert "samples_per_client" not in ended.errors


def test_a_digest_is_of_contents_and_not_of_folders(beside):
    first = Scenario.load("exp/s.toml")
    assert sorted(first.files()) == ["crowd.placement.path", "learning.samples_per_client.path"]
    (beside / "exp").rename(beside / "moved")
    second = Scenario.load("moved/s.toml")
    assert second.digest() != first.digest(), "its files are gone"
    (beside / "moved").rename(beside / "exp")
    assert first.digest() == Scenario.load("exp/s.toml").digest()
    with (beside / "exp" / "places.csv").open("a") as file:
        file.write("\n")
    assert first.digest() != second.digest()


def test_backslashes_and_files_that_are_not_there_are_refused(beside):
    for path, said in (("data\\\\places.csv", "a backslash"), ("no.csv", "No such file")):
        (beside / "exp" / "t.toml").write_text(TEXT.replace("places.csv", path))
        ended = call(["check", "exp/t.toml"])
        assert ended.code == 2
        assert said in " ".join(ended.errors.split())
        assert "crowd.placement.path" in ended.errors
    (beside / "exp" / "no.csv").mkdir()
    with pytest.raises(ScenarioError, match=r"crowd\.placement\.path: .*no\.csv: cannot be read: it is a folder"):
        Scenario.load("exp/t.toml").check_files()


def test_a_run_folder_tells_where_modules_of_own_parts_lie(beside, monkeypatch):
    (beside / "exp" / "part_beside.py").write_text(
        "from fedsim.selectors import Selector\n\n\nclass First(Selector):\n    def __init__(self, count=1):\n"
        "        self.count = count\n\n    def select(self, view, rng):\n        return view.client[: self.count]\n"
    )
    (beside / "elsewhere").mkdir()
    path = list(sys.path)

    def command(*arguments):
        monkeypatch.setattr(sys, "path", list(path))
        sys.modules.pop("part_beside", None)
        importlib.invalidate_caches()
        assert call(["run", *arguments, "-q", "--no-store"]).code == 0

    command("exp/s.toml", "--set", 'selector={kind = "part_beside:First", count = 2}', "--out", "first")
    monkeypatch.chdir(beside / "elsewhere")
    command("../first/scenario.toml", "--out", "second")
    rows = [
        (place / "participations.parquet").read_bytes() for place in (beside / "first", beside / "elsewhere" / "second")
    ]
    assert rows[0] == rows[1]
    monkeypatch.setattr(sys, "path", list(path))
    sys.modules.pop("part_beside")
    with pytest.raises(ScenarioError, match="part_beside"):  # to read a run imports nothing from where it says
        _ = read_run(beside / "first").scenario
