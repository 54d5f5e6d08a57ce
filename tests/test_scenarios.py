"""Every scenario and study that is shipped runs, at tiny size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedsim import Scenario, simulate

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.toml"))
STUDIES = {
    "cell_edge.py": ["--rounds", "3"],
    "cohort_size.py": ["--rounds", "3"],
    "deadline_share.py": ["--rounds", "3"],
    "deadline_whatif.py": ["--rounds", "3"],
}
NEEDS_DATA = {"mnist", "fashion-mnist", "cifar-10"}
BASELINES = [
    {},
    {"selector.kind": "uniform"},
    {"selector.kind": "fastest"},
    {"selector.kind": "all", "privacy": "none"},
]


def test_all_studies_are_listed_here():
    assert {path.name for path in SCENARIOS.rglob("*.py")} == STUDIES.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_scenario_is_valid_and_says_what_it_shows(file):
    assert file.read_text().startswith("# ")
    assert Scenario.from_toml(Scenario.load(file).to_toml()) == Scenario.load(file)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("baseline", BASELINES, ids=lambda values: "-".join(map(str, values.values())) or "itself")
def test_scenario_runs_on_digits(file, baseline):
    scenario = Scenario.load(file).replace({"rounds.count": 2, "crowd.clients": 20, **baseline})
    if scenario.learning.data != Scenario.load(SCENARIOS / "quickstart.toml").learning.data:
        scenario = scenario.replace({"learning.data": "digits", "learning.model": {"kind": "mlp"}})
    history = simulate(scenario)
    assert history.rounds.num_rows == 2
    assert history.evaluations.num_rows == 2


@pytest.mark.data
@pytest.mark.parametrize("file", [path for path in FILES if path.parent.name == "pause"], ids=lambda path: path.stem)
def test_paper_scenario_runs_on_its_own_data(file, data_dir):
    scenario = Scenario.load(file).replace({"rounds.count": 1, "selector.cohort": 2, "learning.local.max_batches": 2})
    history = simulate(scenario, data_dir=data_dir)
    assert 0 < history.column("evaluations", "accuracy")[0] < 1


@pytest.mark.parametrize("name", STUDIES)
def test_study_runs(name, tmp_path):
    done = subprocess.run(  # noqa: S603
        [sys.executable, SCENARIOS / name, *STUDIES[name], "--out", tmp_path / "out"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip()
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".png"}
