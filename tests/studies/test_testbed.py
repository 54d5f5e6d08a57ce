"""The plain loop of PyTorch and the one with seconds differ by six lines, and learn the same."""

import difflib
import importlib
from pathlib import Path

from fedsim import read_run

FOLDER = Path(__file__).parents[2] / "scenarios" / "testbed"


def test_six_lines_are_added():
    plain, timed = ((FOLDER / name).read_text().splitlines() for name in ("plain_loop.py", "timed_loop.py"))
    changed = [line for line in difflib.ndiff(plain, timed) if line[0] in "+-" and line[2:].strip()]
    assert len(changed) <= 6
    assert all(line.startswith("+ ") for line in changed), "nothing is taken away or written anew"
    assert len(plain) <= 60


def test_the_training_is_the_same(tmp_path, monkeypatch):
    """After three rounds both have the same accuracies, which are those of the run folder."""
    found = {}
    for name in ("plain_loop", "timed_loop"):
        loop = importlib.import_module(f"testbed.{name}")
        monkeypatch.setattr(loop, "ROUNDS", 3)
        (tmp_path / "scenarios").mkdir(exist_ok=True)
        (tmp_path / "scenarios" / "testbed").mkdir(exist_ok=True)
        (tmp_path / "scenarios" / "testbed" / "cell.toml").write_text((FOLDER / "cell.toml").read_text())
        monkeypatch.chdir(tmp_path)
        found[name] = loop.main()
    assert found["plain_loop"] == found["timed_loop"]
    history = read_run(tmp_path / "runs" / "timed-loop")
    assert history.evaluations.column("accuracy").to_pylist() == found["plain_loop"]
    assert (history.column("rounds", "end_s") > 0).all()
