"""The plain loop of PyTorch and the one with seconds differ by six lines, and learn the same."""

import difflib
import importlib
import inspect
from pathlib import Path

import pytest

from fedsim import read_run

FOLDER = Path(__file__).parents[2] / "scenarios" / "testbed"


@pytest.fixture
def loops(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return [importlib.import_module(name) for name in ("plain_loop", "timed_loop")]


def test_six_lines_are_added(loops):
    plain, timed = (inspect.getsource(loop.main).splitlines() for loop in loops)
    changed = [line for line in difflib.ndiff(plain, timed) if line[0] in "+-" and line[2:].strip()]
    assert len(changed) == 5, "and one import"
    assert all(line.startswith("+ ") for line in changed), "nothing is taken away or written anew"


def test_the_training_is_the_same(loops, tmp_path, monkeypatch):
    """After three rounds both have the same accuracies, which are those of the run folder."""
    (tmp_path / "scenarios" / "testbed").mkdir(parents=True)
    (tmp_path / "scenarios" / "testbed" / "cell.toml").write_text((FOLDER / "cell.toml").read_text())
    monkeypatch.chdir(tmp_path)
    for loop in loops:
        monkeypatch.setattr(loop, "ROUNDS", 3)
    plain, timed = (loop.main() for loop in loops)
    assert plain == timed
    history = read_run(tmp_path / "runs" / "timed-loop")
    assert history.evaluations.column("accuracy").to_pylist() == plain
    assert (history.column("rounds", "end_s") > 0).all()
