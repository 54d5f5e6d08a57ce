"""The comparison with SimGrid, at tiny size; skipped where the system's Python has no SimGrid."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scenarios" / "simgrid"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("compare")
    sys.modules.pop("compare", None)


def test_table_of_all_graphs(study, tmp_path, capsys):
    probe = [study.interpreter(), "-c", "import simgrid; simgrid.Engine"]
    if not Path(probe[0]).exists() or subprocess.run(probe, capture_output=True, check=False).returncode:  # noqa: S603
        pytest.skip("no interpreter with SimGrid (apt install python3-simgrid)")
    study.main(rounds=2, out=tmp_path)
    rows = [line.rsplit(maxsplit=5) for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(rows) == 12
    assert all(float(largest) < 1e-11 for *_, model, largest, _, _, _ in rows if model == "max-min")


def test_an_interpreter_without_simgrid_ends_with_advice(study, tmp_path):
    if study.interpreter() == sys.executable:
        pytest.skip("this interpreter has SimGrid")
    with pytest.raises(SystemExit, match="apt install python3-simgrid"):
        study.main(rounds=1, python=sys.executable, out=tmp_path)
