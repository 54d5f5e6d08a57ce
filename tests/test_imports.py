"""What each use of fedsim does without: the uses follow one another in one process, the lightest first."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.support.hand_made import by_hand

SYNTHETIC = {"kind": "synthetic", "users": 4}
LEARNING = {**by_hand(), "learning": {"data": SYNTHETIC, "model": {"kind": "mlp", "hidden": [8]}}}
HELP = """
import contextlib, io, runpy
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.argv[1:] = ["--help"]
    runpy.run_module("fedsim", run_name="__main__")
"""
TABLES_OF_RUNS = """
import numpy as np
from fedsim.history.schema import TABLES
for table in TABLES.values():
    table.from_columns({column.name: np.zeros((2, 3) if "list" in str(column.type) else 2) for column in table.columns})
    table.from_rows([{column.name: None if column.null else 0 for column in table.columns}])
    table.from_rows([])
"""
TABLES_OF_USERS = """
from fedsim.network import FromFile
from fedsim.network.topology.mobility import Trace
Trace(path="names.csv").of_clients(2)
Trace(path="cars.xml").of_clients(1)
FromFile(path="values.npz").positions(2, None)
"""
SETTINGS = """
from fedsim.learning import *
LEARNERS.describe(LEARNERS.make({"model": "cnn3", "data": "mnist", "split": {"kind": "dirichlet", "alpha": 1.0}}))
"""
PRESETS = "import fedsim.network.cell.presets, fedsim.network.radio.sionna.link"
TESTBED = f"testbed = fedsim.Testbed({by_hand()!r}); testbed.round(testbed.select()); testbed.finish()"
TRAININGS = """
for kind in ("sequential", "stacked"):
    fedsim.simulate(scenario.replace({"learning.local": {"optimizer": "adam"}}), executor=kind, store=False)
"""
# What makes a start slow.
HEAVY = "matplotlib numpy pandas pyarrow pydantic scipy simpy sklearn torch torchvision"
FRAMEWORKS = "matplotlib sklearn torch torchvision"
USES = {
    "import": ("import fedsim", HEAVY),
    "version": ("from fedsim.cli.version import version_lines; list(version_lines())", HEAVY),
    "help": (HELP, HEAVY),
    "checks": ("import fedsim.testing", HEAVY),
    # pyarrow imports pandas by itself.
    "tables of a run": (TABLES_OF_RUNS, f"pandas {FRAMEWORKS}"),
    "tables of users": (TABLES_OF_USERS, f"pandas {FRAMEWORKS}"),
    "settings of learning": (SETTINGS, FRAMEWORKS),
    "presets of networks": (PRESETS, f"sionna {FRAMEWORKS}"),
    "a scenario that is read": (f"scenario = fedsim.Scenario(**{LEARNING!r})", FRAMEWORKS),
    "a run about timing": (f"fedsim.simulate(fedsim.Scenario(**{by_hand()!r}))", FRAMEWORKS),
    "a testbed about timing": (TESTBED, FRAMEWORKS),
    "runs that learn": (TRAININGS, "sympy torch._dynamo torch._inductor"),  # torch's compiler
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Return the modules that are loaded after each use."""
    place = tmp_path_factory.mktemp("uses")
    (place / "names.csv").write_text("client,time,x_m,y_m\na,2024-01-01,1,\na,2024-01-02,1,1\nb,2024-01-02,2,3\n")
    cars = '<fcd-export><timestep time="0"><vehicle id="a" x="1" y="2"/></timestep></fcd-export>'
    (place / "cars.xml").write_text(cars)
    np.savez(place / "values.npz", client=["a", "b"], x_m=[1.0, 2.0], y_m=[1.0, 2.0])
    steps = "".join(f"{code}\nloaded[{name!r}] = list(sys.modules)\n" for name, (code, _) in USES.items())
    script = f"import json, sys\nloaded = {{}}\n{steps}print(json.dumps(loaded))"
    done = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=True)  # noqa: S603
    return json.loads(done.stdout)


@pytest.mark.parametrize("use", USES)
def test_a_use_loads_nothing_that_it_can_do_without(use, loaded):
    assert not set(loaded[use]) & set(USES[use][1].split())
    assert "fedsim" in loaded[use]
