"""A loop of PyTorch gets its seconds by six lines, without which it learns the same."""

import importlib
from pathlib import Path

from fedsim import read_run

LOOP = Path(__file__).parents[2] / "scenarios" / "testbed" / "timed_loop.py"


def test_six_lines_give_a_loop_its_seconds(tmp_path, monkeypatch):
    """After three rounds the accuracies are those of the run folder, too."""
    timed = LOOP.read_text().splitlines()
    plain = [line for line in timed if not line.endswith("# fedsim")]
    assert (len(timed) - len(plain), "testbed" in "\n".join(plain).lower()) == (6, False)
    (tmp_path / "scenarios" / "testbed").mkdir(parents=True)
    (tmp_path / "scenarios" / "testbed" / "cell.toml").write_text(LOOP.with_name("cell.toml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    accuracies = []
    for name, lines in (("timed_loop", timed), ("loop_without_seconds", plain)):
        Path(f"{name}.py").write_text("\n".join(lines))
        loop = importlib.import_module(name)
        monkeypatch.setattr(loop, "ROUNDS", 3)
        accuracies.append(loop.main())
    assert accuracies[0] == accuracies[1]
    history = read_run(tmp_path / "runs" / "timed-loop")
    assert history.evaluations.column("accuracy").to_pylist() == accuracies[0]
    assert (history.column("rounds", "end_s") > 0).all()
